//! Live progress: redrawn in place on a terminal, one line per answer elsewhere.

use std::{
    io::{IsTerminal, Write as _, stderr},
    time::Duration,
};

use tokio::time::Instant;

use super::say;
use crate::report::{Paint, Step, neutral::clipped, step};

/// Lines of answers that stay on the screen.
const LINES: usize = 8;

/// How often a log gets a line about what is awaited.
const AWAITED: Duration = Duration::from_secs(10);

/// Shows the steps of one investigation on standard error.
pub(super) struct Progress {
    paint: Paint,
    /// Columns of the terminal; `None` if there is none.
    terminal: Option<usize>,
    began: Instant,
    /// Steps that were shown, by their operation. Without a terminal each is shown once.
    shown: Vec<String>,
    said: Instant,
    /// Without a terminal, each answer gets a line.
    logs: bool,
    /// Lines on the screen that the next drawing replaces.
    drawn: usize,
}

impl Progress {
    /// Progress on standard error.
    pub(super) fn new() -> Self {
        let columns = terminal_size::terminal_size_of(stderr()).map(|(width, _)| usize::from(width.0).clamp(40, 120));
        let terminal =
            columns.filter(|_| stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb"));
        let now = Instant::now();
        Self { paint: Paint::of(&stderr()), terminal, began: now, shown: Vec::new(), said: now, logs: true, drawn: 0 }
    }

    /// The same, silent without a terminal.
    pub(super) fn in_place() -> Self {
        Self { logs: false, ..Self::new() }
    }

    /// Shows the steps as they are now.
    pub(super) fn show(&mut self, steps: &[Step]) {
        match self.terminal {
            Some(width) => self.draw(&lines(steps, self.paint, width, self.began.elapsed())),
            None if self.logs => self.log(steps),
            None => {}
        }
    }

    /// Removes what was drawn: the report takes its place.
    pub(super) fn clear(&mut self) {
        self.draw(&[]);
    }

    fn draw(&mut self, lines: &[String]) {
        let mut out = String::new();
        if self.drawn > 0 {
            out.push_str(&format!("\x1b[{}A\x1b[J", self.drawn));
        }
        lines.iter().for_each(|line| {
            out.push_str(line);
            out.push('\n');
        });
        self.drawn = lines.len();
        let _ = stderr().write_all(out.as_bytes());
    }

    fn log(&mut self, steps: &[Step]) {
        for settled in steps.iter().filter(|step| step.status.is_some()) {
            if !self.shown.contains(&settled.operation) {
                self.shown.push(settled.operation.clone());
                say(format_args!("{}", step(settled, self.paint, 160)));
            }
        }
        let waiting = awaited(steps);
        if self.said.elapsed() >= AWAITED && !waiting.is_empty() {
            self.said = Instant::now();
            say(format_args!("  waiting for {}", clipped(&waiting.join(", "), 140)));
        }
    }
}

/// The questions without an answer.
fn awaited(steps: &[Step]) -> Vec<&str> {
    steps.iter().filter(|step| step.status.is_none()).map(|step| step.operation.as_str()).collect()
}

/// What the terminal shows: how far it is, the last answers, and what is awaited.
fn lines(steps: &[Step], paint: Paint, width: usize, time: Duration) -> Vec<String> {
    let settled: Vec<&Step> = steps.iter().filter(|step| step.status.is_some()).collect();
    let head = match steps.len() {
        0 => format!("  waiting for a worker, {:.0} s", time.as_secs_f64()),
        all => format!("  {} of {all} answered, {:.0} s", settled.len(), time.as_secs_f64()),
    };
    let mut lines = vec![paint.bold(&head)];
    lines.extend(settled.iter().rev().take(LINES).rev().map(|each| step(each, paint, width - 1)));
    let waiting = awaited(steps);
    if !waiting.is_empty() {
        lines.push(paint.dim(&clipped(&format!("  … {}", waiting.join(", ")), width - 1)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use osint_activities::model::Status;
    use unicode_width::UnicodeWidthStr;

    use super::*;

    #[test]
    fn progress_takes_a_small_part_of_the_screen() {
        let step = |n: usize| Step {
            source: "s".into(),
            operation: format!("source_number_{n}.operation"),
            status: (n < 20).then_some(Status::Degraded),
            reason: Some("a long reason ".repeat(9)),
            duration_ms: 1,
        };
        let steps: Vec<Step> = (0..40).map(step).collect();
        let lines = lines(&steps, Paint::PLAIN, 60, Duration::from_secs(3));
        assert!(lines.len() <= LINES + 2 && lines.iter().all(|line| line.width() < 60), "{lines:#?}");
        assert!(lines[0].contains("20 of 40") && lines.last().is_some_and(|line| line.contains("source_number_20")));
    }
}
