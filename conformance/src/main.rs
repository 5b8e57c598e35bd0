//! Prints the conformance table.

use breaker_conformance::{adapters, contract::report};

fn main() {
    let adapters = adapters::all();
    let columns = report::examine(&adapters);
    print!("{}", report::markdown(&adapters, &columns));
}
