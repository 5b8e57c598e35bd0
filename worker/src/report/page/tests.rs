//! One sentence holds in every format: a subject whose screening failed never reads as screened. And no name of a stranger
//! acts in any of them.

use jiff::Timestamp;
use osint_activities::{
    catalog::operations,
    model::{Company, Facts, Finding, Hit, Officer, Owner, Screening, Standing, Status, Subject, VatCheck},
};
use unicode_width::UnicodeWidthStr;

use super::{compose, html, markdown, text};
use crate::{
    report::{
        BreakerStatus, Paint, Report,
        export::{bods, ftm},
        insight::{Concern, Insight, Presence, Screened},
        neutral::{HOSTILE, escaped_json, is_hostile},
    },
    workflow::plan,
};

const NAME: &str = "Equinor ASA";

/// A report in which every question that applies is complete, with `facts` in the answers that have them.
fn report(name: &str, change: impl Fn(&mut Finding)) -> Report {
    let subject = Subject {
        id: Some("923609016".into()),
        name: Some(name.into()),
        lei: Some("OW6OFBNCKXC4US5C7523".into()),
        persons: vec!["Ola Eksempel".into()],
        ..Subject::new("NO".parse().expect("a country"))
    };
    let plan = plan(subject, operations());
    let findings = plan.questions.iter().enumerate().map(|(n, question)| {
        let at = Timestamp::from_second(1_800_000_000 + i64::try_from(n).expect("few")).expect("a time");
        let blank = Finding::new(&question.source, &question.operation, Status::Complete);
        let mut finding = Finding { started_at: Some(at), attempts: 1, duration_ms: 12, ..blank };
        finding.data = facts(&question.operation, name);
        change(&mut finding);
        finding
    });
    let findings = findings.collect();
    let breaker = BreakerStatus { service: "opensanctions".into(), state: "open".into(), retry_in_ms: Some(47_000) };
    Report::new("investigation-1", plan, findings, vec![breaker])
}

fn facts(operation: &str, name: &str) -> Option<Facts> {
    let company = Company {
        name: Some(name.to_owned()),
        id: Some("923 609 016".into()),
        country: Some("NO".into()),
        standing: Standing::Active,
        ..Company::default()
    };
    match operation {
        "no_brreg.entity" | "gleif.record" => Some(Facts { companies: vec![company], ..Facts::default() }),
        "no_brreg.roles" => {
            let officer = Officer { name: Some(name.into()), role: Some("Styrets leder".into()), ..Officer::default() };
            let owner = Owner { name: Some(name.into()), share: Some("25 %".into()), ..Owner::default() };
            Some(Facts { officers: vec![officer], owners: vec![owner], ..Facts::default() })
        }
        "opensanctions.match" | "opensanctions_feed.screen" => {
            let screening = Screening { dataset: "default".into(), names: vec![name.into()], ..Screening::default() };
            Some(Facts { screening: Some(screening), ..Facts::default() })
        }
        _ => None,
    }
}

fn of_lists(finding: &Finding) -> bool {
    finding.source.starts_with("opensanctions")
}

/// The report in every format.
fn formats(report: &Report) -> Vec<(&'static str, String)> {
    let page = compose(report);
    let document = report.document().expect("serialisable");
    vec![
        ("table", text(&page, Paint::PLAIN, 100)),
        ("narrow table", text(&page, Paint::PLAIN, 60)),
        ("markdown", markdown(&page)),
        ("html", html(&page)),
        ("json", escaped_json(&serde_json::to_string_pretty(&document).expect("serialisable"))),
        ("ftm", ftm::ftm(report)),
        ("bods", bods::bods(report)),
    ]
}

#[test]
fn a_failed_screening_never_reads_as_screened() {
    let ends =
        [Status::Degraded, Status::Partial, Status::Pending, Status::Skipped, Status::NeedsReview, Status::Cached];
    for status in ends {
        let failed = report(NAME, |finding| {
            if of_lists(finding) {
                finding.status = status;
                if status != Status::Cached && status != Status::Partial {
                    finding.data = None;
                }
            }
        });
        let insight = Insight::of(&failed);
        assert_eq!(insight.subject_screening, Screened::NotScreened, "{status}");
        assert!(insight.people.iter().all(|person| person.screened == Screened::NotScreened), "{status}");
        assert_eq!(insight.signals[0].presence, Presence::NotAssessed, "{status}");
        for (format, text) in formats(&failed) {
            let text = text.to_lowercase();
            let wrong =
                ["no hit", "no_hit", "\"absent\"]}", "clean", "cleared", "nothing was found", "nobeneficialowners"];
            assert!(!wrong.iter().any(|word| text.contains(word)), "{status} in {format}: {text}");
            assert!(text.contains("not screened") || text.contains("not_screened"), "{status} in {format}: {text}");
        }
    }
}

