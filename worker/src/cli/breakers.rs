//! `osint breakers`: shows the breakers of a running worker, and overrides them.

use std::{io::stdout, net::SocketAddr, time::Duration};

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::{
    admin::overrides::{OverrideDetails, OverrideRequest},
    error::CliError,
    report::{BreakerStatus, Paint, breakers},
};

/// Time for an answer. A worker waits five seconds for its store before it reports that an override is not stored.
const ANSWER: Duration = Duration::from_secs(10);

/// Arguments of `osint breakers`.
#[derive(Debug, Args)]
#[command(after_help = "\
  osint breakers open tavily --why 'announced maintenance' --for 2h
  osint breakers auto tavily

The exit code is 0 when the worker's store holds the override. It then survives a restart and, if breakers are shared, holds in
the whole fleet. The exit code is 1 when it is not stored. A worker accepts overrides from its own machine only.")]
pub(super) struct Breakers {
    /// Where the worker's admin server listens
    #[arg(long, global = true, value_name = "ADDRESS:PORT", default_value = super::worker::ADMIN, env = "OSINT_ADMIN")]
    admin: SocketAddr,
    /// Print the worker's full answer as JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Option<OverrideCommand>,
}

#[derive(Debug, Subcommand)]
enum OverrideCommand {
    /// Refuse every call, whatever the breaker's state is
    Open(OverrideArgs),
    /// Let every call pass, whatever the breaker's state is
    Close(OverrideArgs),
    /// Let every call pass, and log when the breaker would have opened
    Observe(OverrideArgs),
    /// Let the breaker decide again
    Auto(Auto),
}

#[derive(Debug, Args)]
struct OverrideArgs {
    /// Which breaker, such as tavily or vies:DE
    name: String,
    /// The reason; logs and `osint breakers --json` show it
    #[arg(long, value_name = "TEXT")]
    why: String,
    /// How long, such as 90s, 30m or 2h; without it, until `osint breakers auto`
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    lasting: Option<Duration>,
    /// Your name, to be shown with the override
    #[arg(long, value_name = "NAME", default_value = "operator", env = "USER", hide_env_values = true)]
    who: String,
}

#[derive(Debug, Args)]
struct Auto {
    /// Which breaker, such as tavily or vies:DE
    name: String,
    /// End only the override of this operator
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
}

/// `90s`, `30m`, `1h 30m`
fn time(text: &str) -> Result<Duration, String> {
    let bad = || "expected a time longer than zero with its unit, such as 90s, 30m or 2h".to_owned();
    let time: jiff::SignedDuration = text.parse().map_err(|_| bad())?;
    Duration::try_from(time).ok().filter(|time| time.as_millis() > 0).ok_or_else(bad)
}

impl OverrideCommand {
    fn request(self) -> (String, OverrideRequest) {
        let details = |of: OverrideArgs| {
            let for_ms = of.lasting.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
            (of.name, OverrideDetails { who: of.who, why: of.why, for_ms })
        };
        match self {
            Self::Open(of) => {
                let (name, given) = details(of);
                (name, OverrideRequest::Open(given))
            }
            Self::Close(of) => {
                let (name, given) = details(of);
                (name, OverrideRequest::Close(given))
            }
            Self::Observe(of) => {
                let (name, given) = details(of);
                (name, OverrideRequest::Observe(given))
            }
            Self::Auto(Auto { name, who }) => (name, OverrideRequest::Auto { who }),
        }
    }
}

impl Breakers {
    /// Shows the breakers, or overrides one.
    pub(super) async fn run(self) -> Result<(), CliError> {
        match self.command {
            None => show(self.admin, self.json).await,
            Some(command) => {
                let (name, request) = command.request();
                override_breaker(self.admin, &name, &request, self.json).await
            }
        }
    }
}

async fn show(admin: SocketAddr, json: bool) -> Result<(), CliError> {
    let no_answer = |error| no_answer(admin, &error);
    let answer = http().map_err(no_answer)?.get(format!("http://{admin}/breakers")).send().await;
    let answer = answer.and_then(reqwest::Response::error_for_status).map_err(no_answer)?;
    let list: Vec<Value> = answer.json().await.map_err(no_answer)?;
    if json {
        return super::print_json(&list);
    }
    let states = list.into_iter().map(serde_json::from_value::<BreakerStatus>).collect::<Result<Vec<_>, _>>();
    let states = states.map_err(|error| CliError::failure(format!("{admin} is no worker of ours: {error}")))?;
    super::print(&breakers(&states, Paint::of(&stdout())))
}

