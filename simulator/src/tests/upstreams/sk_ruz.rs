use super::*;

#[tokio::test]
async fn numbers_lead_to_units_statements_and_reports() {
    let simulator = start().await;
    let ask = async |path: &str| get(&simulator, "sk_ruz", path).await;
    assert_eq!(ask("/uctovne-jednotky?ico=31333532").await.0, 400);
    let (_, ids) = ask("/uctovne-jednotky?zmenene-od=2000-01-01&ico=31333532").await;
    assert_eq!(ids, json!({"id": [123_456], "existujeDalsieId": false}));
    let (_, unit) = ask("/uctovna-jednotka?id=123456").await;
    let (_, statement) = ask(&format!("/uctovna-zavierka?id={}", unit["idUctovnychZavierok"][1])).await;
    let (_, report) = ask(&format!("/uctovny-vykaz?id={}", statement["idUctovnychVykazov"][0])).await;
    assert_eq!((&statement["obdobieDo"], &report["mena"]), (&json!("2024-12"), &json!("EUR")));
    assert_eq!(ask(&format!("/vyrocna-sprava?id={}", unit["idVyrocnychSprav"][0])).await.0, 200);
    assert_eq!(ask("/uctovna-jednotka?id=123457").await.1["stav"], "ZMAZANÉ");
    assert_eq!(ask("/uctovna-jednotka?id=1").await.0, 404);
    let (_, first) = ask("/uctovne-jednotky?zmenene-od=2000-01-01&max-zaznamov=1").await;
    assert_eq!(first, json!({"id": [123_456], "existujeDalsieId": true}));
    let (_, rest) = ask("/uctovne-jednotky?zmenene-od=2000-01-01&max-zaznamov=1&pokracovat-za-id=123456").await;
    assert_eq!(rest, json!({"id": [123_457], "existujeDalsieId": false}));
    simulator.shutdown().await;
}
