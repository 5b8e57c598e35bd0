//! Tables with aligned columns, colours, and the lines of progress on a terminal.
//!
//! `comfy-table` would not shorten this. Its tables pad the last column and bring crossterm along, and a cell here takes its
//! colour from a status.

use std::io::IsTerminal;

use osint_activities::model::Status;
use unicode_width::UnicodeWidthStr;

use super::{
    BreakerStatus, Step,
    neutral::{clipped, neutral},
};

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

    pub(super) fn green(self, text: &str) -> String {
        self.with(GREEN, text)
    }

    pub(super) fn yellow(self, text: &str) -> String {
        self.with(YELLOW, text)
    }

    pub(super) fn red(self, text: &str) -> String {
        self.with(RED, text)
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
    State(String),
}

impl Table {
    /// A table with these headings.
    #[must_use]
    pub fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|cell| ((*cell).to_owned(), Some(Colour::Head))).collect()] }
    }

    /// Adds a row of plain cells. Their text is made [harmless](neutral).
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| (neutral(&cell), None)).collect());
    }

    /// The table, one line a row, with this many spaces before each.
    #[must_use]
    pub fn render(&self, paint: Paint, indent: usize) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|(text, _)| text.width()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = " ".repeat(indent);
            for (column, (text, colour)) in row.iter().enumerate() {
                let last = column + 1 == row.len();
                let pad = if last { 0 } else { widths[column] - text.width() + 2 };
                let padded = format!("{text}{}", " ".repeat(pad));
                line.push_str(&match colour {
                    None => padded,
                    Some(Colour::Head) => paint.bold(&padded),
                    Some(Colour::State(state)) => paint.state(state, &padded),
                });
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

/// Breakers as a table.
#[must_use]
pub fn breakers(states: &[BreakerStatus], paint: Paint) -> String {
    let mut table = Table::new(&["BREAKER", "STATE", "NEXT PROBE IN"]);
    for BreakerStatus { service, state, retry_in_ms } in states {
        #[expect(clippy::cast_precision_loss, reason = "to be read by people, in seconds")]
        let due = retry_in_ms.map_or_else(String::new, |ms| format!("{:.1} s", ms as f64 / 1000.0));
        table.rows.push(vec![
            (neutral(service), None),
            (neutral(state), Some(Colour::State(state.clone()))),
            (due, None),
        ]);
    }
    table.render(paint, 2)
}

/// One line of live progress, at most `width` columns wide.
#[must_use]
pub fn step(step: &Step, paint: Paint, width: usize) -> String {
    let name = neutral(&step.operation);
    let Some(status) = step.status else { return clipped(&format!("… {name}"), width) };
    let mark = match status {
        Status::Complete | Status::NotFound => "✓",
        Status::Degraded => "✗",
        _ => "·",
    };
    let (word, time) = (status.to_string(), format!("{} ms", step.duration_ms));
    let room = width.saturating_sub(2 + 2 + 28 + 1 + word.width() + 2 + time.width() + 2);
    let reason = step.reason.as_deref().filter(|_| room > 8).map(|reason| format!("  {}", clipped(reason, room)));
    format!(
        "  {} {name:<28} {}  {time}{}",
        paint.status(status, mark),
        paint.status(status, &word),
        reason.unwrap_or_default()
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
    fn a_line_of_progress_is_harmless_and_fits() {
        let long = Some(format!("\u{1b}[2J\n{}", "reason ".repeat(40)));
        let step =
            |status, reason| Step { source: "a".into(), operation: "a.b".into(), status, reason, duration_ms: 7 };
        for settled in [step(Some(Status::Degraded), long), step(None, None)] {
            let line = super::step(&settled, Paint::PLAIN, 60);
            assert!(line.width() <= 60 && !line.contains('\u{1b}') && !line.contains('\n'), "{line}");
        }
    }

    #[test]
    fn a_state_is_coloured_only_on_request() {
        let states = [BreakerStatus { service: "tavily".into(), state: "open".into(), retry_in_ms: Some(59_900) }];
        let plain = breakers(&states, Paint::PLAIN);
        assert!(plain.contains("tavily   open   59.9 s") && !plain.contains('\x1b'), "{plain}");
        assert!(breakers(&states, Paint(true)).contains("\x1b[31mopen"));
    }
}
