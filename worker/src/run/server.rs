//! Says in the log when the Temporal server goes away and when it is back.

use std::time::Duration;

use temporalio_client::Client;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::admin::server_answers;

/// How often the server is asked.
const EVERY: Duration = Duration::from_secs(5);

/// Failures in a row before the server counts as gone: one alone may be an unlucky moment.
const GONE: u32 = 2;

/// Asks the server again and again, for as long as it is polled.
pub(super) async fn watch(client: Client) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen = Seen::default();
    loop {
        ticks.tick().await;
        match seen.note(server_answers(&client).await, Instant::now()) {
            Some(Change::Gone(why)) => {
                tracing::error!(why, "the Temporal server does not answer: no tasks are taken until it is back");
            }
            Some(Change::Back(after)) => tracing::info!(?after, "the Temporal server answers again"),
            None => {}
        }
    }
}

/// What was seen of the server.
#[derive(Debug, Default)]
struct Seen {
    failures: u32,
    since: Option<Instant>,
}

#[derive(Debug, PartialEq, Eq)]
enum Change {
    Gone(String),
    Back(Duration),
}

impl Seen {
    /// Takes in an answer. One change is reported once, however long it lasts.
    fn note(&mut self, answer: Result<(), String>, now: Instant) -> Option<Change> {
        match answer {
            Ok(()) => {
                let gone = std::mem::take(&mut self.failures) >= GONE;
                let since = self.since.take();
                gone.then(|| Change::Back(since.map_or(Duration::ZERO, |since| now - since)))
            }
            Err(why) => {
                self.failures = self.failures.saturating_add(1);
                self.since.get_or_insert(now);
                (self.failures == GONE).then_some(Change::Gone(why))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_reported_once_and_so_is_its_end() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut seen = Seen::default();
        let away = || Err("no answer".to_owned());
        assert_eq!(seen.note(Ok(()), at(0)), None);
        assert_eq!(seen.note(away(), at(5)), None, "one alone");
        assert_eq!(seen.note(away(), at(10)), Some(Change::Gone("no answer".to_owned())));
        assert_eq!(seen.note(away(), at(15)), None, "once");
        assert_eq!(seen.note(Ok(()), at(20)), Some(Change::Back(Duration::from_secs(15))));
        assert_eq!(seen.note(away(), at(25)), None);
        assert_eq!(seen.note(Ok(()), at(30)), None);
    }
}
