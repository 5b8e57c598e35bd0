//! Tavily: a press search that costs credits, with two own statuses for "no credits left".

use std::time::Duration;

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fault::{ENFORCE_RATE, Parameter, Scenario};
use crate::spec::{Call, EMPTY, Rate, UpstreamSpec, fixtures, get, matches, page, post};

/// The spec.
pub(crate) static SPEC: UpstreamSpec = UpstreamSpec {
    name: "tavily",
    hosts: &["https://api.tavily.com"],
    routes: &[post("search", "/search", search), get("usage", "/usage", usage)],
    unrouted: || error(404, "Not Found"),
    fixtures: fixtures!["tavily/articles.json"],
    scenarios: &[
        ENFORCE_RATE,
        Scenario { name: "432", parameter: Parameter::None, about: "the plan's limit is used up" },
        Scenario { name: "433", parameter: Parameter::None, about: "the pay-as-you-go limit is used up" },
        Scenario {
            name: "429_envelope",
            parameter: Parameter::Count(30),
            about: "429 in the newer envelope, with seconds to wait",
        },
    ],
    rate: Some(Rate { calls: 100, window: Duration::from_secs(60), refusal: too_many }),
    credentials: &[("TAVILY_API_KEY", "tvly-simulated")],
    ..EMPTY
};

const LONGEST_QUERY: usize = 400;

fn error(status: u16, message: &str) -> Answer {
    Answer::json(status, json!({"detail": {"error": message}}))
}

fn too_many() -> Answer {
    let text = "Your request has been blocked due to excessive requests. Please reduce rate of requests.";
    error(429, text).header("retry-after", "60")
}

/// Why a call is refused before its query is read.
fn refusal(call: &Call) -> Option<Answer> {
    if !call.authorized("Bearer") {
        return Some(error(401, "Unauthorized: missing or invalid API key."));
    }
    if call.scenario("432").is_some() {
        return Some(error(432, "This request exceeds your plan's set usage limit. Please upgrade your plan."));
    }
    if call.scenario("433").is_some() {
        return Some(error(433, "This request exceeds the pay-as-you-go limit. You can increase your limit."));
    }
    let seconds: u64 = call.scenario("429_envelope")?.parse().unwrap_or_default();
    let body = json!({
        "code": "rate_limited", "message": "Too many requests", "window": "minute",
        "retry_after_seconds": seconds, "next_actions": [],
    });
    Some(Answer::json(429, json!({"error": body})))
}

fn search(call: &Call) -> Answer {
    if let Some(refusal) = refusal(call) {
        return refusal;
    }
    let request = call.json();
    let query = request["query"].as_str().unwrap_or_default();
    if query.is_empty() {
        return error(400, "Query is missing.");
    }
    if query.chars().count() >= LONGEST_QUERY {
        return error(400, "Query is too long. Max query length is 400 characters.");
    }
    let credits = if request["search_depth"] == "advanced" { 2 } else { 1 };
    call.memory.add("credits", credits);
    // The quoted phrase is what the search is about; without one, the words before the first operator.
    let phrase = query.split('"').nth(1).unwrap_or_else(|| query.split(" OR ").next().unwrap_or(query));
    let about = |article: &Value| {
        let text = |field: &str| article[field].as_str().unwrap_or_default();
        matches(&format!("{} {}", text("title"), text("content")), phrase)
    };
    let articles = call.record("/articles.json").and_then(|list| list.as_array().cloned()).unwrap_or_default();
    let most = request["max_results"].as_u64().unwrap_or(5).min(20) as usize;
    let mut results = page(articles.into_iter().filter(about).collect(), 0, most);
    for result in &mut results {
        result["raw_content"] = Value::Null;
    }
    Answer::ok(json!({
        "query": query, "follow_up_questions": null, "answer": null, "images": [], "results": results,
        "response_time": 0.42, "usage": {"credits": credits}, "request_id": "00000000-0000-4000-8000-000000000001",
    }))
}

fn usage(call: &Call) -> Answer {
    if !call.authorized("Bearer") {
        return error(401, "Unauthorized: missing or invalid API key.");
    }
    let used = call.memory.get("credits").unwrap_or_default();
    Answer::ok(json!({
        "key": {"usage": used, "limit": 1000},
        "account": {"current_plan": "Researcher", "plan_usage": used, "plan_limit": 1000, "paygo_usage": 0, "paygo_limit": 0},
    }))
}
