//! Bright Data: profiles of companies and persons on Crunchbase and LinkedIn, collected by jobs that take minutes.
//!
//! Starting a job is billed, looking at it is not. So a job is started once, its id is kept the moment it exists, and
//! the next attempt collects it: another attempt, another worker, or the workflow after a while. A job that is not done
//! is *pending*, which is neither a failure nor an answer. What the three data sets share is here; what their records say
//! is in `records`.

mod records;

use std::time::Duration;

use circuit_registry::CallError;
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    model::{Job, Subject},
    parse::json::{self as reader, Node, lacks},
    spec::{
        Answer, Auth, Base, Class, Countries, Credential, Flow, Need, Operation, Probe, Reply, Request, Rule, Scope,
        Session, Source, SourceError, Stay, on,
    },
};

/// One token, one bill: what suspends one suspends all.
const ACCOUNT: &[&str] = &["brightdata_enrichment", "brightdata_social", "brightdata_person"];

/// SourceError of the account is for a person to mend; asking again in an hour costs nothing.
const MENDED: Stay = Stay::Seconds(3600);

static RULES: [Rule; 7] = [
    // In plain text and with any status, 200 among them.
    on(0).plain("suspended").means(Class::Throttled, "has suspended the account").of(Scope::Account).stay(MENDED),
    on(0).plain("balance").means(Class::Throttled, "wants the account topped up").of(Scope::Account).stay(MENDED),
    on(401).means(Class::Throttled, "does not accept the token").of(Scope::Account).stay(MENDED),
    on(402).means(Class::Throttled, "wants the account topped up").of(Scope::Account).stay(MENDED),
    on(429).with("running jobs").means(Class::Throttled, "runs as many jobs for us as it may").stay(Stay::Seconds(30)),
    // The job has been paid for; whether to start another one is for a person to decide.
    on(400).with("xpired").means(Class::Business, "has let the result of the job expire"),
    on(404).with("napshot").means(Class::Business, "no longer knows the job"),
];

/// The row of company profiles.
pub static ENRICHMENT: Source = row(
    "brightdata_enrichment",
    "Bright Data, company profiles of Crunchbase",
    Base { env: "BRIGHTDATA_ENRICHMENT_BASE_URL", default: "https://api.brightdata.com" },
    &[Operation {
        name: "brightdata_enrichment.company",
        answers: "how Crunchbase describes the company: business, size, founding, ownership",
        needs: &[Need::Name],
        flow: Flow::Steps(|session| run(session, &CRUNCHBASE)),
        ..BILLED
    }],
);

/// The row of profiles in social media.
pub static SOCIAL: Source = row(
    "brightdata_social",
    "Bright Data, company profiles of LinkedIn",
    Base { env: "BRIGHTDATA_SOCIAL_BASE_URL", default: "https://api.brightdata.com" },
    &[Operation {
        name: "brightdata_social.company",
        answers: "how the company presents itself on LinkedIn, and how many work there by their own account",
        needs: &[Need::Name],
        flow: Flow::Steps(|session| run(session, &LINKEDIN)),
        ..BILLED
    }],
);

/// The row of persons.
pub static PERSON: Source = row(
    "brightdata_person",
    "Bright Data, profiles of persons on LinkedIn",
    Base { env: "BRIGHTDATA_PERSON_BASE_URL", default: "https://api.brightdata.com" },
    &[Operation {
        name: "brightdata_person.profiles",
        answers: "whether those who act for the company say so themselves",
        needs: &[Need::Persons],
        flow: Flow::Steps(|session| run(session, &PERSONS)),
        ..BILLED
    }],
);

const BILLED: Operation = Operation { countries: Countries::Any, billed: true, ..Operation::BLANK };

