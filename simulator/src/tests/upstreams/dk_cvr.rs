use super::*;

#[tokio::test]
async fn companies_and_errors_all_come_with_200() {
    let simulator = start().await;
    let ask = async |query: &str| get(&simulator, "dk_cvr", &format!("/api?country=dk&{query}")).await;
    assert_eq!(ask("vat=24256790").await.1["name"], "NOVO NORDISK A/S");
    assert_eq!(ask("name=orsted").await.1["vat"], 36_213_728);
    assert_eq!(ask("search=99000104").await.1["creditbankrupt"], true);
    for (query, error) in [("vat=10000009", "NOT_FOUND"), ("vat=1", "INVALID_VAT")] {
        let (status, answer) = ask(query).await;
        assert_eq!((status, &answer["error"]), (200, &json!(error)), "{query}");
    }
    let url = format!("{}/api?vat=24256790", simulator.base_url("dk_cvr").unwrap());
    let (_, anonymous) = body(client().get(url).header("user-agent", "").send().await.unwrap()).await;
    assert_eq!(anonymous["error"], "INVALID_UA");

    simulator.set_fault("dk_cvr", "quota:1").await.unwrap();
    assert_eq!(ask("vat=24256790").await.1["vat"], 24_256_790);
    assert_eq!(ask("vat=24256790").await.1["error"], "QUOTA_EXCEEDED");
    simulator.set_fault("dk_cvr", "error:BANNED").await.unwrap();
    assert_eq!(ask("vat=24256790").await, (200, json!({"error": "BANNED", "t": 0, "version": 6})));
    simulator.set_fault("dk_cvr", "not_found_404").await.unwrap();
    assert_eq!(ask("vat=10000009").await.0, 404);
    simulator.shutdown().await;
}

#[tokio::test]
async fn a_graphql_query_has_exactly_one_root() {
    let simulator = start().await;
    let ask = async |query: &str| {
        post(&simulator, "dk_cvr_datafordeler", "/CVR/v2?apiKey=k", "", json!({"query": query})).await.1
    };
    let filter = "(first: 1, where: {CVRNummer: {eq: 24256790}}) { nodes { CVRNummer } }";
    assert_eq!(
        ask(&format!("{{ CVR_Virksomhed{filter} }}")).await["data"]["CVR_Virksomhed"]["nodes"][0]["status"],
        "AKTIV"
    );
    let form = ask(&format!("{{ CVR_Virksomhedsform{filter} }}")).await;
    assert_eq!(form["data"]["CVR_Virksomhedsform"]["nodes"][0]["vaerdiTekst"], "Aktieselskab");
    assert!(ask(&format!("{{ CVR_Navn{filter} CVR_Branche{filter} }}")).await["errors"].is_array());
    assert!(ask("{ CVR_Navn { nodes { vaerdi } } }").await["errors"].is_array());
    assert_eq!(post(&simulator, "dk_cvr_datafordeler", "/CVR/v2", "", json!({})).await.0, 401);
    simulator.shutdown().await;
}
