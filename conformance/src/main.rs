//! Prints the conformance table, or writes it into the document that keeps it.
//!
//! `breaker-conformance` prints; `breaker-conformance docs/conformance.md` replaces everything after that file's marker.

use std::{env, fs, io, process::ExitCode};

use breaker_conformance::{adapters, contract::report};

/// The line of the document after which everything is written by this program.
const MARKER: &str = "<!-- everything below is written by `breaker-conformance docs/conformance.md` -->\n";

fn main() -> ExitCode {
    let adapters = adapters::all();
    let columns = report::examine(&adapters);
    let table = report::markdown(&adapters, &columns);
    let Some(path) = env::args().nth(1) else {
        print!("{table}");
        return ExitCode::SUCCESS;
    };
    match write(&path, &table) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{path}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(path: &str, table: &str) -> io::Result<()> {
    let document = fs::read_to_string(path)?;
    let (text, _) = document.split_once(MARKER).ok_or_else(|| io::Error::other("the marker line is missing"))?;
    fs::write(path, format!("{text}{MARKER}\n{table}"))
}
