//! What stands on the page of a report, and in which order: the company, what matters, its people, the gaps, the sources.

use std::time::Duration;

use jiff::Timestamp;
use osint_activities::model::{Finding, Status};

use super::{Block, Cell, Page, Section, Tone, graph::Graph, timeline::Timeline, without_empty_columns};
use crate::report::{
    BreakerStatus, Gap, Report,
    insight::{Attention, Fact, Insight, Level, Person, Presence, Screened, Signal, VerdictWord, sources},
};

/// What matters most is in the summary too. More of it is counted.
const FIRST: usize = 3;

/// Composes the page of a report.
#[must_use]
pub fn compose(report: &Report) -> Page {
    let insight = Insight::of(report);
    let ended = report.ended();
    let subject = &report.subject;
    let name = subject.name.as_deref().or(subject.lei.as_deref()).or(subject.vat.as_deref()).unwrap_or("company");
    let id = subject.id.as_deref().map(|id| format!(" {id}")).unwrap_or_default();
    let date = ended.map(|at| format!(", {}", at.strftime("%Y-%m-%d %H:%M UTC"))).unwrap_or_default();
    let company = Section { title: "The company", blocks: company(&insight.facts) };
    let matters = Section { title: "Findings that matter", blocks: matters(report, &insight) };
    let people = Section { title: "Who acts for it and who owns it", blocks: people(name, &insight.people) };
    let unknown = Section { title: "What is not known", blocks: unknown(report, &insight.people) };
    let signals = Section { title: "Risk signals", blocks: vec![signals(&insight.signals)] };
    let mut sections = vec![company, matters, people, unknown, signals];
    sections.push(Section { title: "Sources", blocks: asked(report, ended) });
    if !report.breakers.is_empty() {
        sections.push(Section { title: "Circuit breakers", blocks: breakers(&report.breakers, ended) });
    }
    sections.extend(timeline(report));
    Page {
        title: Cell::plain(format!("{name} ({}{id})", subject.country)),
        subtitle: Cell::new(Tone::Dim, format!("{}{date}", report.investigation_id)),
        summary: summary(report, &insight),
        sections,
    }
}

fn summary(report: &Report, insight: &Insight) -> Vec<Cell> {
    let tone = match insight.verdict.word {
        VerdictWord::Complete | VerdictWord::CompleteAsFarAsItApplies => Tone::Good,
        VerdictWord::Partial => Tone::Warn,
    };
    let (tone_of_lists, lists) = match &insight.subject_screening {
        Screened::NotScreened => {
            (Tone::Bad, "NOT SCREENED: no watch list answered in full about this company".to_owned())
        }
        hit @ Screened::Hit { .. } => (Tone::Bad, format!("watch lists: {}", hit.label())),
        none @ Screened::NoHit { .. } => (Tone::Good, format!("watch lists: {}", none.label())),
    };
    let mut cells = vec![Cell::new(tone, insight.verdict.sentence()), Cell::new(tone_of_lists, lists)];
    let serious: Vec<&Attention> = insight.attention.iter().filter(|each| each.level != Level::Note).collect();
    cells.extend(serious.iter().take(FIRST).map(|each| Cell::new(tone_of(each.level), &each.text)));
    if serious.len() > FIRST {
        cells.push(Cell::new(Tone::Warn, format!("{} more findings that matter: see below", serious.len() - FIRST)));
    }
    cells.push(Cell::plain(&report.coverage.statement));
    cells
}

const fn tone_of(level: Level) -> Tone {
    match level {
        Level::Alert => Tone::Bad,
        Level::Warning => Tone::Warn,
        Level::Note => Tone::Dim,
    }
}

fn company(facts: &[Fact]) -> Vec<Block> {
    if facts.is_empty() {
        return vec![Block::Text(Cell::new(Tone::Warn, "No register that answered describes this company."))];
    }
    let row = |fact: &Fact| {
        let label = if fact.conflict {
            Cell::new(Tone::Warn, format!("{} (sources differ)", fact.label))
        } else {
            Cell::plain(fact.label)
        };
        let values = fact.values.iter().map(|stated| {
            let tone = if fact.conflict { Tone::Warn } else { Tone::Plain };
            (Cell::new(tone, &stated.value), Cell::new(Tone::Dim, sources(&stated.origins)))
        });
        (label, values.collect())
    };
    vec![Block::Facts(facts.iter().map(row).collect())]
}

