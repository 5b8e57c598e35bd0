//! What every parser must survive: answers cut short at every byte, and answers with anything in the place of anything.

use serde_json::{Value, json};

use crate::{classify::Class, flow::Answer, flow::Parse};

/// Puts a parser through it, beginning from a body that it reads.
pub(crate) fn torture(name: &str, parse: Parse, body: &[u8]) {
    let whole = parse(body).unwrap_or_else(|trouble| panic!("{name}: the fixture itself does not read: {trouble}"));
    let end = body.iter().rposition(|byte| !byte.is_ascii_whitespace()).map_or(0, |last| last + 1);
    for length in 0..end {
        match parse(&body[..length]) {
            Err(trouble) if matches!(trouble.class, Class::Unavailable | Class::BadShape) => {}
            other => panic!("{name}: cut at {length} it reads as {other:?}"),
        }
    }
    let Ok(document) = serde_json::from_slice::<Value>(body) else { return };
    for place in 0..count(&document) {
        for stranger in strangers() {
            let mut changed = document.clone();
            replace(&mut changed, &mut (place + 1), &stranger);
            let body = changed.to_string();
            match parse(body.as_bytes()) {
                Ok(answer) => plausible(name, &whole, &answer, &body),
                Err(trouble) => assert_ne!(trouble.class, Class::Ok, "{name}"),
            }
        }
    }
}

/// A mangled answer may say less, but it must not turn hits into "screened and nobody named".
fn plausible(name: &str, whole: &Answer, read: &Answer, body: &str) {
    let hits = |answer: &Answer| answer.facts.screening.as_ref().map_or(0, |screening| screening.hits.len());
    let items = |answer: &Answer| {
        let facts = &answer.facts;
        facts.articles.len() + facts.companies.len() + facts.notices.len() + hits(answer)
    };
    let emptied = body.contains("[]"); // an empty list put in the place of a list is a true "nothing found"
    assert!(emptied || items(whole) == 0 || items(read) > 0, "{name}: lost everything, silently, in {body}");
}

fn strangers() -> [Value; 8] {
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    [json!(null), json!(true), json!(-1.5e300), json!("x"), json!(""), json!([]), json!({}), deep]
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// Replaces the node that the countdown ends at, counting depth first.
fn replace(value: &mut Value, countdown: &mut usize, stranger: &Value) {
    *countdown -= 1;
    if *countdown == 0 {
        *value = stranger.clone();
        return;
    }
    match value {
        Value::Array(items) => {
            for item in items {
                if *countdown > 0 {
                    replace(item, countdown, stranger);
                }
            }
        }
        Value::Object(members) => {
            for (_, member) in members.iter_mut() {
                if *countdown > 0 {
                    replace(member, countdown, stranger);
                }
            }
        }
        _ => {}
    }
}
