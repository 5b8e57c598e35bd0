//! BrightData: jobs that are started once, billed, and collected when they are done.
//!
//! Three upstreams, because the three uses have their own breakers. They share one account, so a test that suspends the
//! account sets the fault on each.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fault::{Parameter, Scenario};
use crate::spec::{Call, EMPTY, Fixture, Route, UpstreamSpec, fixtures, get, post};

/// The spec of company profiles.
pub(crate) static ENRICHMENT: UpstreamSpec = row("brightdata_enrichment");
/// The spec of social-media profiles.
pub(crate) static SOCIAL: UpstreamSpec = row("brightdata_social");
/// The spec of persons.
pub(crate) static PERSON: UpstreamSpec = row("brightdata_person");

const fn row(name: &'static str) -> UpstreamSpec {
    UpstreamSpec {
        name,
        hosts: &[],
        routes: ROUTES,
        fixtures: FIXTURES,
        scenarios: SCENARIOS,
        unrouted: || error(404, "Not found"),
        key: |call| call.query("dataset_id").map(str::to_owned),
        credentials: &[("BRIGHTDATA_API_TOKEN", "simulated")],
        ..EMPTY
    }
}

const ROUTES: &[Route] = &[
    post("trigger", "/datasets/v3/trigger", trigger),
    post("scrape", "/datasets/v3/scrape", trigger),
    get("progress", "/datasets/v3/progress/{}", progress),
    get("snapshot", "/datasets/v3/snapshot/{}", snapshot),
    get("balance", "/customer/balance", |call| {
        refusal(call).unwrap_or_else(|| Answer::ok(json!({"balance": 100.0, "pending_balance": 0.0})))
    }),
];

const FIXTURES: &[Fixture] = fixtures![
    "brightdata/gd_l1vijqt9jfj7olije/equinor.json",
    "brightdata/gd_l1vikfnt1wgvvqz95w/equinor.json",
    "brightdata/gd_l1viktl72bvl7bjuj0/ola-eksempel.json",
];

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "polls",
        parameter: Parameter::Count(2),
        about: "a job is ready after this many polls, not at once",
    },
    Scenario { name: "job_failed", parameter: Parameter::None, about: "progress says failed, with status 200" },
    Scenario {
        name: "row_errors",
        parameter: Parameter::None,
        about: "every input of a job fails as a row of its result",
    },
    Scenario { name: "too_many_jobs", parameter: Parameter::None, about: "429: too many jobs are running" },
    Scenario { name: "suspended", parameter: Parameter::None, about: "the account is suspended: text with status 200" },
    Scenario {
        name: "suspended_403",
        parameter: Parameter::None,
        about: "the account is suspended: text with status 403",
    },
    Scenario { name: "expired", parameter: Parameter::None, about: "every snapshot has expired: 400" },
];

/// The data sets: company and person profiles of several sites.
const DATASETS: &[&str] = &[
    "gd_l1vijqt9jfj7olije",
    "gd_l1vikfnt1wgvvqz95w",
    "gd_l1viktl72bvl7bjuj0",
    "gd_m8d03he47z8nwb5xc",
    "gd_lyy3tktm25m4avu764",
    "gd_lkaxegm826bjpoo9m5",
    "gd_l1vikfch901nx3by4",
];

fn error(status: u16, message: &str) -> Answer {
    Answer::json(status, json!({"error": message}))
}

fn refusal(call: &Call) -> Option<Answer> {
    if !call.authorized("Bearer") {
        return Some(Answer::text(401, "text/plain", "Invalid credentials"));
    }
    let status = match (call.scenario("suspended"), call.scenario("suspended_403")) {
        (Some(_), _) => 200,
        (_, Some(_)) => 403,
        _ => return None,
    };
    Some(Answer::text(status, "text/plain", "Account is suspended"))
}

