use super::*;

async fn find(simulator: &Simulator, name: &str) -> (u16, Value) {
    let queries = json!({"queries": {"q1": {"schema": "Company", "properties": {"name": [name]}}}});
    post(simulator, "opensanctions", "/match/default", "ApiKey x", queries).await
}

#[tokio::test]
async fn names_match_or_do_not_or_break_the_query() {
    let simulator = start().await;
    let (_, exact) = find(&simulator, "Example Trading BV").await;
    let hit = &exact["responses"]["q1"]["results"][0];
    assert_eq!((&hit["score"], &hit["match"], &hit["target"]), (&json!(1.0), &json!(true), &json!(true)));
    assert_eq!(find(&simulator, "Example Trading").await.1["responses"]["q1"]["results"][0]["score"], 0.78);
    assert_eq!(find(&simulator, "Alza.cz a.s.").await.1["responses"]["q1"]["total"]["value"], 0);
    for poison in ["NOVO NORDISK A/S", "The \"Best\" BV", "Plus+", "AND Company"] {
        assert_eq!(find(&simulator, poison).await.0, 400, "{poison}");
    }
    assert_eq!(get(&simulator, "opensanctions", "/catalog").await.1["index_stale"], false);
    simulator.set_fault("opensanctions", "stale_index").await.unwrap();
    assert_eq!(get(&simulator, "opensanctions", "/catalog").await.1["outdated"], json!(["default"]));
    simulator.set_fault("opensanctions", "poison_500").await.unwrap();
    assert_eq!(find(&simulator, "NOVO NORDISK A/S").await.0, 500);
    assert_eq!(post(&simulator, "opensanctions", "/match/default", "", json!({"queries": {}})).await.0, 401);
    assert_eq!(post(&simulator, "opensanctions", "/match/none", "ApiKey x", json!({"queries": {}})).await.0, 404);
    simulator.shutdown().await;
}

#[tokio::test]
async fn files_of_the_feed_have_the_size_in_the_index() {
    let simulator = start().await;
    let (_, index) = get(&simulator, "opensanctions_feed", "/datasets/latest/index.json").await;
    let dataset = &index["datasets"][0];
    for resource in dataset["resources"].as_array().unwrap() {
        let file = client().get(resource["url"].as_str().unwrap()).send().await.unwrap().bytes().await.unwrap();
        assert_eq!(json!(file.len()), resource["size"], "{}", resource["name"]);
    }
    let (_, delta) = body(client().get(dataset["delta_url"].as_str().unwrap()).send().await.unwrap()).await;
    let url = delta["versions"][dataset["version"].as_str().unwrap()].as_str().unwrap();
    let lines = client().get(url).send().await.unwrap().text().await.unwrap();
    let first = serde_json::from_str::<Value>(lines.lines().next().unwrap()).unwrap();
    assert_eq!(first["op"], "MOD");
    assert_eq!(get(&simulator, "opensanctions_feed", "/datasets/latest/none/index.json").await.0, 404);
    assert_eq!(get(&simulator, "opensanctions_feed", "/datasets/latest/default/none.json").await.0, 404);
    simulator.shutdown().await;
}

#[tokio::test]
async fn the_feed_can_be_stale_wrong_or_huge() {
    let simulator = start().await;
    let dataset = async || get(&simulator, "opensanctions_feed", "/datasets/latest/default/index.json").await.1;
    let healthy = dataset().await;
    simulator.set_fault("opensanctions_feed", "stale_index").await.unwrap();
    assert!(dataset().await["updated_at"].as_str() < healthy["updated_at"].as_str());
    simulator.set_fault("opensanctions_feed", "checksum_mismatch").await.unwrap();
    assert_ne!(dataset().await["resources"][0]["checksum"], healthy["resources"][0]["checksum"]);
    simulator.set_fault("opensanctions_feed", "huge_feed:2").await.unwrap();
    let mut response = fetch(&simulator, "opensanctions_feed", "/datasets/latest/default/entities.ftm.json").await;
    assert!(response.content_length().unwrap() > 2_000_000_000);
    let start = response.chunk().await.unwrap().unwrap();
    assert!(start.starts_with(b"{\"id\":"));
    simulator.shutdown().await;
}
