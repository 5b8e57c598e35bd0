use super::*;

#[tokio::test]
async fn no_result_and_a_moved_endpoint_are_different_404s() {
    let simulator = start().await;
    let search = async |name: &str| {
        let request = json!({"languageKey": "en", "maxEntries": 50, "offset": 0, "name": name});
        post(&simulator, "ch_zefix", "/firm/search.json", "", request).await
    };
    for query in ["CHE191546434", "CHE-191.546.434", "swiss re"] {
        assert_eq!(search(query).await.1["list"][0]["ehraid"], 1_009_345, "{query}");
    }
    let (status, none) = search("nobody").await;
    assert_eq!((status, &none["error"]["code"]), (404, &json!("API.ZFR.SEARCH.NORESULT")));
    let (status, moved) = get(&simulator, "ch_zefix", "/firm/search.xml").await;
    assert!(status == 404 && moved["error"] == "Not Found");
    assert_eq!(get(&simulator, "ch_zefix", "/firm/1009345/withoutShabPub.json").await.1["name"], "Swiss Re AG");
    assert_eq!(get(&simulator, "ch_zefix", "/firm/1009345/shabPub.json").await.1[0]["shabDate"], "2025-04-17");
    assert_eq!(get(&simulator, "ch_zefix", "/firm/164800/shabPub.json").await, (200, json!([])));
    assert_eq!(get(&simulator, "ch_zefix", "/firm/1/withoutShabPub.json").await.0, 404);
    assert_eq!(get(&simulator, "ch_zefix", "/legalForm.json").await.1[0]["id"], 3);
    simulator.shutdown().await;
}

#[tokio::test]
async fn the_official_service_wants_an_account() {
    let simulator = start().await;
    let ask = async |uid: &str| {
        let url = format!("{}/company/uid/{uid}", simulator.base_url("ch_zefix_official").unwrap());
        body(client().get(url).basic_auth("u", Some("p")).send().await.unwrap()).await
    };
    assert_eq!(ask("CHE191546434").await.1[0]["status"], "ACTIVE");
    assert_eq!(ask("CHE100155213").await.0, 404);
    assert_eq!(get(&simulator, "ch_zefix_official", "/company/uid/CHE191546434").await.0, 401);
    let (_, found) =
        post(&simulator, "ch_zefix_official", "/company/search", "Basic eA==", json!({"name": "nestle"})).await;
    assert_eq!(found[0]["uid"], "CHE105909036");
    simulator.shutdown().await;
}
