//! `osint breakers`: shows the breakers of a running worker, and overrides them.

mod show;

use std::{
    io::{IsTerminal, stdout},
    net::SocketAddr,
    time::Duration,
};

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::show::{Detail, Shown};
use super::admin_client::AdminClient;
use crate::{
    admin::{
        Entry, local_token,
        overrides::{OverrideDetails, OverrideRequest},
    },
    error::CliError,
    report::Paint,
};

/// How often `--watch` looks.
const WATCH: Duration = Duration::from_secs(1);

/// Arguments of `osint breakers`.
#[derive(Debug, Args)]
#[command(after_help = "\
  osint breakers open tavily --why 'announced maintenance' --for 2h
  osint breakers auto tavily
  osint breakers show tavily
  osint breakers --watch --troubled

An override needs a token: OSINT_ADMIN_TOKEN (or OSINT_ADMIN_TOKEN_FILE), or none if you are the worker's user on its machine.
The exit code is 0 when the override is in force and the answer says where: in the whole fleet, in this worker also after a
restart, or, if the worker has no store, until its process ends. It is 1 when the worker's store does not take it.")]
pub(super) struct Breakers {
    /// Where the worker's admin server listens
    #[arg(long, global = true, value_name = "ADDRESS:PORT", default_value = super::worker::ADMIN, env = "OSINT_ADMIN")]
    admin: SocketAddr,
    /// Print the worker's full answer as JSON
    #[arg(long, global = true)]
    json: bool,
    /// Only breakers whose name contains this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Only breakers that are not closed or are overridden
    #[arg(long)]
    troubled: bool,
    /// Show the list again every second until Ctrl-C
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    #[command(subcommand)]
    command: Option<BreakerCommand>,
}

#[derive(Debug, Subcommand)]
enum BreakerCommand {
    /// Show one breaker: state, evidence, thresholds and where they come from, history
    Show(Name),
    /// Show what happened to a breaker, or to all
    History(MaybeName),
    /// Print the token of a worker of this user on this machine, for the dashboard
    Token,
    #[command(flatten)]
    Override(OverrideCommand),
}

#[derive(Debug, Args)]
struct Name {
    /// Which breaker, such as tavily or vies:DE
    name: String,
}

#[derive(Debug, Args)]
struct MaybeName {
    /// Which breaker; without it, all
    name: Option<String>,
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
    fn request(&self) -> (&str, OverrideRequest) {
        let details = |of: &OverrideArgs| {
            let for_ms = of.lasting.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
            OverrideDetails { who: of.who.clone(), why: of.why.clone(), for_ms }
        };
        match self {
            Self::Open(of) => (&of.name, OverrideRequest::Open(details(of))),
            Self::Close(of) => (&of.name, OverrideRequest::Close(details(of))),
            Self::Observe(of) => (&of.name, OverrideRequest::Observe(details(of))),
            Self::Auto(Auto { name, who }) => (name, OverrideRequest::Auto { who: who.clone() }),
        }
    }
}

impl Breakers {
    /// Shows the breakers, or overrides one.
    pub(super) async fn run(self) -> Result<(), CliError> {
        let client = AdminClient::new(self.admin)?;
        match &self.command {
            None => self.list(&client).await,
            Some(BreakerCommand::Show(Name { name })) => {
                let value = client.get(&["breakers", name]).await?;
                if self.json {
                    return super::print_json(&value);
                }
                let detail = self.read::<Detail>(value)?;
                super::print(&show::detail(&detail, Timestamp::now(), Paint::of(&stdout())))
            }
            Some(BreakerCommand::History(MaybeName { name })) => self.history(&client, name.as_deref()).await,
            Some(BreakerCommand::Token) => match local_token(self.admin.port()) {
                Some(token) => super::print(token.secret()),
                None => Err(CliError::failure(format!("no worker of this user listens on port {}", self.admin.port()))
                    .hint("run this on the worker's machine as the worker's user, or use its OSINT_ADMIN_TOKEN")),
            },
            Some(BreakerCommand::Override(command)) => {
                let (name, request) = command.request();
                override_breaker(&client, name, &request, self.json).await
            }
        }
    }

    async fn list(&self, client: &AdminClient) -> Result<(), CliError> {
        if self.watch && !stdout().is_terminal() {
            return Err(
                CliError::user("--watch needs a terminal").hint("for programs: --json, or the worker's /events")
            );
        }
        loop {
            let Value::Array(mut list) = client.get(&["breakers"]).await? else {
                return Err(self.no_worker("no list"));
            };
            if self.json {
                list.retain(|value| serde_json::from_value(value.clone()).is_ok_and(|shown| self.wants(&shown)));
                return super::print_json(&list);
            }
            let mut shown = self.read::<Vec<Shown>>(Value::Array(list))?;
            shown.retain(|shown| self.wants(shown));
            let page = show::list(&shown, Timestamp::now(), Paint::of(&stdout()));
            if !self.watch {
                return super::print(&page);
            }
            // Home, the page, and nothing of what was below it.
            super::print(&format!("\x1b[H\x1b[2J{page}"))?;
            tokio::time::sleep(WATCH).await;
        }
    }

