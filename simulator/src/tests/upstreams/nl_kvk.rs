use super::*;

async fn ask(simulator: &Simulator, path: &str) -> (u16, Value) {
    let url = format!("{}{path}", simulator.base_url("nl_kvk").unwrap());
    body(client().get(url).header("apikey", "k").send().await.unwrap()).await
}

#[tokio::test]
async fn searches_profiles_and_their_codes() {
    let simulator = start().await;
    let (_, found) = ask(&simulator, "/v2/zoeken?naam=asml").await;
    assert_eq!((&found["totaal"], &found["resultaten"][0]["kvkNummer"]), (&json!(1), &json!("17085815")));
    for (path, status, pointer, value) in [
        ("/v1/basisprofielen/17085815", 200, "/statutaireNaam", "ASML Holding N.V."),
        ("/v1/basisprofielen/17085815/eigenaar", 200, "/rechtsvorm", "NaamlozeVennootschap"),
        ("/v1/basisprofielen/17085815/hoofdvestiging", 200, "/adressen/0/plaats", "Veldhoven"),
        ("/v1/naamgevingen/kvknummer/33011433", 200, "/statutaireNaam", "Heineken N.V."),
        ("/v2/zoeken?naam=nobody", 404, "/fout/0/code", "IPD5200"),
        ("/v2/zoeken", 400, "/fout/0/code", "IPD1998"),
        ("/v1/basisprofielen/11111111", 404, "/fout/0/code", "IPD5200"),
        ("/v1/basisprofielen/99000001", 404, "/fout/0/code", "IPD0005"),
        ("/v1/basisprofielen/1", 400, "/fout/0/code", "IPD0004"),
    ] {
        let (got, answer) = ask(&simulator, path).await;
        assert_eq!((got, answer.pointer(pointer)), (status, Some(&json!(value))), "{path}");
    }
    assert_eq!(simulator.calls("nl_kvk").unwrap().counters["billed"], 4);
    assert_eq!(get(&simulator, "nl_kvk", "/v2/zoeken?naam=asml").await.0, 401);
    for (code, status) in [("IPD1002", 500), ("IPD1003", 500), ("IPD0005", 404), ("IPD5200", 404), ("IPD9999", 500)] {
        simulator.set_fault("nl_kvk", &format!("ipd:{code}")).await.unwrap();
        let (got, answer) = ask(&simulator, "/v1/basisprofielen/17085815").await;
        assert_eq!((got, &answer["fout"][0]["code"]), (status, &json!(code)));
    }
    simulator.shutdown().await;
}

#[tokio::test]
async fn the_open_data_has_no_names_and_not_every_company() {
    let simulator = start().await;
    let ask = async |n: &str| get(&simulator, "nl_kvk_open", &format!("/basisbedrijfsgegevens/kvknummer/{n}")).await;
    let (_, asml) = ask("17085815").await;
    assert!(asml["rechtsvormCode"] == "NV" && asml.get("naam").is_none());
    assert_eq!(ask("33011433").await.0, 404);
    simulator.shutdown().await;
}
