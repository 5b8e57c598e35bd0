//! Reports with much in them, for the formats to be tried on.

use jiff::Timestamp;
use osint_activities::{
    catalog::operations,
    model::{
        Accounts, Address, Article, Company, Facts, Finding, Hit, Officer, Owner, Parent, Screening, Standing, Status,
        Subject,
    },
};
use osint_worker::{
    report::{BreakerStatus, Report},
    workflow::plan,
};

/// Names that attack a format.
pub(crate) const HOSTILE: [&str; 4] = [
    "<script>document.title='x'</script><img src=http://127.0.0.1:1/x onerror=alert(1)>",
    "\u{202e}gnirtS \u{1b}[2J\u{0}x\u{2028}y",
    "\"]}'</style></svg></bdi><h1>x",
    "Averyveryveryveryveryveryveryveryveryveryveryveryveryveryveryveryverylongwordwithoutaspace",
];

/// A company on a watch list, with owners, officers, a parent and open gaps.
pub(crate) fn listed() -> Report {
    report("Example Trading AS", true)
}

/// The same, but no watch list answered and no source names an owner.
pub(crate) fn unscreened() -> Report {
    report("Example Trading AS", false)
}

/// A report whose strings are all `name`.
pub(crate) fn hostile(name: &str) -> Report {
    report(name, true)
}

fn report(name: &str, whole: bool) -> Report {
    let subject = Subject {
        id: Some("923609016".into()),
        name: Some(name.into()),
        lei: Some("OW6OFBNCKXC4US5C7523".into()),
        address: Some(name.into()),
        website: Some("https://www.example.com/".into()),
        persons: vec!["Kari Eksempel".into()],
        ..Subject::new("NO".parse().expect("a country"))
    };
    let plan = plan(subject, operations());
    let finding = |(n, question): (usize, &osint_worker::report::Question)| {
        let at = 1_800_000_000_000 + 40 * i64::try_from(n).expect("few");
        let lists = question.source.starts_with("opensanctions");
        let failed = question.source == "tavily" || (!whole && lists);
        let status = if failed { Status::Degraded } else { Status::Complete };
        let blank = Finding::new(&question.source, &question.operation, status);
        Finding {
            started_at: Timestamp::from_millisecond(at).ok(),
            attempts: 1,
            duration_ms: 120,
            reason: failed.then(|| format!("HTTP 503 three times, then the breaker opened: {name}")),
            data: if failed { None } else { facts(&question.operation, name, whole) },
            ..blank
        }
    };
    let findings = plan.questions.iter().enumerate().map(finding).collect();
    let breaker = |service: &str, state: &str, retry_in_ms| BreakerStatus {
        service: service.into(),
        state: state.into(),
        retry_in_ms,
    };
    let breakers = vec![breaker("gleif", "closed", None), breaker("tavily", "open", Some(47_000))];
    Report::new("investigation-0123456789abcdef", plan, findings, breakers)
}

fn facts(operation: &str, name: &str, owners: bool) -> Option<Facts> {
    let text = || Some(name.to_owned());
    let company = |id: &str, founded: &str| Company {
        name: text(),
        id: Some(id.to_owned()),
        country: Some("NO".into()),
        standing: Standing::Active,
        status: text(),
        legal_form: text(),
        address: Some(Address { street: text(), city: text(), ..Address::default() }),
        founded: Some(founded.to_owned()),
        former_names: vec![name.to_owned()],
        website: text(),
        ..Company::default()
    };
    let blank = Facts::default();
    Some(match operation {
        "no_brreg.entity" => Facts { companies: vec![company("923 609 016", "1972-09-18")], ..blank },
        "gleif.record" => Facts { companies: vec![company("923609016", "18.09.1972")], ..blank },
        "gleif.direct_parent" if owners => {
            let parent = Parent { level: "direct".into(), company: Some(company("1", "2001")), exception: None };
            Facts { parents: vec![parent], ..blank }
        }
        "no_brreg.accounts" => {
            let accounts = Accounts {
                to: Some("2024-12-31".into()),
                revenue: Some(1.5e9),
                currency: text(),
                ..Accounts::default()
            };
            Facts { accounts: vec![accounts], ..blank }
        }
        "no_brreg.roles" => {
            let officer =
                |birth_year| Officer { name: text(), role: text(), birth_year, since: text(), ..Officer::default() };
            let owner = |id: Option<&str>, share: &str| Owner {
                name: text(),
                company_id: id.map(str::to_owned),
                country: Some("NO".into()),
                share: Some(share.to_owned()),
                since: Some("2020-01-02".into()),
                ..Owner::default()
            };
            let owners = if owners {
                vec![owner(None, "25 %"), owner(Some("999 999 999"), "3/4"), owner(None, name)]
            } else {
                vec![]
            };
            Facts { officers: vec![officer(Some(1970)), officer(None)], owners, ..blank }
        }
        "crawl4ai.website" => {
            Facts { articles: vec![Article { title: name.into(), url: name.into(), ..Article::default() }], ..blank }
        }
        "opensanctions.match" => {
            let hit = Hit {
                id: name.into(),
                name: name.into(),
                score: 0.97,
                matched: true,
                topics: vec!["sanction".into(), name.into()],
                ..Hit::default()
            };
            let screening = Screening {
                dataset: "default".into(),
                names: vec![name.into()],
                hits: vec![hit],
                ..Screening::default()
            };
            Facts { screening: Some(screening), ..blank }
        }
        _ => return None,
    })
}
