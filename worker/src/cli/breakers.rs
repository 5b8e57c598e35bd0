//! `osint breakers`: what a running worker's breakers are up to, and an operator's word on them.

use std::{io::stdout, net::SocketAddr, time::Duration};

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::{
    admin::overrides::{OverrideDetails, OverrideRequest},
    error::CliError,
    report::{BreakerStatus, Paint, breakers},
};

/// A worker waits for its store for five seconds before it says that an order is not stored.
const PATIENCE: Duration = Duration::from_secs(10);

/// Arguments of `osint breakers`.
#[derive(Debug, Args)]
#[command(after_help = "\
  osint breakers open tavily --why 'announced maintenance' --for 2h
  osint breakers auto tavily

An order is acknowledged when the worker's store has it: it survives a restart and, where breakers are shared, holds in the
whole fleet. Until then the exit code is 1. Orders are taken from the worker's own machine only.")]
pub(super) struct Breakers {
    /// Where the worker's admin server listens
    #[arg(long, global = true, value_name = "ADDRESS:PORT", default_value = super::worker::ADMIN, env = "OSINT_ADMIN")]
    admin: SocketAddr,
    /// Print everything the worker tells, as JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    order: Option<OrderCommand>,
}

#[derive(Debug, Subcommand)]
enum OrderCommand {
    /// Refuse every call, whatever the breaker thinks
    Open(Overrule),
    /// Let every call pass, whatever the breaker thinks
    Close(Overrule),
    /// Let every call pass, and log when the breaker would have opened
    Observe(Overrule),
    /// Let the breaker decide again
    Auto(Auto),
}

#[derive(Debug, Args)]
struct Overrule {
    /// Which breaker, such as tavily or vies:DE
    name: String,
    /// The reason, for everyone who will wonder
    #[arg(long, value_name = "TEXT")]
    why: String,
    /// How long, such as 90s, 30m or 2h; without it, until `osint breakers auto`
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    lasting: Option<Duration>,
    /// Who orders it
    #[arg(long, value_name = "NAME", default_value = "operator", env = "USER", hide_env_values = true)]
    who: String,
}

#[derive(Debug, Args)]
struct Auto {
    /// Which breaker, such as tavily or vies:DE
    name: String,
    /// Take back only what this operator ordered
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
}

/// `90s`, `30m`, `1h 30m`
fn time(text: &str) -> Result<Duration, String> {
    let bad = || "expected a time longer than zero with its unit, such as 90s, 30m or 2h".to_owned();
    let time: jiff::SignedDuration = text.parse().map_err(|_| bad())?;
    Duration::try_from(time).ok().filter(|time| time.as_millis() > 0).ok_or_else(bad)
}

impl OrderCommand {
    fn order(self) -> (String, OverrideRequest) {
        let said = |of: Overrule| {
            let for_ms = of.lasting.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
            (of.name, OverrideDetails { who: of.who, why: of.why, for_ms })
        };
        match self {
            Self::Open(of) => {
                let (name, said) = said(of);
                (name, OverrideRequest::Open(said))
            }
            Self::Close(of) => {
                let (name, said) = said(of);
                (name, OverrideRequest::Close(said))
            }
            Self::Observe(of) => {
                let (name, said) = said(of);
                (name, OverrideRequest::Observe(said))
            }
            Self::Auto(Auto { name, who }) => (name, OverrideRequest::Auto { who }),
        }
    }
}

impl Breakers {
    /// Asks the worker and prints what it says, or orders something.
    pub(super) async fn run(self) -> Result<(), CliError> {
        match self.order {
            None => show(self.admin, self.json).await,
            Some(command) => {
                let (name, order) = command.order();
                tell(self.admin, &name, &order, self.json).await
            }
        }
    }
}

async fn show(admin: SocketAddr, json: bool) -> Result<(), CliError> {
    let silent = |error| silent(admin, &error);
    let answer = http().map_err(silent)?.get(format!("http://{admin}/breakers")).send().await;
    let answer = answer.and_then(reqwest::Response::error_for_status).map_err(silent)?;
    let list: Vec<Value> = answer.json().await.map_err(silent)?;
    if json {
        return super::print_json(&list);
    }
    let states = list.into_iter().map(serde_json::from_value::<BreakerStatus>).collect::<Result<Vec<_>, _>>();
    let states = states.map_err(|error| CliError::failure(format!("{admin} is no worker of ours: {error}")))?;
    super::print(&breakers(&states, Paint::of(&stdout())))
}

