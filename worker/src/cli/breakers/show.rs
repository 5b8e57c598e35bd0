//! The pages of `osint breakers`: the list, one breaker, its history.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    admin::{Entry, What},
    report::{Paint, Table},
};

/// A breaker as a worker shows it. Keys that a worker of another version lacks are empty.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Shown {
    pub(super) service: String,
    pub(super) state: String,
    #[serde(default)]
    mode: String,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    retry_in_ms: Option<u64>,
    #[serde(default)]
    since: Option<Timestamp>,
    #[serde(default)]
    last_failure: Value,
    #[serde(default)]
    overrides: Vec<Held>,
    #[serde(default)]
    failure_rate: Option<f64>,
    #[serde(default)]
    consecutive_failures: u32,
    #[serde(default)]
    in_flight: u64,
}

#[derive(Debug, Clone, Deserialize)]
struct Held {
    mode: String,
    who: String,
    why: String,
    ends_in_ms: Option<u64>,
}

/// One breaker with its thresholds and its history.
#[derive(Debug, Deserialize)]
pub(super) struct Detail {
    breaker: Shown,
    policy: Vec<Threshold>,
    history: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
struct Threshold {
    key: String,
    value: Option<String>,
    from: String,
}

impl Shown {
    /// Whether someone on call should look at it: not closed, or overridden.
    pub(super) fn troubled(&self) -> bool {
        self.state != "closed" || self.overridden()
    }

    fn overridden(&self) -> bool {
        !matches!(self.mode.as_str(), "" | "enforce")
    }

    /// Why it is as it is: who overrides it, why and until when; or what opened it.
    fn why(&self, now: Timestamp) -> String {
        let held = self.overrides.iter().map(|held| {
            let until = held.ends_in_ms.map_or_else(|| "until released".to_owned(), |ms| until(now, ms));
            format!("{} by {}: {}, {until}", held.mode, held.who, held.why)
        });
        let held: Vec<_> = held.collect();
        let reason = self.reason.clone().filter(|_| held.is_empty());
        held.into_iter().chain(reason).chain(self.last_failure()).collect::<Vec<_>>().join("; ")
    }

    /// The failure that was seen last, where the worker knows it. The only place of the commands that reads it.
    fn last_failure(&self) -> Option<String> {
        let failure = &self.last_failure;
        if self.state == "closed" {
            return None;
        }
        let text = ["text", "message", "detail"].iter().find_map(|key| failure[key].as_str());
        let parts: Vec<&str> = failure["kind"].as_str().into_iter().chain(text).chain(failure.as_str()).collect();
        (!parts.is_empty()).then(|| format!("last failure {}", parts.join(": ")))
    }

    /// Time until the next probe. A breaker that an operator holds sends none.
    fn next_probe(&self) -> String {
        match self.retry_in_ms.filter(|_| !self.overridden()) {
            #[expect(clippy::cast_precision_loss, reason = "to be read by people, in seconds")]
            Some(ms) => format!("{:.1} s", ms as f64 / 1000.0),
            None => String::new(),
        }
    }

    fn since(&self) -> String {
        self.since.map_or_else(String::new, |since| format!("{since:.0}"))
    }
}

fn until(now: Timestamp, ms: u64) -> String {
    let left = SignedDuration::from_millis(i64::try_from(ms).unwrap_or(i64::MAX));
    now.checked_add(left).map_or_else(|_| "for very long".to_owned(), |end| format!("until {end:.0}"))
}

/// All breakers as a table.
pub(super) fn list(breakers: &[Shown], now: Timestamp, paint: Paint) -> String {
    let mut table = Table::new(&["BREAKER", "STATE", "MODE", "SINCE", "NEXT PROBE IN", "WHY"]);
    for shown in breakers {
        let mode = if shown.mode.is_empty() { "?".to_owned() } else { shown.mode.clone() };
        table.row([
            shown.service.clone(),
            shown.state.clone(),
            mode,
            shown.since(),
            shown.next_probe(),
            shown.why(now),
        ]);
    }
    table.render(paint, 2)
}

/// One breaker: state, evidence, thresholds with their origin, and what happened to it.
pub(super) fn detail(detail: &Detail, now: Timestamp, paint: Paint) -> String {
    let Detail { breaker, policy, history } = detail;
    let rate = breaker.failure_rate.map(|rate| format!("{:.0} % of its window failed", rate * 100.0));
    let facts = [
        ("state", breaker.state.clone()),
        ("mode", breaker.mode.clone()),
        ("since", breaker.since()),
        ("why", breaker.why(now)),
        ("next probe in", breaker.next_probe()),
        ("failures in a row", breaker.consecutive_failures.to_string()),
        ("failure rate", rate.unwrap_or_default()),
        ("in flight", breaker.in_flight.to_string()),
    ];
    let mut out = format!("{}\n", paint.bold(&breaker.service));
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        out.push_str(&format!("  {name:<18} {value}\n"));
    }
    let mut table = Table::new(&["THRESHOLD", "VALUE", "FROM"]);
    for Threshold { key, value, from } in policy {
        table.row([key.clone(), value.clone().unwrap_or_else(|| "–".to_owned()), from.clone()]);
    }
    out.push_str(&format!("\n{}\n{}", table.render(paint, 2), paint.bold("history")));
    out.push('\n');
    out.push_str(&self::history(history));
    out
}