fn matters(report: &Report, insight: &Insight) -> Vec<Block> {
    let mut items: Vec<Cell> = insight
        .attention
        .iter()
        .map(|each| Cell::new(tone_of(each.level), format!("{} [{}]", each.text, sources(&each.origins))))
        .collect();
    items.extend(report.warnings.iter().map(|warning| Cell::new(Tone::Warn, warning)));
    if items.is_empty() {
        let open = report.coverage.gaps.len() + report.coverage.not_asked.len();
        let text = match open {
            0 => "None of the answers calls for attention.".to_owned(),
            _ => format!("None of the answers calls for attention. {open} questions have no full answer: see below."),
        };
        return vec![Block::Text(Cell::new(if open == 0 { Tone::Plain } else { Tone::Warn }, text))];
    }
    vec![Block::List(items)]
}

fn people(company: &str, people: &[Person]) -> Vec<Block> {
    if people.is_empty() {
        return vec![Block::Text(Cell::new(
            Tone::Warn,
            "No source that answered names anybody. That does not mean that there are none.",
        ))];
    }
    let row = |person: &Person| {
        let tone = match person.screened {
            Screened::Hit { .. } => Tone::Bad,
            Screened::NoHit { .. } => Tone::Good,
            Screened::NotScreened => Tone::Warn,
        };
        let detail = person.detail.clone().unwrap_or_else(|| person.relation.label().to_owned());
        let year = person.birth_year.map(|year| format!(" (born {year})")).unwrap_or_default();
        vec![
            Cell::plain(format!("{}{year}", person.name)),
            Cell::plain(detail),
            Cell::plain(person.since.as_deref().unwrap_or_default()),
            Cell::new(tone, person.screened.label()),
            Cell::new(Tone::Dim, sources(&person.origins)),
        ]
    };
    let head = vec!["NAME", "ROLE OR SHARE", "SINCE", "WATCH LISTS", "SAYS"];
    let table = without_empty_columns(head, people.iter().map(row).collect());
    vec![Block::Graph(Graph::of(company, people)), table]
}

fn unknown(report: &Report, people: &[Person]) -> Vec<Block> {
    let coverage = &report.coverage;
    let gap = |gap: &Gap| {
        let finding = report.findings.iter().find(|finding| finding.operation == gap.operation);
        let why = finding.map(reason).filter(|why| !why.is_empty()).map(|why| format!(" ({why})")).unwrap_or_default();
        let tone = if gap.status == Status::Degraded { Tone::Bad } else { Tone::Warn };
        Cell::new(tone, format!("{}: {}{why}", gap.operation, gap.means))
    };
    let not_asked = |gap: &Gap| Cell::new(Tone::Dim, format!("{}: {}", gap.operation, gap.means));
    let gaps = coverage.gaps.iter().map(gap).chain(coverage.not_asked.iter().map(not_asked));
    let mut items: Vec<Cell> = gaps.collect();
    let mut unscreened: Vec<&str> = Vec::new();
    for person in people.iter().filter(|person| person.screened == Screened::NotScreened) {
        if !unscreened.contains(&person.name.as_str()) {
            unscreened.push(&person.name);
        }
    }
    if !unscreened.is_empty() {
        let names = unscreened.join(", ");
        items.push(Cell::new(
            Tone::Warn,
            format!("whether watch lists name these people, who were not screened: {names}"),
        ));
    }
    if items.is_empty() {
        return vec![Block::Text(Cell::plain("Every question that applies was answered in full."))];
    }
    vec![Block::List(items)]
}

fn signals(signals: &[Signal]) -> Block {
    let row = |signal: &Signal| {
        let tone = match signal.presence {
            Presence::Present => Tone::Bad,
            Presence::Absent => Tone::Good,
            Presence::NotAssessed => Tone::Warn,
        };
        let rests_on = match (signal.missing.is_empty(), signal.rests_on.is_empty()) {
            (false, _) if signal.presence != Presence::Present => format!("missing: {}", signal.missing.join(", ")),
            (_, true) => "no question about it applies".to_owned(),
            _ => signal.rests_on.join(", "),
        };
        vec![Cell::plain(signal.title), Cell::new(tone, signal.presence.label()), Cell::new(Tone::Dim, rests_on)]
    };
    Block::Table { head: vec!["SIGNAL", "OUTCOME", "RESTS ON"], rows: signals.iter().map(row).collect() }
}

