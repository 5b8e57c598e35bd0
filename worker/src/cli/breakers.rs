//! `osint breakers`: what a running worker's breakers are up to.

use std::{io::stdout, net::SocketAddr, time::Duration};

use clap::Args;
use serde_json::Value;

use crate::{
    exit::Exit,
    report::{BreakerState, Paint, breakers},
};

/// Arguments of `osint breakers`.
#[derive(Debug, Args)]
pub(super) struct Breakers {
    /// Where the worker's admin server listens
    #[arg(long, value_name = "ADDRESS:PORT", default_value = super::worker::ADMIN, env = "OSINT_ADMIN")]
    admin: SocketAddr,
    /// Print everything the worker tells, as JSON
    #[arg(long)]
    json: bool,
}

impl Breakers {
    /// Asks the worker and prints what it says.
    pub(super) async fn run(self) -> Result<(), Exit> {
        let url = format!("http://{}/breakers", self.admin);
        let silent = |error: reqwest::Error| {
            let why = if error.is_connect() { "nothing listens there".to_owned() } else { error.to_string() };
            Exit::ours(format!("no worker answers at {}: {why}", self.admin))
                .hint("start one with `osint worker` or `osint dev`, or name its admin address with --admin")
        };
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5)).build().map_err(silent)?;
        let answer = http.get(url).send().await.and_then(reqwest::Response::error_for_status).map_err(silent)?;
        let list: Vec<Value> = answer.json().await.map_err(silent)?;
        if self.json {
            return super::print_json(&list);
        }
        let states = list.into_iter().map(serde_json::from_value::<BreakerState>).collect::<Result<Vec<_>, _>>();
        let states = states.map_err(|error| Exit::ours(format!("{} is no worker of ours: {error}", self.admin)))?;
        super::print(&breakers(&states, Paint::of(&stdout())))
    }
}