    async fn history(&self, client: &AdminClient, name: Option<&str>) -> Result<(), CliError> {
        let value = match name {
            // This page also knows a misspelt name.
            Some(name) => client.get(&["breakers", name]).await?["history"].take(),
            None => client.get(&["history"]).await?,
        };
        if self.json {
            return super::print_json(&value);
        }
        super::print(&show::history(&self.read::<Vec<Entry>>(value)?))
    }

    fn wants(&self, shown: &Shown) -> bool {
        self.only.as_ref().is_none_or(|text| shown.service.contains(text.as_str()))
            && (!self.troubled || shown.troubled())
    }

    fn read<T: DeserializeOwned>(&self, value: Value) -> Result<T, CliError> {
        serde_json::from_value(value).map_err(|error| self.no_worker(&error.to_string()))
    }

    fn no_worker(&self, why: &str) -> CliError {
        CliError::failure(format!("{} is no worker of ours: {why}", self.admin))
    }
}

async fn override_breaker(
    client: &AdminClient,
    name: &str,
    request: &OverrideRequest,
    json: bool,
) -> Result<(), CliError> {
    let (status, value) = client.post(&["breakers", name], request).await?;
    match status.as_u16() {
        200 if json => super::print_json(&value),
        200 => {
            let breaker = &value["breaker"];
            let reason = breaker["reason"].as_str().map_or_else(String::new, |reason| format!(" ({reason})"));
            let (mode, state) = (breaker["mode"].as_str().unwrap_or("?"), breaker["state"].as_str().unwrap_or("?"));
            let note = value["note"].as_str().unwrap_or("in force");
            super::print(&format!("{name}: {mode}, {state}{reason}; {note}."))
        }
        503 => {
            let message = value["error"].as_str().unwrap_or_default();
            Err(CliError::failure(format!("not stored: {message}")).hint(format!(
                "the override of {name} holds in this worker only, until the worker ends.\n\
                 It will be stored when the store works again; to end it now: osint breakers auto {name}"
            )))
        }
        _ => Err(client.refused(status, &value)),
    }
}

#[cfg(test)]
mod tests {
    use circuit_registry::policy::Mode;

    use super::*;
    use crate::admin::overrides::tests::worker;

    fn override_args(name: &str, lasting: Option<Duration>) -> OverrideArgs {
        OverrideArgs { name: name.into(), why: "maintenance".into(), lasting, who: "alice".into() }
    }

    async fn run(admin: SocketAddr, command: OverrideCommand) -> Result<(), CliError> {
        let command = Some(BreakerCommand::Override(command));
        Breakers { admin, json: false, only: None, troubled: false, watch: false, command }.run().await
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
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("breakers.state");
        let server = worker(Some(&file)).await;
        let admin = server.address;
        let view = || server.registry.breaker("vies:DE").view();
        let hour = Some(Duration::from_secs(3600));
        run(admin, OverrideCommand::Open(override_args("vies:DE", hour))).await.expect("stored");
        assert_eq!(view().mode, Mode::ForceOpen);
        assert!(view().retry_in.is_some_and(|left| left > Duration::from_secs(3500)));
        assert!(std::fs::read_to_string(&file).is_ok_and(|text| text.contains("alice")));
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
    async fn without_a_store_an_override_is_in_force_until_the_end() {
        let server = worker(None).await;
        let open = |name: &str| run(server.address, OverrideCommand::Open(override_args(name, None)));
        open("tavily").await.expect("in force");
        assert_eq!(server.registry.breaker("tavily").view().mode, Mode::ForceOpen);
        let exit = open("a/../b").await.expect_err("no such breaker");
        assert!(exit.code() == 2 && exit.to_string().contains("no breaker 'a/../b'"), "{exit}");
        let exit = open("tavilly").await.expect_err("no such breaker");
        assert!(exit.to_string().contains("did you mean tavily?"), "{exit}");
    }

    #[tokio::test]
    async fn an_override_that_the_store_does_not_take_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let server = worker(Some(&folder.path().join("breakers.state"))).await;
        drop(folder);
        let exit =
            run(server.address, OverrideCommand::Open(override_args("tavily", None))).await.expect_err("not stored");
        let text = exit.to_string();
        assert!(
            exit.code() == 1 && text.contains("not stored") && text.contains("osint breakers auto tavily"),
            "{text}"
        );
        assert_eq!(server.registry.breaker("tavily").view().mode, Mode::ForceOpen, "in force here");
    }

    #[tokio::test]
    async fn one_breaker_and_its_history_can_be_shown() {
        let server = worker(None).await;
        let command = |command| Breakers {
            admin: server.address,
            json: false,
            only: None,
            troubled: false,
            watch: false,
            command: Some(command),
        };
        let name = || "tavily".to_owned();
        command(BreakerCommand::Show(Name { name: name() })).run().await.expect("there");
        command(BreakerCommand::History(MaybeName { name: Some(name()) })).run().await.expect("there");
        command(BreakerCommand::History(MaybeName { name: None })).run().await.expect("there");
        let exit = command(BreakerCommand::Show(Name { name: "tavilly".into() })).run().await.expect_err("misspelt");
        assert!(exit.code() == 2 && exit.to_string().contains("tavily"), "{exit}");
    }
}