async fn tell(admin: SocketAddr, name: &str, order: &OverrideRequest, json: bool) -> Result<(), CliError> {
    let silent = |error| silent(admin, &error);
    let mut url = reqwest::Url::parse(&format!("http://{admin}/breakers/")).map_err(CliError::failure)?;
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().push(name);
    }
    let answer = http().map_err(silent)?.post(url).json(order).send().await.map_err(silent)?;
    let status = answer.status().as_u16();
    let body = answer.text().await.map_err(silent)?;
    let value: Value = serde_json::from_str(&body).unwrap_or_default();
    let said = value["error"].as_str().unwrap_or(&body);
    match status {
        200 if json => super::print_json(&value),
        200 => {
            let place = if value["fleet"] == true { "in the whole fleet" } else { "in this worker" };
            let breaker = &value["breaker"];
            let reason = breaker["reason"].as_str().map_or_else(String::new, |reason| format!(" ({reason})"));
            let (mode, state) = (breaker["mode"].as_str().unwrap_or("?"), breaker["state"].as_str().unwrap_or("?"));
            super::print(&format!("{name}: {mode}, {state}{reason}. Stored, and in force {place}."))
        }
        503 => Err(CliError::failure(format!("not stored: {said}")).hint(format!(
            "{name} obeys in this worker until it ends; a restart forgets it, and no other worker knows.\n\
             It is stored once the store works; to take it back now: osint breakers auto {name}"
        ))),
        400 | 403 | 404 | 422 => Err(CliError::user(said)),
        _ => Err(CliError::failure(format!("{admin} is no worker of ours: it answers {status}"))),
    }
}

fn http() -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()
}

fn silent(admin: SocketAddr, error: &reqwest::Error) -> CliError {
    let why = if error.is_connect() { "nothing listens there".to_owned() } else { error.to_string() };
    CliError::failure(format!("no worker answers at {admin}: {why}"))
        .hint("start one with `osint worker` or `osint dev`, or name its admin address with --admin")
}

#[cfg(test)]
mod tests {
    use circuit_registry::{policy::Mode, store::MemoryStore};

    use super::*;
    use crate::admin::overrides::tests::worker;

    fn overrule(name: &str, lasting: Option<Duration>) -> Overrule {
        Overrule { name: name.into(), why: "maintenance".into(), lasting, who: "alice".into() }
    }

    async fn run(admin: SocketAddr, order: OrderCommand) -> Result<(), CliError> {
        Breakers { admin, json: false, order: Some(order) }.run().await
    }

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(time("2h"), Ok(Duration::from_secs(7200)));
        assert_eq!(time("1h 30m"), Ok(Duration::from_secs(5400)));
        for bad in ["", "5", "0s", "-1h", "soon", "1y"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn an_operator_overrules_a_breaker_and_takes_it_back() {
        let store = MemoryStore::new();
        let (registry, admin) = worker(Some(store.clone())).await;
        let view = || registry.breaker("vies:DE").view();
        let hour = Some(Duration::from_secs(3600));
        run(admin, OrderCommand::Open(overrule("vies:DE", hour))).await.expect("stored");
        assert_eq!(view().mode, Mode::ForceOpen);
        assert!(view().retry_in.is_some_and(|left| left > Duration::from_secs(3500)));
        assert!(store.text("vies:DE").is_some_and(|text| text.contains("alice")));
        run(admin, OrderCommand::Auto(Auto { name: "vies:DE".into(), who: Some("alice".into()) }))
            .await
            .expect("stored");
        run(admin, OrderCommand::Close(overrule("vies:DE", None))).await.expect("stored");
        assert_eq!(view().mode, Mode::ForceClosed);
        run(admin, OrderCommand::Auto(Auto { name: "vies:DE".into(), who: None })).await.expect("stored");
        run(admin, OrderCommand::Observe(overrule("vies:DE", None))).await.expect("stored");
        assert_eq!(view().mode, Mode::Observe);
    }

    #[tokio::test]
    async fn what_is_not_stored_is_not_acknowledged() {
        let (registry, admin) = worker(None).await;
        let exit = run(admin, OrderCommand::Open(overrule("tavily", None))).await.expect_err("there is no store");
        assert_eq!(exit.code(), 1);
        let said = exit.to_string();
        assert!(said.contains("not stored") && said.contains("osint breakers auto tavily"), "{said}");
        assert_eq!(registry.breaker("tavily").view().mode, Mode::ForceOpen, "in force here");
        let exit = run(admin, OrderCommand::Open(overrule("a/../b", None))).await.expect_err("no such breaker");
        assert!(exit.code() == 2 && exit.to_string().contains("no breaker 'a/../b'"), "{exit}");
    }
}
