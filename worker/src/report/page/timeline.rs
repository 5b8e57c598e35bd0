//! What was asked when, as a drawing: one bar a question, and a line for as long as a breaker kept a source from being asked.

use std::{fmt::Write as _, time::Duration};

use jiff::Timestamp;
use osint_activities::model::Finding;

use super::{Tone, compose::tone, html::escape};
use crate::report::{Report, neutral::clipped};

const WIDTH: i64 = 380;
const LABEL: i64 = 168;
const ROW: i64 = 18;

/// Questions of one investigation lie closer together than this. Earlier answers that were taken over are left out.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// The drawing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    start: Timestamp,
    span_ms: i64,
    bars: Vec<Bar>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Bar {
    label: String,
    title: String,
    from_ms: i64,
    length_ms: i64,
    tone: Tone,
    blocked: bool,
}

impl Timeline {
    /// The drawing of a report; `None` if nothing was asked.
    #[must_use]
    pub fn of(report: &Report) -> Option<Self> {
        let end = report.ended()?;
        let asked =
            |finding: &&Finding| finding.started_at.is_some_and(|at| end.duration_since(at).unsigned_abs() <= LONGEST);
        let findings: Vec<&Finding> = report.findings.iter().filter(asked).collect();
        let start = findings.iter().filter_map(|finding| finding.started_at).min()?;
        let span_ms = (end.as_millisecond() - start.as_millisecond()).max(1);
        let mut bars: Vec<Bar> = findings.iter().filter_map(|finding| bar(report, finding, start)).collect();
        bars.sort_by_key(|bar| bar.from_ms);
        Some(Self { start, span_ms, bars })
    }

    /// The drawing as SVG.
    pub(super) fn svg(&self) -> String {
        let rows = i64::try_from(self.bars.len()).unwrap_or(0);
        let height = (rows + 1) * ROW + 4;
        let room = WIDTH - LABEL - 2;
        let x = |ms: i64| LABEL + ms * room / self.span_ms;
        let mut out = format!(
            "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"One bar for each question; the table of sources says the same\">"
        );
        for (n, bar) in (0..).zip(&self.bars) {
            let y = n * ROW;
            let (from, width) = (x(bar.from_ms).min(WIDTH - 4), (bar.length_ms * room / self.span_ms).max(3));
            let width = width.min(WIDTH - from);
            let class = match bar.tone {
                Tone::Good => "good",
                Tone::Bad => "bad",
                Tone::Warn => "warn",
                Tone::Plain | Tone::Dim => "more",
            };
            let _ = write!(
                out,
                "<g><title>{}</title><text class=\"remark\" x=\"0\" y=\"{}\">{}</text>\
                 <rect class=\"bar {class}\" x=\"{from}\" y=\"{}\" width=\"{width}\" height=\"10\"/>",
                escape(&bar.title),
                y + 12,
                escape(&bar.label),
                y + 4
            );
            if bar.blocked {
                let _ = write!(
                    out,
                    "<path class=\"blocked\" d=\"M{from} {}H{WIDTH}\"/><text class=\"remark bad\" x=\"{}\" y=\"{}\">breaker open</text>",
                    y + 9,
                    (from + 6).min(WIDTH - 70),
                    y + 7
                );
            }
            out.push_str("</g>");
        }
        let seconds = format!("{}.{:01} s", self.span_ms / 1000, self.span_ms % 1000 / 100);
        let y = rows * ROW + 14;
        let _ = write!(
            out,
            "<text class=\"remark\" x=\"{LABEL}\" y=\"{y}\">{}</text><text class=\"remark\" x=\"{WIDTH}\" y=\"{y}\" text-anchor=\"end\">+ {seconds}</text></svg>",
            self.start.strftime("%H:%M:%S UTC")
        );
        out
    }
}

fn bar(report: &Report, finding: &Finding, start: Timestamp) -> Option<Bar> {
    let at = finding.started_at?;
    let length_ms = i64::try_from(finding.duration_ms).unwrap_or(i64::MAX);
    let open = |name: &str| {
        let of_source =
            |service: &str| service == name || service.split_once(':').is_some_and(|(whole, _)| whole == name);
        report.breakers.iter().any(|breaker| of_source(&breaker.service) && breaker.state != "closed")
    };
    Some(Bar {
        label: clipped(&finding.operation, 28),
        title: clipped(&format!("{}: {}, {} ms", finding.operation, finding.status, finding.duration_ms), 120),
        from_ms: at.as_millisecond() - start.as_millisecond(),
        length_ms,
        tone: tone(finding.status),
        blocked: finding.status.is_gap() && open(&finding.source),
    })
}
