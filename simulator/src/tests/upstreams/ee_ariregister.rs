use super::*;

#[tokio::test]
async fn json_is_sent_as_html_and_needs_a_user_agent() {
    let simulator = start().await;
    let response = fetch(&simulator, "ee_ariregister", "/est/api/autocomplete?q=bolt").await;
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/html"));
    assert_eq!(body(response).await.1["data"][0]["reg_code"], 12_417_834);
    let ask =
        async |query: &str| get(&simulator, "ee_ariregister", &format!("/est/api/autocomplete?q={query}")).await.1;
    assert_eq!(ask("12417834").await["data"].as_array().unwrap().len(), 1);
    assert_eq!(ask("mtakso").await["data"][0]["name"], "Bolt Technology OÜ");
    assert_eq!(ask("nobody").await, json!({"status": "OK", "data": []}));
    assert_eq!(ask("n%C3%A4idis").await["data"][0]["status"], "N");
    let url = format!("{}/est/api/autocomplete?q=bolt", simulator.base_url("ee_ariregister").unwrap());
    assert_eq!(client().get(url).header("user-agent", "").send().await.unwrap().status(), 403);
    simulator.shutdown().await;
}
