use super::*;

async fn check(simulator: &Simulator, country: &str, number: &str) -> Value {
    let (status, answer) = get(simulator, "vies", &format!("/ms/{country}/vat/{number}")).await;
    assert_eq!(status, 200);
    answer
}

async fn soap(simulator: &Simulator, country: &str, number: &str) -> (u16, String) {
    let url = format!("{}/checkVatService", simulator.base_url("vies_soap").unwrap());
    let xml = format!(
        "<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'><e:Body>\
         <checkVat xmlns='urn:ec.europa.eu:taxud:vies:services:checkVat:types'>\
         <countryCode>{country}</countryCode><vatNumber>{number}</vatNumber></checkVat></e:Body></e:Envelope>"
    );
    let response = client().post(url).body(xml).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

#[tokio::test]
async fn numbers_are_valid_withheld_or_invalid() {
    let simulator = start().await;
    for (country, number, valid, error, name) in [
        ("BE", "0202239951", true, "VALID", "NV PROXIMUS"),
        ("DE", "811569869", true, "VALID", "---"),
        ("BE", "0403199703", false, "INVALID", "---"),
        ("BE", "not.a.number", false, "INVALID_INPUT", "---"),
        ("GB", "288305674", false, "INVALID_INPUT", "---"),
    ] {
        let answer = check(&simulator, country, number).await;
        let got = (&answer["isValid"], &answer["userError"], &answer["name"]);
        assert_eq!(got, (&json!(valid), &json!(error), &json!(name)), "{country}{number}");
    }
    assert_eq!(simulator.calls("vies").unwrap().keys["BE"], 3);
    simulator.shutdown().await;
}

#[tokio::test]
async fn the_test_numbers_have_their_outcomes_in_both_formats() {
    let simulator = start().await;
    for (number, code) in [
        ("200", "INVALID"),
        ("201", "INVALID_INPUT"),
        ("202", "INVALID_REQUESTER_INFO"),
        ("300", "SERVICE_UNAVAILABLE"),
        ("301", "MS_UNAVAILABLE"),
        ("302", "TIMEOUT"),
        ("400", "VAT_BLOCKED"),
        ("401", "IP_BLOCKED"),
        ("500", "GLOBAL_MAX_CONCURRENT_REQ"),
        ("501", "GLOBAL_MAX_CONCURRENT_REQ_TIME"),
        ("600", "MS_MAX_CONCURRENT_REQ"),
        ("601", "MS_MAX_CONCURRENT_REQ_TIME"),
    ] {
        assert_eq!(check(&simulator, "FR", number).await["userError"], code);
        let request = json!({"countryCode": "FR", "vatNumber": number});
        let (status, answer) = post(&simulator, "vies", "/check-vat-test-service", "", request).await;
        let error = &answer["errorWrappers"][0]["error"];
        let expected = if code == "INVALID" { Value::Null } else { json!(code) };
        assert_eq!((status, error), (200, &expected), "{number}");
    }
    assert_eq!(check(&simulator, "FR", "100").await["isValid"], true);
    simulator.shutdown().await;
}

#[tokio::test]
async fn one_member_state_is_down_and_the_others_are_not() {
    let simulator = start().await;
    simulator.set_fault("vies", "ms_unavailable:DE,ES").await.unwrap();
    assert_eq!(check(&simulator, "DE", "811569869").await["userError"], "MS_UNAVAILABLE");
    assert_eq!(check(&simulator, "BE", "0202239951").await["userError"], "VALID");
    let (_, status) = get(&simulator, "vies", "/check-status").await;
    let of = |country: &str| {
        let list = status["countries"].as_array().unwrap();
        list.iter().find(|row| row["countryCode"] == country).unwrap()["availability"].clone()
    };
    assert_eq!((of("DE"), of("BE")), (json!("Unavailable"), json!("Available")));

    simulator.set_fault("vies", "user_error:SERVER_BUSY").await.unwrap();
    assert_eq!(check(&simulator, "BE", "0202239951").await["userError"], "SERVER_BUSY");
    simulator.set_fault("vies", "error_wrapper:SOMETHING_NEW").await.unwrap();
    let answer = check(&simulator, "BE", "0202239951").await;
    assert_eq!(
        (&answer["actionSucceed"], &answer["errorWrappers"][0]["error"]),
        (&json!(false), &json!("SOMETHING_NEW"))
    );
    simulator.shutdown().await;
}

#[tokio::test]
async fn soap_answers_and_faults_with_200_and_500() {
    let simulator = start().await;
    let (status, xml) = soap(&simulator, "CZ", "27082440").await;
    assert!(status == 200 && xml.contains("<ns2:valid>true</ns2:valid>") && xml.contains("Alza.cz a.s."), "{xml}");
    assert!(soap(&simulator, "CZ", "27082441").await.1.contains("<ns2:valid>false</ns2:valid>"));
    for (fault, expected) in [("soap_fault:MS_MAX_CONCURRENT_REQ", 200), ("soap_fault_500:MS_MAX_CONCURRENT_REQ", 500)]
    {
        simulator.set_fault("vies_soap", fault).await.unwrap();
        let (status, xml) = soap(&simulator, "CZ", "27082440").await;
        assert_eq!(status, expected);
        assert!(xml.contains("<faultstring>MS_MAX_CONCURRENT_REQ</faultstring>"), "{xml}");
    }
    simulator.set_fault("vies_soap", "ms_unavailable:CZ").await.unwrap();
    assert!(soap(&simulator, "CZ", "27082440").await.1.contains("MS_UNAVAILABLE"));
    assert_eq!(simulator.calls("vies_soap").unwrap().keys["CZ"], 5);
    simulator.shutdown().await;
}