const fn row(name: &'static str, title: &'static str, base: Base, operations: &'static [Operation]) -> Source {
    Source {
        name,
        title,
        breaker: name,
        base,
        credentials: &[Credential {
            any_of: &["BRIGHTDATA_API_TOKEN"],
            obtain: "create an API token at https://brightdata.com/cp/setting/users",
        }],
        auth: Auth::Bearer("BRIGHTDATA_API_TOKEN"),
        timeout: Duration::from_secs(20),
        rules: &RULES,
        probe: Some(Probe::json(|| Request::get("/customer/balance"))),
        account: ACCOUNT,
        limits: "a number of jobs at a time per data set, by contract; billed per record",
        terms: "commercial; personal data only on a legal basis of one's own",
        operations,
        ..Source::BLANK
    }
}

/// What tells the three apart.
struct Dataset {
    id: &'static str,
    /// How records are found, where the subject has no address for them.
    discover_by: &'static str,
    /// What to look for; empty if the subject offers nothing.
    inputs: fn(&Subject) -> Vec<Value>,
    /// How to read the records about a subject.
    read: fn(&[u8], &Subject) -> Result<Answer, SourceError>,
}

static CRUNCHBASE: Dataset = Dataset {
    id: "gd_l1vijqt9jfj7olije",
    discover_by: "keyword",
    inputs: |subject| subject.name.iter().map(|name| json!({"keyword": name})).collect(),
    read: records::organisations,
};

static LINKEDIN: Dataset = Dataset {
    id: "gd_l1vikfnt1wgvvqz95w",
    discover_by: "company_name",
    inputs: |subject| subject.name.iter().map(|name| json!({"company_name": name})).collect(),
    read: records::employers,
};

static PERSONS: Dataset = Dataset {
    id: "gd_l1viktl72bvl7bjuj0",
    discover_by: "name",
    inputs: |subject| {
        let parts = subject.persons.iter().filter_map(|name| name.rsplit_once(' '));
        parts.map(|(first, last)| json!({"first_name": first, "last_name": last})).collect()
    },
    read: records::persons,
};

/// Records are billed one by one, and the best hits come first.
const RECORDS_PER_INPUT: &str = "3";

/// The reason of a job that came to nothing. Looking at it again will not help.
const FAILED: &str = "could not do the job";

/// Starts the job, unless there is one already, and looks whether it is done.
fn run<'a>(
    session: &'a Session<'_>,
    dataset: &'static Dataset,
) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        if let Some(job) = session.job() {
            return look(session, dataset, job.clone()).await.map_err(free);
        }
        let inputs = (dataset.inputs)(session.subject());
        if inputs.is_empty() {
            return Err(CallError::Upstream(SourceError::business("has nothing to look for")));
        }
        let request = Request::post("/datasets/v3/trigger", &Value::Array(inputs))
            .query("dataset_id", dataset.id)
            .query("include_errors", "true")
            .query("type", "discover_new")
            .query("discover_by", dataset.discover_by)
            .query("limit_per_input", RECORDS_PER_INPUT);
        let id = session.ask(request, started).await?;
        let job = Job { id, started_at: Timestamp::now(), polls: 0 };
        session.keep(job.clone()).await;
        match look(session, dataset, job.clone()).await {
            // The job exists and is paid for: whatever hides it from us now must not lose it.
            Err(stop) if passes(&stop) => Ok(pending(job)),
            outcome => outcome,
        }
    })
}

fn started(reply: &Reply) -> Result<String, SourceError> {
    let document = reader::parse(&reply.body)?;
    Node::root(&document).require_text("snapshot_id")
}

/// Looks at a job once, and fetches its result if there is one.
async fn look(session: &Session<'_>, dataset: &'static Dataset, job: Job) -> Result<Answer, CallError<SourceError>> {
    let progress = Request::get("/datasets/v3/progress").segment(&*job.id);
    if !session.ask(progress, is_done).await? {
        return Ok(pending(job));
    }
    let snapshot = Request::get("/datasets/v3/snapshot").segment(&*job.id).query("format", "json");
    let subject = session.subject();
    let records = session.ask(snapshot, |reply| match reply.status {
        202 => Ok(None), // the result is still being written
        _ => (dataset.read)(&reply.body, subject).map(Some),
    });
    Ok(records.await?.unwrap_or_else(|| pending(job)))
}

