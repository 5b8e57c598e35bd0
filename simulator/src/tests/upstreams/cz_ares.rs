use super::*;

#[tokio::test]
async fn entities_and_the_public_register_and_both_kinds_of_404() {
    let simulator = start().await;
    for (path, status, pointer, value) in [
        ("/ekonomicke-subjekty/27082440", 200, "/obchodniJmeno", json!("Alza.cz a.s.")),
        ("/ekonomicke-subjekty/99000105", 200, "/seznamRegistraci/stavZdrojeIr", json!("AKTIVNI")),
        ("/ekonomicke-subjekty/12345678", 404, "/subKod", json!("VYSTUP_SUBJEKT_NENALEZEN")),
        ("/ekonomicke-subjekty/123", 400, "/subKod", json!("VSTUP_NEVALIDNI_FORMAT_ICO")),
        ("/ekonomicke-subjekty-vr/27082440", 200, "/zaznamy/0/ico/0/hodnota", json!("27082440")),
        ("/ekonomicke-subjekty-vr/26168685", 200, "/zaznamy/0/ico", json!("26168685")),
        ("/ekonomicke-subjekty-vr/99000105", 404, "/kod", json!("NENALEZENO")),
        ("/ekonomicke-subjekty-v2/27082440", 404, "/error", json!("Not Found")),
    ] {
        let (got, answer) = get(&simulator, "cz_ares", path).await;
        assert_eq!((got, answer.pointer(pointer)), (status, Some(&value)), "{path}");
    }
    assert_eq!(simulator.calls("cz_ares").unwrap().operations["unrouted"], 1);
    simulator.shutdown().await;
}

#[tokio::test]
async fn searches_by_name_and_number_have_a_limit() {
    let simulator = start().await;
    let search = async |query| post(&simulator, "cz_ares", "/ekonomicke-subjekty/vyhledat", "", query).await;
    let (_, found) = search(json!({"obchodniJmeno": "alza", "start": 0, "pocet": 10})).await;
    assert_eq!((&found["pocetCelkem"], &found["ekonomickeSubjekty"][0]["ico"]), (&json!(1), &json!("27082440")));
    assert_eq!(search(json!({"ico": ["45274649", "26168685"]})).await.1["pocetCelkem"], 2);
    assert_eq!(
        search(json!({"obchodniJmeno": "nikdo"})).await,
        (200, json!({"pocetCelkem": 0, "ekonomickeSubjekty": []}))
    );
    assert_eq!(search(json!({"obchodniJmeno": "a"})).await.1["subKod"], "VYSTUP_PRILIS_MNOHO_VYSLEDKU");
    assert_eq!(search(json!({})).await.1["subKod"], "VSTUP_PRAZDNY");
    simulator.shutdown().await;
}

#[tokio::test]
async fn its_own_faults() {
    let simulator = start().await;
    let status = async |path| get(&simulator, "cz_ares", path).await.0;
    simulator.set_fault("cz_ares", "vr_down").await.unwrap();
    assert_eq!(status("/ekonomicke-subjekty-vr/27082440").await, 500);
    assert_eq!(status("/ekonomicke-subjekty/27082440").await, 200);
    simulator.set_fault("cz_ares", "too_many").await.unwrap();
    let query = json!({"obchodniJmeno": "alza"});
    let (_, answer) = post(&simulator, "cz_ares", "/ekonomicke-subjekty/vyhledat", "", query).await;
    assert_eq!(answer["subKod"], "VYSTUP_PRILIS_MNOHO_VYSLEDKU");
    simulator.set_fault("cz_ares", "moved").await.unwrap();
    let (status, answer) = get(&simulator, "cz_ares", "/ekonomicke-subjekty/27082440").await;
    assert_eq!((status, &answer["status"]), (404, &json!(404)));
    simulator.shutdown().await;
}
