use super::*;

async fn ask(simulator: &Simulator, path: &str) -> (u16, Value) {
    let url = format!("{}{path}", simulator.base_url("northdata").unwrap());
    body(client().get(url).header("x-api-key", "k").send().await.unwrap()).await
}

#[tokio::test]
async fn companies_cost_credits_and_probes_do_not() {
    let simulator = start().await;
    assert_eq!(get(&simulator, "northdata", "/search/v1/suggest?query=sap").await.0, 401);
    let (_, company) = ask(&simulator, "/company/v1/company?register=HRB6684/Muenchen&representatives=true").await;
    assert_eq!((&company["name"], company.get("owners")), (&json!("Siemens AG"), None));
    assert_eq!(company["representatives"][0]["role"], "Vorstand");
    assert_eq!(
        ask(&simulator, "/company/v1/company?name=zalando&address=Berlin").await.1["name"]["name"],
        "Zalando SE"
    );
    assert_eq!(ask(&simulator, "/company/v1/company?register=HRB1/Ulm").await.0, 404);
    assert_eq!(ask(&simulator, "/search/v1/suggest?query=sap").await.1["items"][0]["name"], "SAP SE");
    assert_eq!(ask(&simulator, "/billing/v1/requests").await.1["numberOfRequests"], 2);
    assert_eq!(ask(&simulator, "/search/v1/power?query=s&limit=1").await.1["nextOffset"], 1);
    assert_eq!(simulator.calls("northdata").unwrap().counters["credits"], 3);
    simulator.shutdown().await;
}

#[tokio::test]
async fn an_answer_has_three_shapes_and_can_be_censored() {
    let simulator = start().await;
    let path = "/company/v1/company?name=sap";
    simulator.set_fault("northdata", "shape_array").await.unwrap();
    assert_eq!(ask(&simulator, path).await.1[0]["name"], "SAP SE");
    simulator.set_fault("northdata", "shape_items").await.unwrap();
    assert_eq!(ask(&simulator, path).await.1["items"][0]["name"], "SAP SE");
    simulator.set_fault("northdata", "censored").await.unwrap();
    assert_eq!(ask(&simulator, "/search/v1/power?query=sap").await.1, json!({"censored": true, "items": []}));
    simulator.shutdown().await;
}
