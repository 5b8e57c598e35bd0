use super::*;

#[tokio::test]
async fn searches_find_the_quoted_company_and_cost_credits() {
    let simulator = start().await;
    let search =
        async |query: &str| post(&simulator, "tavily", "/search", "Bearer tvly-x", json!({"query": query})).await;
    let (_, found) = search("\"Example Trading BV\" fraud OR sanctions").await;
    assert_eq!(found["results"][0]["title"], "Regulator fines Example Trading");
    let (status, none) = search("\"Blameless BV\" fraud").await;
    assert_eq!((status, &none["results"]), (200, &json!([])));
    assert_eq!(search(&"x".repeat(400)).await.0, 400);
    assert_eq!(search("").await.0, 400);
    let advanced = json!({"query": "\"Equinor ASA\"", "search_depth": "advanced"});
    post(&simulator, "tavily", "/search", "Bearer tvly-x", advanced).await;
    assert_eq!(simulator.calls("tavily").unwrap().counters["credits"], 4);
    simulator.shutdown().await;
}

#[tokio::test]
async fn errors_of_key_and_plan_and_both_forms_of_a_429() {
    let simulator = start().await;
    let search = async |authorization: &str| {
        post(&simulator, "tavily", "/search", authorization, json!({"query": "\"Equinor ASA\""})).await
    };
    assert_eq!(search("").await.0, 401);
    assert_eq!(search("Basic x").await.0, 401);
    for fault in ["432", "433"] {
        simulator.set_fault("tavily", fault).await.unwrap();
        let (status, error) = search("Bearer tvly-x").await;
        assert!(status.to_string() == fault && error["detail"]["error"].is_string(), "{error}");
    }
    simulator.set_fault("tavily", "429_envelope:12").await.unwrap();
    let (status, error) = search("Bearer tvly-x").await;
    assert_eq!((status, &error["error"]["retry_after_seconds"]), (429, &json!(12)));
    assert_eq!(simulator.calls("tavily").unwrap().counters.get("credits"), None);
    simulator.shutdown().await;
}