#[test]
fn a_whole_screening_reads_as_one_and_a_hit_comes_first() {
    let insight = Insight::of(&report(NAME, |_| {}));
    assert!(matches!(insight.subject_screening, Screened::NoHit { .. }));
    assert_eq!(insight.signals[0].presence, Presence::Absent);
    let listed = report(NAME, |finding| {
        if let Some(screening) = finding.data.as_mut().and_then(|facts| facts.screening.as_mut()) {
            let topics = vec!["sanction".to_owned()];
            let hit =
                Hit { id: "NK-1".into(), name: NAME.into(), score: 0.98, matched: true, topics, ..Hit::default() };
            screening.hits.push(hit);
        }
    });
    let insight = Insight::of(&listed);
    assert!(insight.has_hit() && matches!(insight.subject_screening, Screened::Hit { .. }));
    assert_eq!(insight.attention[0].concern, Concern::WatchList);
    assert_eq!(insight.signals[0].presence, Presence::Present);
    for width in [60, 100] {
        let text = text(&compose(&listed), Paint::PLAIN, width);
        let hit = text.lines().position(|line| line.contains("sanctioned")).expect("in the summary");
        assert!(text.contains("watch lists: HIT") && hit < 9, "{text}");
        assert!(text.contains("sanctioned (sanction)") && text.contains("NK-1"), "{text}");
    }
}

#[test]
fn what_matters_is_found_in_the_facts() {
    let sick = report(NAME, |finding| {
        let Some(facts) = &mut finding.data else {
            if finding.operation == "tavily.adverse_media" {
                let article = osint_activities::model::Article { title: "Fraud".into(), ..Default::default() };
                finding.data = Some(Facts { articles: vec![article], ..Facts::default() });
            }
            return;
        };
        facts.vat = (finding.operation == "no_brreg.roles")
            .then(|| VatCheck { number: "NO923609016MVA".into(), ..VatCheck::default() });
        for company in &mut facts.companies {
            if finding.source == "gleif" {
                company.status = Some("LEI LAPSED".into());
            } else {
                company.standing = Standing::Insolvent;
                company.dissolved = Some("2026-01-02".into());
            }
        }
    });
    let insight = Insight::of(&sick);
    for concern in [Concern::Insolvency, Concern::Lei, Concern::Vat, Concern::AdverseMedia] {
        assert!(insight.attention.iter().any(|each| each.concern == concern), "{concern:?}");
    }
    let standing = insight.facts.iter().find(|fact| fact.label == "standing").expect("two sources state it");
    assert!(standing.conflict && standing.values.len() == 2, "{standing:?}");
    let present = |name: &str| insight.signals.iter().find(|signal| signal.name == name).map(|signal| signal.presence);
    for name in ["insolvency", "lei_lapsed", "vat_not_valid", "adverse_media", "contradiction"] {
        assert_eq!(present(name), Some(Presence::Present), "{name}");
    }
}

#[test]
fn hostile_names_are_neutral_in_every_format() {
    for name in HOSTILE {
        let hostile = report(name, |finding| finding.reason = Some(name.to_owned()));
        for (format, text) in formats(&hostile) {
            let bad: Vec<char> = text.chars().filter(|c| *c != '\n' && is_hostile(*c)).collect();
            assert!(bad.is_empty(), "{format} of {name:?}: {bad:?}");
        }
        let page = compose(&hostile);
        let html = html(&page);
        for markup in ["<script", "<img", "onerror=alert(1)>", "</style></svg>"] {
            assert!(!html.contains(markup), "{markup} of {name:?}");
        }
        assert_eq!(html.matches("<style>").count(), html.matches("</style>").count());
        let markdown = markdown(&page);
        for markup in ["<script", "<img", "\n# heading", "](javascript", "**bold**", " `code`"] {
            assert!(!markdown.contains(markup), "{markup} of {name:?}: {markdown}");
        }
        let rows = markdown
            .lines()
            .filter(|line| line.starts_with("| "))
            .map(|line| line.replace("\\|", "").matches('|').count());
        assert!(rows.clone().all(|cells| (3..=9).contains(&cells)), "{name:?}: {markdown}");
    }
}

#[test]
fn the_text_fits_the_terminal() {
    let long = report(&"Verylongcompanyname ".repeat(12), |finding| {
        finding.status = Status::Degraded;
        finding.reason = Some("x".repeat(300));
    });
    for width in [40, 60, 80, 120] {
        let text = text(&compose(&long), Paint::PLAIN, width);
        let title = 2; // the title is one line, whatever the width
        let wide: Vec<&str> = text.lines().skip(title).filter(|line| line.width() > width).collect();
        assert!(wide.is_empty(), "{width}: {wide:#?}");
    }
}

#[test]
fn html_needs_nothing_from_anywhere() {
    let refused = report(NAME, |finding| {
        if finding.operation == "opensanctions.match" {
            finding.status = Status::Degraded;
        }
    });
    let html = html(&compose(&refused));
    for word in ["<script", "src=", "href=", "url(", "@import", "http://", "https://"] {
        assert!(!html.contains(word), "{word}");
    }
    assert!(html.contains("<svg") && html.contains("breaker open") && html.contains("default-src 'none'"));
}

#[test]
fn reports_of_the_first_version_still_read() {
    let mut old = serde_json::to_value(report(NAME, |_| {})).expect("serialisable");
    old.as_object_mut().expect("an object").remove("version");
    let read: Report = serde_json::from_value(old).expect("an old report");
    assert_eq!(read.version, 1);
    assert!(!formats(&read).is_empty());
}
