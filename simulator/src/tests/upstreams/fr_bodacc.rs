use super::*;

#[tokio::test]
async fn notices_by_number_and_family_with_json_inside_strings() {
    let simulator = start().await;
    let ask = async |query: &str| {
        get(&simulator, "fr_bodacc", &format!("/catalog/datasets/annonces-commerciales/records?{query}")).await
    };
    let (_, danone) = ask("where=registre%3D%22552032534%22&order_by=dateparution%20desc&limit=100").await;
    assert_eq!((&danone["total_count"], &danone["results"][0]["familleavis"]), (&json!(2), &json!("modification")));
    let inner: Value = serde_json::from_str(danone["results"][1]["depot"].as_str().unwrap()).unwrap();
    assert_eq!(inner["dateCloture"], "2024-12-31");
    let (_, insolvent) = ask("where=registre='999000201' and familleavis='collective'").await;
    assert!(insolvent["results"][0]["jugement"].as_str().unwrap().contains("liquidation"));
    assert_eq!(ask("where=familleavis='insolvency'").await, (200, json!({"total_count": 0, "results": []})));
    assert_eq!(ask("where=registre=%22").await.1["error_code"], "ODSQLError");
    assert_eq!(ask("limit=101").await.0, 400);
    assert_eq!(ask("limit=100&offset=9901").await.0, 400);
    simulator.set_fault("fr_bodacc", "quota").await.unwrap();
    assert_eq!(ask("").await.0, 429);
    simulator.shutdown().await;
}