fn trigger(call: &Call) -> Answer {
    if let Some(refusal) = refusal(call) {
        return refusal;
    }
    let dataset = call.query("dataset_id").unwrap_or_default();
    if !DATASETS.contains(&dataset) {
        return error(404, "dataset does not exist");
    }
    let inputs = call.json();
    if !inputs.as_array().is_some_and(|inputs| !inputs.is_empty() && inputs.iter().all(Value::is_object)) {
        return Answer::json(400, json!({"validation_errors": ["input: an array of objects is required"]}));
    }
    if call.scenario("too_many_jobs").is_some() {
        let text = "You have too many running jobs for this dataset. Running jobs: 100>=100";
        return error(429, text);
    }
    let id = format!("s_sim{:012}", call.memory.add("jobs", 1));
    call.memory.remember(&id, json!({"dataset": dataset, "inputs": inputs}).to_string());
    // A synchronous scrape that takes too long becomes a job as well.
    let status = if call.path().ends_with("/scrape") { 202 } else { 200 };
    Answer::json(status, json!({"snapshot_id": id}))
}

/// The job of a snapshot, and how many polls it still takes.
fn job(call: &Call, id: &str) -> Option<(Value, u64)> {
    let job = serde_json::from_str(&call.memory.recall(id)?).ok()?;
    let needed: u64 = call.scenario("polls").and_then(|n| n.parse().ok()).unwrap_or_default();
    Some((job, needed.saturating_sub(call.memory.get(&format!("polls {id}")).unwrap_or_default())))
}

fn progress(call: &Call) -> Answer {
    let id = call.captured(0);
    if let Some(refusal) = refusal(call) {
        return refusal;
    }
    let Some((job, left)) = job(call, id) else { return error(404, "Snapshot does not exist") };
    call.memory.add(&format!("polls {id}"), 1);
    let mut document = json!({"snapshot_id": id, "dataset_id": job["dataset"]});
    document["status"] = json!(match left {
        _ if call.scenario("job_failed").is_some() => {
            document["error_message"] = json!("The job failed");
            "failed"
        }
        0 => "ready",
        1 => "running",
        _ => "starting",
    });
    Answer::ok(document)
}

/// The names of the files that may have the record: the last segment of the URL, or the name to discover; then the same
/// without its last word.
fn slugs(input: &Value) -> Vec<String> {
    let text = |name: &str| input[name].as_str();
    let asked = match (text("first_name"), text("last_name")) {
        (Some(first), Some(last)) => format!("{first} {last}"),
        _ => ["url", "keyword", "company_name"].into_iter().find_map(text).unwrap_or_default().to_owned(),
    };
    let last = asked.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let slug = last.to_lowercase().replace(' ', "-");
    let shorter = slug.rsplit_once('-').map(|(shorter, _)| shorter.to_owned());
    [slug].into_iter().chain(shorter).collect()
}

fn snapshot(call: &Call) -> Answer {
    let id = call.captured(0);
    if let Some(refusal) = refusal(call) {
        return refusal;
    }
    let Some((job, left)) = job(call, id) else { return error(404, "Snapshot does not exist") };
    if call.scenario("expired").is_some() {
        return error(400, "Snapshot is expired");
    }
    if left > 0 {
        call.memory.add(&format!("polls {id}"), 1);
        let text = "Snapshot is not ready yet, try again in 10s";
        return Answer::json(202, json!({"status": "running", "message": text}));
    }
    let dataset = job["dataset"].as_str().unwrap_or_default();
    let row = |input: &Value| {
        let found = slugs(input).iter().find_map(|slug| call.record(&format!("brightdata/{dataset}/{slug}.json")));
        found.filter(|_| call.scenario("row_errors").is_none()).unwrap_or_else(
            || json!({"input": input, "error": "Page does not exist or is not public", "error_code": "dead_page"}),
        )
    };
    Answer::ok(job["inputs"].as_array().into_iter().flatten().map(row).collect())
}
