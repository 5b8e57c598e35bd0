use super::*;

const ENTITY: &str = "/enhetsregisteret/api/enheter";

#[tokio::test]
async fn entities_exist_are_deleted_are_gone_or_unknown() {
    let simulator = start().await;
    for (number, status, field, value) in [
        ("923609016", 200, "navn", json!("EQUINOR ASA")),
        ("989000705", 200, "konkurs", json!(true)),
        ("989000101", 200, "slettedato", json!("2024-06-30")),
        ("989000500", 410, "error", json!("Gone")),
        ("999999999", 404, "error", json!("Not Found")),
        ("12", 400, "feilmelding", json!("Ugyldig organisasjonsnummer")),
    ] {
        let (got, record) = get(&simulator, "no_brreg", &format!("{ENTITY}/{number}")).await;
        assert_eq!((got, &record[field]), (status, &value), "{number}");
    }
    simulator.shutdown().await;
}

#[tokio::test]
async fn searches_page_and_an_empty_one_has_no_embedded() {
    let simulator = start().await;
    let (_, found) = get(&simulator, "no_brreg", &format!("{ENTITY}?navn=equinor&size=1&page=1")).await;
    assert_eq!(found["_embedded"]["enheter"][0]["navn"], "EQUINOR ENERGY AS");
    assert_eq!(found["page"], json!({"size": 1, "totalElements": 2, "totalPages": 2, "number": 1}));
    let (status, none) = get(&simulator, "no_brreg", &format!("{ENTITY}?navn=nobody")).await;
    assert!(status == 200 && none.get("_embedded").is_none() && none["page"]["totalElements"] == 0);
    assert_eq!(get(&simulator, "no_brreg", &format!("{ENTITY}?size=1000&page=10")).await.0, 400);
    simulator.shutdown().await;
}

#[tokio::test]
async fn roles_and_accounts_answer_but_not_for_a_bank() {
    let simulator = start().await;
    let (_, roles) = get(&simulator, "no_brreg", &format!("{ENTITY}/923609016/roller")).await;
    assert_eq!(roles["rollegrupper"][2]["roller"][0]["enhet"]["navn"][0], "EKSEMPEL REVISJON AS");
    let (_, none) = get(&simulator, "no_brreg", &format!("{ENTITY}/990888213/roller")).await;
    assert_eq!(none["rollegrupper"], json!([]));
    let accounts = |number| format!("/regnskapsregisteret/regnskap/{number}");
    assert_eq!(get(&simulator, "no_brreg", &accounts("923609016")).await.1[0]["valuta"], "USD");
    assert_eq!(get(&simulator, "no_brreg", &accounts("990888213")).await.0, 404);
    assert_eq!(get(&simulator, "no_brreg", &accounts("984851006")).await.0, 500);
    simulator.shutdown().await;
}

#[tokio::test]
async fn its_own_faults() {
    let simulator = start().await;
    let equinor = format!("{ENTITY}/923609016");
    simulator.set_fault("no_brreg", "deleted").await.unwrap();
    assert!(get(&simulator, "no_brreg", &equinor).await.1.get("slettedato").is_some());
    simulator.set_fault("no_brreg", "gone").await.unwrap();
    assert_eq!(get(&simulator, "no_brreg", &equinor).await.0, 410);
    simulator.set_fault("no_brreg", "accounts_500").await.unwrap();
    assert_eq!(get(&simulator, "no_brreg", "/regnskapsregisteret/regnskap/923609016").await.0, 500);
    assert_eq!(get(&simulator, "no_brreg", &equinor).await.0, 200);
    simulator.set_fault("no_brreg", "app_unavailable").await.unwrap();
    let (status, page) = get(&simulator, "no_brreg", &equinor).await;
    assert!(status == 503 && page.as_str().unwrap().contains("Application is not available"));
    simulator.shutdown().await;
}
