//! Crawl4AI: a crawler that the operator runs. A site that is down is a result in a 200; an error status means that the
//! crawler itself has failed.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fault::{Parameter, Scenario};
use crate::spec::{Call, EMPTY, UpstreamSpec, fixtures, get, post};

/// The spec.
pub(crate) static SPEC: UpstreamSpec = UpstreamSpec {
    name: "crawl4ai",
    routes: &[
        post("crawl", "/crawl", crawl),
        post("markdown", "/md", markdown),
        post("job_start", "/crawl/job", job_start),
        get("job", "/crawl/job/{}", job),
        get("health", "/health", |_| {
            Answer::ok(json!({"status": "ok", "timestamp": 1_796_000_000.0, "version": "0.8.0"}))
        }),
    ],
    unrouted: || detail(404, "Not Found"),
    fixtures: fixtures![
        "crawl4ai/pages/example.com.json",
        "crawl4ai/pages/www.alza.cz.json",
        "crawl4ai/pages/www.equinor.com.json",
        "crawl4ai/pages/www.equinor.com/legal.json",
        "crawl4ai/pages/www.nokia.com.json",
    ],
    scenarios: &[
        Scenario {
            name: "target_down",
            parameter: Parameter::None,
            about: "200, but every result failed: the site is down",
        },
        Scenario { name: "queue_full", parameter: Parameter::None, about: "503 with Retry-After: 5" },
        Scenario { name: "all_failed", parameter: Parameter::None, about: "500: the crawl request failed" },
        Scenario {
            name: "led_inside",
            parameter: Parameter::None,
            about: "the website redirects to a cloud's metadata",
        },
        Scenario { name: "too_large", parameter: Parameter::None, about: "413: the page is too large" },
    ],
    credentials: &[("CRAWL4AI_API_TOKEN", "simulated")],
    ..EMPTY
};

fn detail(status: u16, text: &str) -> Answer {
    Answer::json(status, json!({"detail": text}))
}

fn refusal(call: &Call) -> Option<Answer> {
    if call.scenario("queue_full").is_some() {
        return Some(detail(503, "Server at capacity, try again later").header("retry-after", "5"));
    }
    if call.scenario("all_failed").is_some() {
        return Some(detail(500, "Crawl request failed: browser context closed"));
    }
    call.scenario("too_large").map(|_| detail(413, "Response too large"))
}

/// The host of a URL, if it is one that a crawler may visit.
fn host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let host = rest.split(['/', '?', '#', ':']).next()?;
    let private = ["localhost", "127.", "10.", "192.168.", "169.254.", "[", "0."];
    (!host.is_empty() && !private.iter().any(|prefix| host.starts_with(prefix))).then_some(host)
}

fn result(call: &Call, url: &str, host: &str) -> Value {
    let last = url.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let page = call.record(&format!("/pages/{host}/{last}.json"));
    let page =
        page.or_else(|| call.record(&format!("/pages/{host}.json"))).filter(|_| call.scenario("target_down").is_none());
    match page {
        Some(mut page) => {
            page["url"] = json!(url);
            if call.scenario("led_inside").is_some() {
                page["redirected_url"] = json!("http://169.254.169.254/latest/meta-data/");
            }
            page
        }
        None => json!({
            "url": url, "html": "", "success": false, "cleaned_html": null, "media": {}, "links": {}, "metadata": null,
            "status_code": null, "markdown": null, "redirected_url": null, "response_headers": null,
            "error_message": format!("Failed on navigating ACS-GOTO: net::ERR_NAME_NOT_RESOLVED at {url}"),
        }),
    }
}

/// The results for a list of URLs, or why there are none.
fn results(call: &Call, urls: &Value) -> Result<Vec<Value>, Answer> {
    if let Some(refusal) = refusal(call) {
        return Err(refusal);
    }
    let urls: Vec<_> = urls.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if urls.is_empty() || urls.len() > 100 {
        return Err(detail(422, "urls: a list of 1 to 100 items is required"));
    }
    let one = |url: &&str| host(url).map(|host| result(call, url, host));
    let results = urls.iter().map(one).collect::<Option<Vec<_>>>();
    results.ok_or_else(|| detail(400, "URL is not allowed: private or invalid target"))
}

fn crawl(call: &Call) -> Answer {
    match results(call, &call.json()["urls"]) {
        Ok(results) => Answer::ok(json!({
            "success": true, "results": results, "server_processing_time_s": 2.1, "server_memory_delta_mb": 3.2,
            "server_peak_memory_mb": 411.0,
        })),
        Err(answer) => answer,
    }
}

fn markdown(call: &Call) -> Answer {
    let request = call.json();
    match results(call, &json!([request["url"]])) {
        Ok(results) => Answer::ok(json!({
            "url": request["url"], "filter": request["f"].as_str().unwrap_or("fit"), "query": request["q"],
            "cache": request["c"].as_str().unwrap_or("0"), "markdown": results[0]["markdown"]["fit_markdown"],
            "success": results[0]["success"],
        })),
        Err(answer) => answer,
    }
}

fn job_start(call: &Call) -> Answer {
    let request = call.json();
    if let Err(answer) = results(call, &request["urls"]) {
        return answer;
    }
    let id = format!("crawl_{:04x}", call.memory.add("jobs", 1));
    call.memory.remember(&id, request["urls"].to_string());
    Answer::json(202, json!({"task_id": id}))
}

fn job(call: &Call) -> Answer {
    let id = call.captured(0);
    let Some(urls) = call.memory.recall(id).and_then(|urls| serde_json::from_str(&urls).ok()) else {
        return detail(404, "Task not found");
    };
    if call.memory.add(&format!("polls {id}"), 1) < 2 {
        return Answer::ok(json!({"task_id": id, "status": "PROCESSING"}));
    }
    match results(call, &urls) {
        Ok(results) => {
            let result = json!({"success": true, "results": results});
            Answer::ok(json!({"task_id": id, "status": "COMPLETED", "result": result}))
        }
        Err(_) => Answer::ok(json!({"task_id": id, "status": "FAILED", "error": "Crawl request failed"})),
    }
}
