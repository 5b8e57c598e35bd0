//! The verdict of a whole report, in one vocabulary.

use osint_activities::model::Status;
use serde::Serialize;

use super::super::{Coverage, Gap};

/// Operations whose source is closed to the public. They cannot be asked, today or tomorrow.
const CLOSED: &[&str] = &["cz_ubo.owners"];

/// How complete a report is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictWord {
    /// Every question was answered in full.
    Complete,
    /// Only questions that cannot be asked about this subject are missing.
    CompleteAsFarAsItApplies,
    /// Something that could be known is not.
    Partial,
}

/// The verdict and its reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The verdict.
    pub word: VerdictWord,
    /// Why it is not simply complete, in sentences.
    pub reasons: Vec<String>,
}

impl VerdictWord {
    /// The words for people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::CompleteAsFarAsItApplies => "complete as far as it applies",
            Self::Partial => "partial",
        }
    }
}

impl Verdict {
    /// The verdict of a coverage.
    #[must_use]
    pub fn of(coverage: &Coverage) -> Self {
        let (closed, gaps): (Vec<&Gap>, Vec<&Gap>) =
            coverage.gaps.iter().partition(|gap| CLOSED.contains(&gap.operation.as_str()));
        let (screenings, others): (Vec<&Gap>, Vec<&Gap>) =
            coverage.not_asked.iter().partition(|gap| is_screening(&gap.operation));
        let mut reasons = Vec::new();
        if coverage.asked == 0 {
            reasons.push("no source had a question for this subject".to_owned());
        } else if coverage.answered == 0 {
            reasons.push("no source answered".to_owned());
        }
        let waiting = gaps.iter().filter(|gap| gap.status == Status::Pending).count();
        let cached = gaps.iter().filter(|gap| gap.status == Status::Cached).count();
        let open = gaps.len() - waiting - cached;
        reasons.extend(counted(open, "question has", "questions have", "no full answer"));
        reasons.extend(counted(waiting, "source is", "sources are", "still working"));
        reasons.extend(counted(cached, "answer is", "answers are", "of an earlier date"));
        reasons.extend(screenings.iter().map(|gap| format!("{} was not asked", gap.operation)));
        let word = match (reasons.is_empty(), closed.is_empty() && others.is_empty()) {
            (false, _) => VerdictWord::Partial,
            (true, false) => VerdictWord::CompleteAsFarAsItApplies,
            (true, true) => VerdictWord::Complete,
        };
        reasons.extend(closed.iter().map(|gap| format!("{} is closed to the public", gap.source)));
        reasons.extend(counted(others.len(), "question", "questions", "cannot be asked about this subject"));
        Self { word, reasons }
    }

    /// The verdict with its reasons: `partial: 2 questions have no full answer`.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self.reasons.as_slice() {
            [] => self.word.as_str().to_owned(),
            reasons => format!("{}: {}", self.word.as_str(), reasons.join("; ")),
        }
    }
}

/// True for a screening: without it, no report on a company is complete.
pub(super) fn is_screening(operation: &str) -> bool {
    matches!(operation, "opensanctions.match" | "opensanctions.persons" | "opensanctions_feed.screen")
}

fn counted(count: usize, one: &str, many: &str, what: &str) -> Option<String> {
    (count > 0).then(|| format!("{count} {} {what}", if count == 1 { one } else { many }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(operation: &str, status: Status) -> Gap {
        let source = operation.split('.').next().expect("a source").to_owned();
        Gap { source, operation: operation.to_owned(), status, means: String::new() }
    }

    fn coverage(gaps: Vec<Gap>, not_asked: Vec<Gap>) -> Coverage {
        let answered = 9 - gaps.len();
        Coverage { asked: 9, answered, gaps, not_asked, not_applicable: 0, statement: String::new() }
    }

    #[test]
    fn the_verdict_follows_what_could_be_known() {
        let word = |gaps, not_asked| Verdict::of(&coverage(gaps, not_asked)).word;
        assert_eq!(word(vec![], vec![]), VerdictWord::Complete);
        let website = || gap("crawl4ai.website", Status::NotApplicable);
        assert_eq!(word(vec![], vec![website()]), VerdictWord::CompleteAsFarAsItApplies);
        let closed = gap("cz_ubo.owners", Status::Degraded);
        assert_eq!(word(vec![closed], vec![website()]), VerdictWord::CompleteAsFarAsItApplies);
        for status in Status::ALL.into_iter().filter(|status| status.is_gap()) {
            assert_eq!(word(vec![gap("gleif.record", status)], vec![]), VerdictWord::Partial, "{status}");
        }
        let unscreened = gap("opensanctions.match", Status::NotApplicable);
        assert_eq!(word(vec![], vec![unscreened]), VerdictWord::Partial, "a company that was not screened");
    }

    #[test]
    fn nothing_asked_is_not_complete() {
        let nothing = Coverage { asked: 0, answered: 0, ..coverage(vec![], vec![]) };
        assert_eq!(Verdict::of(&nothing).word, VerdictWord::Partial);
    }

    #[test]
    fn reasons_are_counted() {
        let gaps = vec![gap("a.b", Status::Degraded), gap("c.d", Status::Skipped), gap("e.f", Status::Cached)];
        let verdict = Verdict::of(&coverage(gaps, vec![gap("x.y", Status::NotApplicable)]));
        assert_eq!(
            verdict.sentence(),
            "partial: 2 questions have no full answer; 1 answer is of an earlier date; \
             1 question cannot be asked about this subject"
        );
    }
}
