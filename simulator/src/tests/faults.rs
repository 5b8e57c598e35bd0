//! Each generic fault, as it arrives at a client.

use super::*;

const RECORD: &str = "/lei-records/213800LH1BZH3DI6G760";

async fn with(fault: &str) -> (Simulator, Result<Response, reqwest::Error>) {
    let simulator = start().await;
    simulator.set_fault("gleif", fault).await.unwrap();
    let url = format!("{}{RECORD}", simulator.base_url("gleif").unwrap());
    let response = client().get(url).send().await;
    (simulator, response)
}

#[tokio::test]
async fn refused_closes_one_port_and_its_pooled_connections() {
    let simulator = start().await;
    let (client, base) = (client(), simulator.base_url("gleif").unwrap());
    let call = || client.get(format!("{base}{RECORD}")).send();
    assert!(!call().await.unwrap().bytes().await.unwrap().is_empty());

    simulator.set_fault("gleif", "refused").await.unwrap();
    let error = call().await.unwrap_err();
    assert!(error.is_connect(), "{error:?}");
    assert_eq!(kind(&error), Some(io::ErrorKind::ConnectionRefused));
    assert_eq!(get(&simulator, "no_brreg", "/enhetsregisteret/api/enheter/923609016").await.0, 200);
    assert_eq!(simulator.calls("gleif").unwrap().total, 1);

    simulator.clear("gleif").await.unwrap();
    assert_eq!(call().await.unwrap().status(), 200);
    simulator.shutdown().await;
}

#[tokio::test]
async fn reset_breaks_the_connection_in_the_middle_of_the_body() {
    let (simulator, response) = with("reset").await;
    let response = response.unwrap();
    assert_eq!(response.status(), 200);
    let error = response.bytes().await.unwrap_err();
    assert_eq!(kind(&error), Some(io::ErrorKind::ConnectionReset), "{error:?}");
    assert_eq!(simulator.calls("gleif").unwrap().statuses[&0], 1);
    simulator.shutdown().await;
}

#[tokio::test]
async fn hangup_sends_no_byte_and_hang_never_answers() {
    let (simulator, response) = with("hangup").await;
    let error = response.unwrap_err();
    assert!(!error.is_connect() && !error.is_timeout(), "{error:?}");
    simulator.shutdown().await;

    let simulator = start().await;
    simulator.set_fault("gleif", "hang").await.unwrap();
    let url = format!("{}{RECORD}", simulator.base_url("gleif").unwrap());
    assert!(client().get(url).timeout(PATIENCE).send().await.unwrap_err().is_timeout());
    simulator.shutdown().await;
}

#[tokio::test]
async fn slow_and_drip_give_the_right_answer() {
    for fault in ["slow:1ms", "drip:1ms"] {
        let (simulator, response) = with(fault).await;
        let (status, record) = body(response.unwrap()).await;
        assert_eq!((status, &record["data"]["id"]), (200, &json!("213800LH1BZH3DI6G760")), "{fault}");
        simulator.shutdown().await;
    }
}

#[tokio::test]
async fn fixed_replies_have_their_status_type_and_headers() {
    let rows = [
        ("down", 503, "text/plain", None),
        ("400", 400, "application/json", None),
        ("401", 401, "application/json", None),
        ("403", 403, "application/json", None),
        ("403_waf_html", 403, "text/html", None),
        ("404_html", 404, "text/html", None),
        ("429", 429, "application/json", None),
        ("429_retry_after:7", 429, "application/json", Some("7")),
        ("429_retry_after", 429, "application/json", Some("5")),
        ("500", 500, "application/json", None),
        ("502_html", 502, "text/html", None),
        ("503_retry_after:90s", 503, "text/plain", Some("90")),
        ("504", 504, "text/plain", None),
        ("200_html_maintenance", 200, "text/html", None),
        ("200_html_challenge", 200, "text/html", None),
        ("empty_body", 200, "application/json", None),
        ("redirect_private", 302, "text/plain", None),
    ];
    let simulator = start().await;
    for (fault, status, content_type, retry_after) in rows {
        simulator.set_fault("gleif", fault).await.unwrap();
        let response = fetch(&simulator, "gleif", RECORD).await;
        let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(response.status(), status, "{fault}");
        assert!(header("content-type").unwrap().starts_with(content_type), "{fault}");
        assert_eq!(header("retry-after").as_deref(), retry_after, "{fault}");
    }
    simulator.shutdown().await;
}