async fn override_breaker(
    admin: SocketAddr,
    name: &str,
    request: &OverrideRequest,
    json: bool,
) -> Result<(), CliError> {
    let no_answer = |error| no_answer(admin, &error);
    let mut url = reqwest::Url::parse(&format!("http://{admin}/breakers/")).map_err(CliError::failure)?;
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().push(name);
    }
    let answer = http().map_err(no_answer)?.post(url).json(request).send().await.map_err(no_answer)?;
    let status = answer.status().as_u16();
    let body = answer.text().await.map_err(no_answer)?;
    let value: Value = serde_json::from_str(&body).unwrap_or_default();
    let message = value["error"].as_str().unwrap_or(&body);
    match status {
        200 if json => super::print_json(&value),
        200 => {
            let place = if value["fleet"] == true { "in the whole fleet" } else { "in this worker" };
            let breaker = &value["breaker"];
            let reason = breaker["reason"].as_str().map_or_else(String::new, |reason| format!(" ({reason})"));
            let (mode, state) = (breaker["mode"].as_str().unwrap_or("?"), breaker["state"].as_str().unwrap_or("?"));
            super::print(&format!("{name}: {mode}, {state}{reason}. Stored, and in force {place}."))
        }
        503 => Err(CliError::failure(format!("not stored: {message}")).hint(format!(
            "the override of {name} holds in this worker only, until the worker ends.\n\
             It will be stored when the store works again; to end it now: osint breakers auto {name}"
        ))),
        400 | 403 | 404 | 422 => Err(CliError::user(message)),
        _ => Err(CliError::failure(format!("{admin} is no worker of ours: it answers {status}"))),
    }
}

fn http() -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder().no_proxy().timeout(ANSWER).build()
}

fn no_answer(admin: SocketAddr, error: &reqwest::Error) -> CliError {
    let why = if error.is_connect() { "nothing listens there".to_owned() } else { error.to_string() };
    CliError::failure(format!("no worker answers at {admin}: {why}"))
        .hint("start one with `osint worker` or `osint dev`, or name its admin address with --admin")
}

#[cfg(test)]
mod tests {
    use circuit_registry::{policy::Mode, store::MemoryStore};

    use super::*;
    use crate::admin::overrides::tests::worker;

    fn override_args(name: &str, lasting: Option<Duration>) -> OverrideArgs {
        OverrideArgs { name: name.into(), why: "maintenance".into(), lasting, who: "alice".into() }
    }

    async fn run(admin: SocketAddr, command: OverrideCommand) -> Result<(), CliError> {
        Breakers { admin, json: false, command: Some(command) }.run().await
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
    async fn an_operator_overrides_a_breaker_and_ends_the_override() {
        let store = MemoryStore::new();
        let (registry, admin) = worker(Some(store.clone())).await;
        let view = || registry.breaker("vies:DE").view();
        let hour = Some(Duration::from_secs(3600));
        run(admin, OverrideCommand::Open(override_args("vies:DE", hour))).await.expect("stored");
        assert_eq!(view().mode, Mode::ForceOpen);
        assert!(view().retry_in.is_some_and(|left| left > Duration::from_secs(3500)));
        assert!(store.text("vies:DE").is_some_and(|text| text.contains("alice")));
        run(admin, OverrideCommand::Auto(Auto { name: "vies:DE".into(), who: Some("alice".into()) }))
            .await
            .expect("stored");
        run(admin, OverrideCommand::Close(override_args("vies:DE", None))).await.expect("stored");
        assert_eq!(view().mode, Mode::ForceClosed);
        run(admin, OverrideCommand::Auto(Auto { name: "vies:DE".into(), who: None })).await.expect("stored");
        run(admin, OverrideCommand::Observe(override_args("vies:DE", None))).await.expect("stored");
        assert_eq!(view().mode, Mode::Observe);
    }

    #[tokio::test]
    async fn an_override_that_is_not_stored_is_an_error() {
        let (registry, admin) = worker(None).await;
        let exit =
            run(admin, OverrideCommand::Open(override_args("tavily", None))).await.expect_err("there is no store");
        assert_eq!(exit.code(), 1);
        let text = exit.to_string();
        assert!(text.contains("not stored") && text.contains("osint breakers auto tavily"), "{text}");
        assert_eq!(registry.breaker("tavily").view().mode, Mode::ForceOpen, "in force here");
        let exit = run(admin, OverrideCommand::Open(override_args("a/../b", None))).await.expect_err("no such breaker");
        assert!(exit.code() == 2 && exit.to_string().contains("no breaker 'a/../b'"), "{exit}");
    }
}