fn asked(report: &Report, ended: Option<Timestamp>) -> Vec<Block> {
    let row = |finding: &Finding| {
        let time = finding.started_at.filter(|_| finding.attempts > 0).map(|_| finding.duration_ms.to_string());
        let tries = (finding.attempts > 0).then(|| finding.attempts.to_string());
        let text = |text: Option<String>| Cell::plain(text.unwrap_or_default());
        vec![
            Cell::plain(&finding.operation),
            Cell::new(tone(finding.status), finding.status.as_str()),
            text(time),
            text(tries),
            text(finding.via.clone()),
            text(ended.zip(finding.as_of).map(|(now, then)| age(now, then))),
            Cell::plain(reason(finding)),
        ]
    };
    let head = vec!["SOURCE", "STATUS", "MS", "TRIES", "VIA", "DATA", "REASON"];
    let mut blocks = vec![without_empty_columns(head, report.asked().map(row).collect())];
    let names = not_applicable(report);
    if !names.is_empty() {
        blocks.push(Block::Text(Cell::new(Tone::Dim, format!("Not applicable: {}.", names.join(", ")))));
    }
    blocks
}

/// The tone of a status.
pub(super) const fn tone(status: Status) -> Tone {
    match status {
        Status::Complete | Status::NotFound => Tone::Good,
        Status::Degraded => Tone::Bad,
        Status::NotApplicable => Tone::Dim,
        Status::Partial | Status::Cached | Status::Pending | Status::NeedsReview | Status::Skipped => Tone::Warn,
    }
}

/// How old data is: days, or `today`.
fn age(now: Timestamp, then: Timestamp) -> String {
    let days = (now.as_second() - then.as_second()).max(0) / 86_400;
    if days == 0 { "today".to_owned() } else { format!("{days} d old") }
}

/// The reason, with the id of a job that was paid for, and when it makes sense to ask again.
fn reason(finding: &Finding) -> String {
    let job = finding.job.as_ref().map(|job| format!("job {}", job.id));
    let next = finding.retry_at.filter(|_| finding.status.is_gap());
    let next = next.map(|at| match finding.status {
        Status::Pending => format!("to be collected from {}", clock(at)),
        _ => format!("next try {}", clock(at)),
    });
    finding.reason.iter().cloned().chain(job).chain(next).collect::<Vec<_>>().join("; ")
}

/// A time of day.
fn clock(at: Timestamp) -> String {
    at.strftime("%H:%M:%S UTC").to_string()
}

/// What does not apply. A source without any applicable operation is named once, otherwise each operation is named.
fn not_applicable(report: &Report) -> Vec<&str> {
    let asked: Vec<&str> = report.asked().map(|finding| finding.source.as_str()).collect();
    let mut names = Vec::new();
    let not_asked = |name: &str| report.coverage.not_asked.iter().any(|gap| gap.operation == name);
    let unasked = report.findings.iter().filter(|finding| finding.status == Status::NotApplicable);
    for finding in unasked.filter(|finding| !not_asked(&finding.operation)) {
        let whole = !asked.contains(&finding.source.as_str());
        let name = if whole { &finding.source } else { &finding.operation };
        if !names.contains(&name.as_str()) {
            names.push(name.as_str());
        }
    }
    names
}

/// The breakers that are not closed, and how many are.
fn breakers(states: &[BreakerStatus], ended: Option<Timestamp>) -> Vec<Block> {
    let (closed, others): (Vec<_>, Vec<_>) = states.iter().partition(|breaker| breaker.state == "closed");
    let row = |breaker: &&BreakerStatus| {
        let due = breaker.retry_in_ms.map(|ms| {
            let at = ended.and_then(|at| at.checked_add(Duration::from_millis(ms)).ok());
            let at = at.map(|at| format!(" ({})", clock(at))).unwrap_or_default();
            format!("{} s{at}", ms.div_ceil(1000))
        });
        let state = Cell::new(Tone::Bad, breaker.state.replace('_', "-"));
        vec![Cell::plain(&breaker.service), state, Cell::plain(due.unwrap_or_default())]
    };
    let mut blocks = Vec::new();
    if !others.is_empty() {
        let head = vec!["BREAKER", "STATE", "NEXT PROBE IN"];
        blocks.push(Block::Table { head, rows: others.iter().map(row).collect() });
    }
    let text = match (closed.len(), others.is_empty()) {
        (0, _) => return blocks,
        (count, true) => format!("All {count} are closed."),
        (1, false) => "1 other is closed.".to_owned(),
        (count, false) => format!("{count} others are closed."),
    };
    blocks.push(Block::Text(Cell::new(Tone::Good, text)));
    blocks
}

fn timeline(report: &Report) -> Option<Section> {
    let timeline = Timeline::of(report)?;
    Some(Section { title: "What was asked when", blocks: vec![Block::Timeline(timeline)] })
}