/// What happened, oldest first.
pub(super) fn history(entries: &[Entry]) -> String {
    if entries.is_empty() {
        return "  nothing yet\n".to_owned();
    }
    let lines = entries.iter().map(|entry| {
        let name = if entry.service.is_empty() { "(all)" } else { &entry.service };
        format!("  {:.0}  {name}  {}\n", entry.at, sentence(&entry.what))
    });
    lines.collect()
}

fn sentence(what: &What) -> String {
    match what {
        What::Transition { from, to, why, open_for_ms, last_failure } => {
            let time = open_for_ms.map(|ms| format!(", first probe after {} s", ms.div_ceil(1000)));
            let failure = last_failure.as_ref().filter(|_| to == "open").map(|text| format!("; last failure {text}"));
            format!("{from} -> {to}, because {why}{}{}", time.unwrap_or_default(), failure.unwrap_or_default())
        }
        What::WouldOpen { why } => format!("would have opened, because {why} (it only observes)"),
        What::Override { mode, who, why } => format!("{who}: {mode} ({why})"),
        What::Reconfigured => "thresholds changed".to_owned(),
        What::ReloadFailed { error } => format!("new thresholds refused: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(value: Value) -> Shown {
        serde_json::from_value(value).expect("a breaker")
    }

    #[test]
    fn an_override_shows_mode_who_why_and_until() {
        let held = shown(json!({
            "service": "tavily", "state": "open", "mode": "force_open", "reason": "force_open by alice: maintenance",
            "retry_in_ms": 3_600_000, "since": "2026-12-01T12:00:00Z",
            "overrides": [{ "mode": "force_open", "who": "alice", "why": "maintenance", "ends_in_ms": 3_600_000 }],
        }));
        let open = shown(json!({
            "service": "vies", "state": "open", "mode": "enforce", "reason": "5 consecutive failures", "retry_in_ms": 59_900,
            "last_failure": { "kind": "timeout", "text": "no answer within 10s" },
        }));
        let now: Timestamp = "2026-12-01T13:00:00Z".parse().expect("a time");
        let page = list(&[held.clone(), open], now, Paint::PLAIN);
        let lines: Vec<&str> = page.lines().collect();
        assert!(lines[1].contains("force_open by alice: maintenance, until 2026-12-01T14:00:00Z"), "{page}");
        assert!(lines[1].contains("2026-12-01T12:00:00Z") && !lines[1].contains("3600.0 s"), "no next probe: {page}");
        assert!(lines[2].contains("59.9 s") && lines[2].contains("timeout: no answer within 10s"), "{page}");
        assert!(held.troubled());
        let old = shown(json!({ "service": "x", "state": "closed" }));
        assert!(!old.troubled(), "a worker of another version");
    }

    #[test]
    fn the_history_is_in_sentences() {
        let entry = |event: Value| {
            let mut whole = json!({ "id": 1, "at": "2026-12-01T14:02:10Z", "service": "vies" });
            whole.as_object_mut().expect("an object").extend(event.as_object().expect("an object").clone());
            serde_json::from_value::<Entry>(whole).expect("an entry")
        };
        let opened = entry(json!({
            "event": "transition", "from": "closed", "to": "open", "why": "5 consecutive failures", "open_for_ms": 30_000
        }));
        let text = history(&[opened, entry(json!({ "event": "reconfigured" }))]);
        assert!(
            text.contains(
                "2026-12-01T14:02:10Z  vies  closed -> open, because 5 consecutive failures, first probe after 30 s"
            ),
            "{text}"
        );
        assert!(text.contains("thresholds changed"));
        assert!(history(&[]).contains("nothing yet"));
    }
}
