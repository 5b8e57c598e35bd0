//! The report on a terminal: tables with aligned columns, and colours.
//!
//! `comfy-table` would not shorten this. Its tables pad the last column and bring crossterm along, and a cell here takes its
//! colour from a status.

use std::{fmt::Write as _, io::IsTerminal};

use osint_activities::model::{Finding, Status};

use super::{BreakerStatus, Report, Step};

/// Whether to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint(bool);

/// Colours as terminals number them.
const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";

impl Paint {
    /// No colours.
    pub const PLAIN: Self = Self(false);

    /// Colours if `stream` is a terminal and `NO_COLOR` is not set.
    #[must_use]
    pub fn of(stream: &impl IsTerminal) -> Self {
        Self(stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()))
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// A heading.
    #[must_use]
    pub fn bold(self, text: &str) -> String {
        self.with(BOLD, text)
    }

    /// Less important text.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.with(DIM, text)
    }

    fn status(self, status: Status, text: &str) -> String {
        let code = match status {
            Status::Complete | Status::NotFound => GREEN,
            Status::Degraded => RED,
            Status::NotApplicable | Status::Skipped => DIM,
            Status::Partial | Status::Cached | Status::Pending | Status::NeedsReview => YELLOW,
        };
        self.with(code, text)
    }

    fn state(self, state: &str, text: &str) -> String {
        self.with(if state == "closed" { GREEN } else { RED }, text)
    }
}

/// A table whose columns are as wide as their widest cell. Cells are padded before they are coloured.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<(String, Option<Colour>)>>,
}

#[derive(Debug, Clone)]
enum Colour {
    Head,
    Of(Status),
    State(String),
}

impl Table {
    /// A table with these headings.
    #[must_use]
    pub fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|cell| ((*cell).to_owned(), Some(Colour::Head))).collect()] }
    }

    /// Adds a row of plain cells.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| (cell, None)).collect());
    }

    /// The table, one line a row, with this many spaces before each.
    #[must_use]
    pub fn render(&self, paint: Paint, indent: usize) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|(text, _)| text.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = " ".repeat(indent);
            for (column, (text, colour)) in row.iter().enumerate() {
                let last = column + 1 == row.len();
                let padded = if last { text.clone() } else { format!("{text:<width$}  ", width = widths[column]) };
                line.push_str(&match colour {
                    None => padded,
                    Some(Colour::Head) => paint.bold(&padded),
                    Some(Colour::Of(status)) => paint.status(*status, &padded),
                    Some(Colour::State(state)) => paint.state(state, &padded),
                });
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

fn finding_row(finding: &Finding) -> Vec<(String, Option<Colour>)> {
    let time = if finding.started_at.is_none() { "–".to_owned() } else { format!("{} ms", finding.duration_ms) };
    let attempts = if finding.attempts == 0 { "–".to_owned() } else { finding.attempts.to_string() };
    vec![
        (finding.operation.clone(), None),
        (finding.status.to_string(), Some(Colour::Of(finding.status))),
        (time, None),
        (attempts, None),
        (reason(finding), None),
    ]
}

/// The reason, and the id of a job that was started and paid for.
fn reason(finding: &Finding) -> String {
    let job = finding.job.as_ref().map(|job| match finding.retry_at {
        Some(at) if finding.status == Status::Pending => format!("job {}, to be collected from {at:.0}", job.id),
        _ => format!("job {}", job.id),
    });
    finding.reason.iter().cloned().chain(job).collect::<Vec<_>>().join("; ")
}

/// A report as a page: the company, the findings, the coverage, the breakers.
#[must_use]
pub fn page(report: &Report, paint: Paint) -> String {
    let subject = &report.subject;
    let name = subject.name.as_deref().or(subject.lei.as_deref()).or(subject.vat.as_deref()).unwrap_or("company");
    let id = subject.id.as_deref().unwrap_or_default();
    let title = format!("{name} ({} {id})", subject.country).replace(" )", ")");
    let mut out = format!("{}  {}\n\n", paint.bold(&title), report.status.as_str());
    let mut table = Table::new(&["SOURCE", "STATUS", "TIME", "TRIES", "REASON"]);
    table.rows.extend(report.asked().map(finding_row));
    out.push_str(&table.render(paint, 2));
    let not_applicable = not_applicable(report);
    if !not_applicable.is_empty() {
        let _ = writeln!(out, "{}", paint.dim(&wrapped(&format!("not applicable: {}", not_applicable.join(", ")))));
    }
    let _ = writeln!(out, "\n{}", wrapped(&report.coverage.statement));
    for warning in &report.warnings {
        let _ = writeln!(out, "  - warning: {warning}");
    }
    for gap in report.coverage.gaps.iter().chain(&report.coverage.not_asked) {
        let _ = writeln!(out, "  - {}: {}", gap.operation, gap.means);
    }
    if !report.breakers.is_empty() {
        let _ = write!(out, "\n{}", breakers(&report.breakers, paint));
    }
    out
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

/// A paragraph in lines of readable length.
fn wrapped(text: &str) -> String {
    let (mut out, mut column) = (String::new(), 0);
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > 96 {
            out.push('\n');
            column = 0;
        }
        out.push_str(if column == 0 { "  " } else { " " });
        out.push_str(word);
        column += 1 + width;
    }
    out
}

/// Breakers as a table.
#[must_use]
pub fn breakers(states: &[BreakerStatus], paint: Paint) -> String {
    let mut table = Table::new(&["BREAKER", "STATE", "NEXT PROBE IN"]);
    for BreakerStatus { service, state, retry_in_ms } in states {
        #[expect(clippy::cast_precision_loss, reason = "to be read by people, in seconds")]
        let due = retry_in_ms.map_or_else(String::new, |ms| format!("{:.1} s", ms as f64 / 1000.0));
        table.rows.push(vec![
            (service.clone(), None),
            (state.clone(), Some(Colour::State(state.clone()))),
            (due, None),
        ]);
    }
    table.render(paint, 2)
}

/// One line of live progress.
#[must_use]
pub fn step(step: &Step, paint: Paint) -> String {
    let Some(status) = step.status else { return format!("  … {:<28}", step.operation) };
    let mark = match status {
        Status::Complete | Status::NotFound => "✓",
        Status::Degraded => "✗",
        _ => "·",
    };
    let reason = step.reason.as_deref().map(|reason| format!("  {reason}")).unwrap_or_default();
    let name = status.to_string();
    format!(
        "  {} {:<28} {}  {} ms{reason}",
        paint.status(status, mark),
        step.operation,
        paint.status(status, &name),
        step.duration_ms
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_by_characters_without_trailing_spaces() {
        let mut table = Table::new(&["A", "B", "C"]);
        table.row(["š".into(), "longer".into(), String::new()]);
        table.row(["four".into(), "x".into(), "end".into()]);
        assert_eq!(table.render(Paint::PLAIN, 1), " A     B       C\n š     longer\n four  x       end\n");
    }

    #[test]
    fn a_state_is_coloured_only_on_request() {
        let states = [BreakerStatus { service: "tavily".into(), state: "open".into(), retry_in_ms: Some(59_900) }];
        let plain = breakers(&states, Paint::PLAIN);
        assert!(plain.contains("tavily   open   59.9 s") && !plain.contains('\x1b'), "{plain}");
        assert!(breakers(&states, Paint(true)).contains("\x1b[31mopen"));
    }
}
