use std::sync::{Arc, Mutex};

use axum::Router;

use super::*;

#[tokio::test]
async fn participants_are_listed_or_absent() {
    let simulator = start().await;
    let search = async |query: &str| get(&simulator, "peppol_directory", &format!("/search/1.0/json?{query}")).await;
    let (_, found) = search("participant=iso6523-actorid-upis%3A%3A0208%3A0202239951").await;
    assert_eq!(
        (&found["total-result-count"], &found["matches"][0]["entities"][0]["countryCode"]),
        (&json!(1), &json!("BE"))
    );
    assert_eq!(search("name=nobody").await.1["matches"], json!([]));
    assert_eq!(
        search("name=asa&country=NO&rpc=1&rpi=1").await.1["matches"][0]["participantID"]["value"],
        "0192:982463718"
    );
    assert_eq!(search("").await, (400, json!("")));
    assert_eq!(search("name=a&rpc=20&rpi=50").await.0, 400);
    simulator.shutdown().await;
}

#[tokio::test]
async fn the_check_passes_fails_or_is_unavailable() {
    let simulator = start().await;
    let verify = async |number: &str| {
        let url = format!("{}/v1/peppol/verify", simulator.base_url("peppol_verify").unwrap());
        let request = client().post(url).header("x-api-key", "k").json(&json!({"enterprise_number": number}));
        body(request.send().await.unwrap()).await
    };
    assert_eq!(verify("0202239951").await.1["result"]["status"], "PASS");
    assert_eq!(verify("0000000000").await.1["result"]["status"], "FAIL");
    assert_eq!(verify("1").await.0, 400);
    assert_eq!(verify("").await.0, 422);
    simulator.set_fault("peppol_verify", "flag:NO_PEPPOL_REGISTRATION").await.unwrap();
    assert_eq!(verify("0202239951").await.1["result"]["status"], "FLAG");
    simulator.set_fault("peppol_verify", "flag:VAT_INVALID").await.unwrap();
    assert_eq!(verify("0202239951").await.1["result"]["status"], "FAIL");
    simulator.set_fault("peppol_verify", "upstream_unavailable").await.unwrap();
    assert_eq!(verify("0202239951").await.0, 503);
    assert_eq!(post(&simulator, "peppol_verify", "/v1/peppol/verify", "", json!({})).await.0, 401);
    simulator.shutdown().await;
}

#[tokio::test]
async fn a_webhook_delivers_the_result_later() {
    let simulator = start().await;
    let (sender, mut delivered) = tokio::sync::mpsc::channel(1);
    let sender = Arc::new(Mutex::new(sender));
    let receive = move |body: String| {
        sender.lock().unwrap().try_send(body).unwrap();
        async {}
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let callback = format!("http://{}/hook", listener.local_addr().unwrap());
    let server = tokio::spawn(async { axum::serve(listener, Router::new().fallback(receive)).await });

    let url = format!("{}/v1/peppol/verify", simulator.base_url("peppol_verify").unwrap());
    let request = json!({"enterprise_number": "0202239951", "callback_url": callback});
    let accepted = client().post(url).header("x-api-key", "k").json(&request).send().await.unwrap();
    assert_eq!(accepted.status(), 202);
    let result: Value = serde_json::from_str(&delivered.recv().await.unwrap()).unwrap();
    assert_eq!(result["result"]["status"], "PASS");
    server.abort();
    simulator.shutdown().await;
}
