use super::*;

const DEPOSITS: &str = "/rs-consult/published-deposits?page=0&size=10&enterpriseNumber=0202239951";
const REFERENCES: &str = "/authentic/legalEntity/0202239951/references";

async fn official(simulator: &Simulator, path: &str, accept: &str) -> (u16, Value) {
    let url = format!("{}{path}", simulator.base_url("nbb_official").unwrap());
    let request = client().get(url).header("nbb-cbso-subscription-key", "k").header("x-request-id", "1");
    body(request.header("accept", accept).send().await.unwrap()).await
}

#[tokio::test]
async fn deposits_and_accounts_of_the_site() {
    let simulator = start().await;
    let (_, deposits) = get(&simulator, "nbb", DEPOSITS).await;
    let id = deposits["content"][0]["id"].as_str().unwrap();
    let csv = fetch(&simulator, "nbb", &format!("/external/broker/public/deposits/consult/csv/{id}")).await;
    assert!(csv.text().await.unwrap().contains("\"20/58\",\"9876000000.00\""));
    assert_eq!(get(&simulator, "nbb", "/rs-consult/companies/0202239951/NL").await.1["enterpriseName"], "PROXIMUS");
    assert_eq!(get(&simulator, "nbb", "/rs-consult/companies/0417497106/NL").await.0, 404);

    simulator.set_fault("nbb", "silent_empty:2").await.unwrap();
    let mut totals = Vec::new();
    for _ in 0..3 {
        totals.push(get(&simulator, "nbb", DEPOSITS).await.1["totalElements"].as_u64().unwrap());
    }
    assert_eq!(totals, [0, 0, 2]);
    simulator.set_fault("nbb", "control_chars").await.unwrap();
    let (_, raw) = get(&simulator, "nbb", DEPOSITS).await;
    assert!(raw.as_str().is_some_and(|text| text.contains('\u{1}')), "{raw}");
    simulator.shutdown().await;
}

#[tokio::test]
async fn the_official_service_wants_a_key_an_id_and_a_type() {
    let simulator = start().await;
    let (_, references) = official(&simulator, REFERENCES, "application/json").await;
    let url = references[0]["AccountingDataURL"].as_str().unwrap();
    let base = simulator.base_url("nbb_official").unwrap();
    let (_, accounts) = official(&simulator, url.strip_prefix(&base).unwrap(), "application/x.jsonxbrl").await;
    assert_eq!(accounts["Rubrics"][0]["Code"], "20/58");
    assert_eq!(official(&simulator, REFERENCES, "text/html").await.0, 415);
    assert_eq!(official(&simulator, "/authentic/legalEntity/0417497106/references", "application/json").await.0, 404);
    assert_eq!(get(&simulator, "nbb_official", REFERENCES).await.0, 401);
    simulator.set_fault("nbb_official", "silent_empty:1").await.unwrap();
    assert_eq!(official(&simulator, REFERENCES, "application/json").await, (200, json!([])));
    assert_eq!(official(&simulator, REFERENCES, "application/json").await.1.as_array().unwrap().len(), 2);
    simulator.shutdown().await;
}
