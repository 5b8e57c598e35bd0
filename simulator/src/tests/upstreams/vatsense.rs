use super::*;

#[tokio::test]
async fn numbers_are_valid_or_not_and_a_dead_vies_is_a_412() {
    let simulator = start().await;
    let validate = async |number: &str| {
        let url = format!("{}/validate?vat_number={number}", simulator.base_url("vatsense").unwrap());
        body(client().get(url).basic_auth("user", Some("k")).send().await.unwrap()).await
    };
    assert_eq!(validate("GB288305674").await.1["data"]["company"]["company_name"], "Example Ltd");
    assert_eq!(validate("BE0000000000").await.1["data"]["valid"], false);
    assert_eq!(validate("BE").await.0, 400);
    assert_eq!(get(&simulator, "vatsense", "/validate?vat_number=GB288305674").await.0, 401);
    simulator.set_fault("vatsense", "412").await.unwrap();
    let (status, error) = validate("GB288305674").await;
    assert_eq!((status, &error["success"]), (412, &json!(false)));
    let calls = simulator.calls("vatsense").unwrap();
    assert_eq!((calls.counters["credits"], calls.keys["GB"]), (2, 3));
    simulator.shutdown().await;
}
