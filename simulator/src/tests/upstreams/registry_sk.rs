use super::*;

const SEARCH: &str = "/legal-person?Take=50&Filter.CorporateBodyFullNameOrRegistrationNumber=";

#[tokio::test]
async fn a_number_may_have_two_files_and_each_has_an_extract() {
    let simulator = start().await;
    let search = async |query: &str| get(&simulator, "registry_sk", &format!("{SEARCH}{query}")).await;
    let (_, found) = search("35757442").await;
    let ids: Vec<_> = found["data"].as_array().unwrap().iter().map(|row| row["id"].as_u64().unwrap()).collect();
    assert_eq!((&found["filteredCount"], ids), (&json!(2), vec![2210, 104_500]));
    assert_eq!(search("eset").await.1["data"][0]["registrationNumber"], "31333532");
    assert_eq!(search("00000000").await, (200, json!({"filteredCount": 0, "data": []})));
    assert!(search("").await.1["errors"].is_object());

    let (_, extract) = get(&simulator, "registry_sk", "/legal-person/extract?oddiel=Sro&vlozka=3586&sud=B").await;
    assert_eq!(extract["legalPerson"]["corporateBody"]["statutoryBody"][0]["function"], "konateľ");
    assert_eq!(get(&simulator, "registry_sk", "/legal-person/extract?oddiel=Sro&vlozka=1&sud=B").await.0, 404);
    simulator.shutdown().await;
}

#[tokio::test]
async fn the_site_sends_windows_1250_without_naming_it() {
    let simulator = start().await;
    let page = async |path: &str| {
        let response = fetch(&simulator, "registry_sk_html", path).await;
        assert_eq!(response.headers()["content-type"], "text/html");
        let bytes = response.bytes().await.unwrap();
        assert!(String::from_utf8(bytes.to_vec()).is_err(), "{path} is UTF-8");
        encoding_rs::WINDOWS_1250.decode(&bytes).0.into_owned()
    };
    assert!(page("/hladaj_ico.asp?ICO=31333532&SID=0").await.contains("vypis.asp?ID=1319&amp;SID=2"));
    assert!(page("/hladaj_subjekt.asp?OBMENO=eset&PF=0&R=on").await.contains("ESET, spol. s r.o."));
    assert!(page("/vypis.asp?ID=1319&SID=2&P=0").await.contains("Štatutárny orgán"));
    assert!(page("/hladaj_ico.asp?ICO=1&SID=0").await.contains("nenachádza"));
    simulator.shutdown().await;
}

#[tokio::test]
async fn the_statistical_office_has_names_and_addresses() {
    let simulator = start().await;
    let (_, found) = get(&simulator, "registry_sk_rpo", "/search?identifier=31333532").await;
    let id = &found["results"][0]["id"];
    let (_, entity) = get(&simulator, "registry_sk_rpo", &format!("/entity/{id}?showHistoricalData=true")).await;
    assert_eq!(entity["fullNames"][0]["value"], "ESET, spol. s r.o.");
    assert_eq!(get(&simulator, "registry_sk_rpo", "/search?fullName=nikto").await.1["results"], json!([]));
    assert_eq!(get(&simulator, "registry_sk_rpo", "/search").await.0, 400);
    simulator.shutdown().await;
}