#[tokio::test]
async fn a_retry_after_date_parses_and_is_in_the_future() {
    let (simulator, response) = with("429_http_date:90").await;
    let date = response.unwrap().headers()["retry-after"].to_str().unwrap().to_owned();
    let parsed = jiff::fmt::rfc2822::parse(&date).unwrap().timestamp();
    assert!(parsed > jiff::Timestamp::now(), "{date}");
    simulator.shutdown().await;
}

#[tokio::test]
async fn broken_bodies_are_complete_responses() {
    let (simulator, response) = with("truncated_json").await;
    let text = response.unwrap().text().await.unwrap();
    assert!(text.starts_with('{') && serde_json::from_str::<Value>(&text).is_err());
    simulator.shutdown().await;

    let (simulator, response) = with("wrong_shape").await;
    let (status, value) = body(response.unwrap()).await;
    assert!(status == 200 && value.get("data").is_none() && value.is_array());
    simulator.shutdown().await;

    let (simulator, response) = with("deep_json:500").await;
    let text = response.unwrap().text().await.unwrap();
    assert_eq!(text, "[".repeat(500) + &"]".repeat(500));
    simulator.shutdown().await;
}

#[tokio::test]
async fn large_bodies_arrive_whole() {
    let (simulator, response) = with("huge_body:2").await;
    let response = response.unwrap();
    let declared = response.content_length().unwrap();
    let bytes = response.bytes().await.unwrap();
    assert_eq!(bytes.len() as u64, declared);
    assert!(declared > 2 << 20 && serde_json::from_slice::<Vec<String>>(&bytes).is_ok());
    simulator.shutdown().await;

    let (simulator, response) = with("gzip_bomb").await;
    let response = response.unwrap();
    assert_eq!(response.bytes().await.unwrap().len(), 64 << 20);
    simulator.shutdown().await;
}

#[tokio::test]
async fn flap_not_found_and_a_narrowed_fault() {
    let simulator = start().await;
    simulator.set_fault("gleif", "flap:2/1").await.unwrap();
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(get(&simulator, "gleif", RECORD).await.0);
    }
    assert_eq!(statuses, [503, 503, 200, 503, 503, 200]);

    simulator.set_fault("gleif", "not_found").await.unwrap();
    assert_eq!(get(&simulator, "gleif", RECORD).await.0, 404);
    let (status, found) = get(&simulator, "gleif", "/lei-records?filter[entity.legalName]=BP").await;
    assert_eq!((status, &found["data"]), (200, &json!([])));

    simulator.set_fault("gleif", "500@direct_parent").await.unwrap();
    assert_eq!(get(&simulator, "gleif", RECORD).await.0, 200);
    assert_eq!(get(&simulator, "gleif", &format!("{RECORD}/direct-parent")).await.0, 500);
    simulator.shutdown().await;
}

#[tokio::test]
async fn a_rate_is_enforced_only_under_the_fault() {
    let simulator = start().await;
    for _ in 0..61 {
        assert_eq!(get(&simulator, "gleif", "/lei-records?page[size]=1").await.0, 200);
    }
    simulator.set_fault("gleif", "enforce_rate").await.unwrap();
    assert_eq!(get(&simulator, "gleif", "/lei-records?page[size]=1").await.0, 429);
    assert!(simulator.calls("gleif").unwrap().peak_per_second >= 2);
    simulator.shutdown().await;
}
