use super::*;

async fn vat(simulator: &Simulator, numbers: &[u64]) -> (u16, Value) {
    let request: Value = numbers.iter().map(|cui| json!({"cui": cui, "data": "2026-11-30"})).collect();
    post(simulator, "ro_anaf", "/api/PlatitorTvaRest/v9/tva", "", request).await
}

#[tokio::test]
async fn taxpayers_come_with_and_without_the_wrapper() {
    let simulator = start().await;
    let (_, answer) = vat(&simulator, &[14_399_840, 99_000_107, 1]).await;
    assert_eq!(answer["found"][0]["date_generale"]["denumire"], "DANTE INTERNATIONAL SA");
    assert_eq!(answer["found"][1]["stare_inactiv"]["statusInactivi"], true);
    assert_eq!((&answer["notFound"], answer.get("cod")), (&json!([1]), None));
    assert_eq!(vat(&simulator, &vec![1; 101]).await.0, 400);
    assert_eq!(vat(&simulator, &[]).await.0, 400);
    simulator.set_fault("ro_anaf", "wrapper").await.unwrap();
    assert_eq!(vat(&simulator, &[14_399_840]).await.1["message"], "SUCCESS");
    simulator.set_fault("ro_anaf", "wrapper_error:500").await.unwrap();
    assert_eq!(vat(&simulator, &[14_399_840]).await.1["cod"], 500);
    simulator.set_fault("ro_anaf", "f5_page").await.unwrap();
    let (status, page) = vat(&simulator, &[14_399_840]).await;
    assert!(status == 200 && page.as_str().unwrap().contains("Your support ID is"));
    simulator.shutdown().await;
}

#[tokio::test]
async fn balance_sheets_and_the_invoice_register() {
    let simulator = start().await;
    assert_eq!(get(&simulator, "ro_anaf", "/bilant?an=2024&cui=14399840").await.1["i"][0]["indicator"], "I13");
    let (status, none) = get(&simulator, "ro_anaf", "/bilant?an=2023&cui=14399840").await;
    assert_eq!((status, &none["i"]), (200, &json!([])));
    let ask = async |cui: u64| {
        let request = json!([{"cui": cui, "data": "2026-11-30"}]);
        post(&simulator, "ro_anaf", "/api/registruroefactura/v1/interogare", "", request).await
    };
    assert_eq!(ask(14_399_840).await.0, 200);
    assert_eq!(ask(1).await, (404, json!({"found": [], "notFound": [1]})));
    simulator.shutdown().await;
}