fn is_done(reply: &Reply) -> Result<bool, SourceError> {
    let document = reader::parse(&reply.body)?;
    match Node::root(&document).require_text("status")?.as_str() {
        "ready" => Ok(true),
        "starting" | "running" | "collecting" | "digesting" | "building" => Ok(false),
        "failed" | "cancelled" | "canceled" => Err(SourceError::unavailable(FAILED)),
        _ => Err(lacks("status")),
    }
}

/// Twice the last pause, as progress is free to look at: a short job is not waited for long, nor a long one looked at often.
fn pending(job: Job) -> Answer {
    let pause = Duration::from_secs((2 << job.polls.min(3)).min(10));
    let now = Timestamp::now();
    let job = Job { polls: job.polls.saturating_add(1), ..job };
    Answer::pending(job, now.checked_add(pause).unwrap_or(now), "is still working on it")
}

/// Whether the job may well be fine behind this error.
fn passes(stop: &CallError<SourceError>) -> bool {
    match stop {
        CallError::Upstream(error) => {
            let passing = matches!(error.class, Class::Unavailable | Class::Timeout | Class::Throttled);
            passing && error.reason != FAILED
        }
        CallError::Rejected(_) | CallError::TimedOut { .. } => true,
    }
}

/// Looking costs nothing, so it may be repeated.
fn free(stop: CallError<SourceError>) -> CallError<SourceError> {
    match stop {
        CallError::Upstream(error) if error.reason != FAILED => CallError::Upstream(error.uncharged()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_looked_at_less_and_less_often() {
        let mut job = Job { id: "s_1".to_owned(), started_at: Timestamp::UNIX_EPOCH, polls: 0 };
        let mut pauses = Vec::new();
        for _ in 0..6 {
            let before = Timestamp::now();
            let answer = pending(job);
            let pause = answer.retry_at.expect("a time").duration_since(before);
            pauses.push(pause.as_secs());
            job = answer.job.expect("a job");
        }
        assert_eq!((pauses, job.polls, job.id.as_str()), (vec![2, 4, 8, 10, 10, 10], 6, "s_1"));
    }

    #[test]
    fn progress_is_done_not_done_or_failed() {
        let progress = |body: &str| is_done(&Reply::new(200, body));
        assert_eq!(progress(r#"{"status":"ready"}"#), Ok(true));
        for status in ["starting", "running", "collecting", "digesting", "building"] {
            assert_eq!(progress(&format!(r#"{{"status":"{status}"}}"#)), Ok(false), "{status}");
        }
        let failed = progress(r#"{"status":"failed","error_message":"x"}"#).expect_err("a failure");
        assert_eq!((failed.class, passes(&CallError::Upstream(failed))), (Class::Unavailable, false));
        for body in ["{}", r#"{"status":"odd"}"#, r#"{"status":7}"#, "[]"] {
            assert_eq!(progress(body).expect_err(body).class, Class::BadShape);
        }
        assert_eq!(started(&Reply::new(200, r#"{"snapshot_id":"s_1"}"#)).as_deref(), Ok("s_1"));
        assert_eq!(started(&Reply::new(200, "{}")).expect_err("no id").class, Class::BadShape);
    }

    #[test]
    fn no_search_by_half_a_name() {
        let persons = ["Ola Eksempel".to_owned(), "Kari Maria Prøve".to_owned(), "Cher".to_owned()].into();
        let subject = Subject { persons, ..Subject::new("NO".parse().expect("a country")) };
        let expected = [
            json!({"first_name": "Ola", "last_name": "Eksempel"}),
            json!({"first_name": "Kari Maria", "last_name": "Prøve"}),
        ];
        assert_eq!((PERSONS.inputs)(&subject), expected);
        assert!((CRUNCHBASE.inputs)(&subject).is_empty());
    }
}
