use super::*;

#[tokio::test]
async fn companies_are_found_or_not_or_the_query_is_bad() {
    let simulator = start().await;
    let (_, nokia) = get(&simulator, "fi_ytj", "/companies?businessId=0112038-9").await;
    assert_eq!((&nokia["totalResults"], &nokia["companies"][0]["names"][0]["name"]), (&json!(1), &json!("Nokia Oyj")));
    let (_, by_name) = get(&simulator, "fi_ytj", "/companies?name=supercell").await;
    assert_eq!(by_name["companies"][0]["businessId"]["value"], "2336509-6");
    let none = get(&simulator, "fi_ytj", "/companies?businessId=1234567-1").await;
    assert_eq!(none, (200, json!({"totalResults": 0, "companies": []})));
    let (status, error) = get(&simulator, "fi_ytj", "/companies").await;
    assert_eq!((status, &error["errorcode"]), (400, &json!(1005)));
    assert_eq!(get(&simulator, "fi_ytj", "/companies?businessId=01120389").await.0, 400);
    simulator.shutdown().await;
}
