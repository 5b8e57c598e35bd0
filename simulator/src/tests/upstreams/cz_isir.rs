use super::*;

async fn search(simulator: &Simulator, number: &str) -> (u16, String) {
    let url = format!("{}/IsirWsCuzkService", simulator.base_url("cz_isir").unwrap());
    let xml = format!(
        "<Envelope xmlns=\"http://schemas.xmlsoap.org/soap/envelope/\"><Body>\
         <t:getIsirWsCuzkDataRequest xmlns:t=\"http://isirws.cca.cz/types/\"><ic>{number}</ic>\
         <maxPocetVysledku>50</maxPocetVysledku></t:getIsirWsCuzkDataRequest></Body></Envelope>"
    );
    let response = client().post(url).header("content-type", "text/xml; charset=utf-8").body(xml).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

#[tokio::test]
async fn every_answer_is_200_even_when_the_database_is_down() {
    let simulator = start().await;
    for (number, expected) in [
        ("99000105", "<druhStavKonkursu>KONKURS</druhStavKonkursu>"),
        ("27082440", "<kodChyby>WS2</kodChyby>"),
        ("", "<kodChyby>WS1</kodChyby>"),
    ] {
        let (status, xml) = search(&simulator, number).await;
        assert!(status == 200 && xml.contains(expected) && xml.contains("<casSynchronizace>"), "{number}: {xml}");
    }
    simulator.set_fault("cz_isir", "code:SERVER1").await.unwrap();
    let (status, xml) = search(&simulator, "99000105").await;
    assert!(status == 200 && xml.contains("<kodChyby>SERVER1</kodChyby>") && !xml.contains("<data>"), "{xml}");
    simulator.shutdown().await;
}
