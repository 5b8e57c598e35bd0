use super::*;

async fn login(simulator: &Simulator) -> (u16, String) {
    let request = json!({"username": "u", "password": "p"});
    let (status, answer) = post(simulator, "fr_inpi", "/sso/login", "", request).await;
    (status, answer["token"].as_str().unwrap_or_default().to_owned())
}

async fn ask(simulator: &Simulator, token: &str, path: &str) -> (u16, Value) {
    let url = format!("{}{path}", simulator.base_url("fr_inpi").unwrap());
    body(client().get(url).bearer_auth(token).send().await.unwrap()).await
}

#[tokio::test]
async fn a_token_works_until_it_expires() {
    let simulator = start().await;
    let (_, token) = login(&simulator).await;
    assert_eq!(
        ask(&simulator, &token, "/companies/552032534").await.1["identite"]["entreprise"]["denomination"],
        "DANONE"
    );
    assert_eq!(ask(&simulator, &token, "/companies/999000300").await.1["diffusionINSEE"], "N");
    assert_eq!(ask(&simulator, &token, "/companies/999999999").await.0, 404);
    assert_eq!(ask(&simulator, &token, "/companies?companyName=bollore").await.1[0]["siren"], "055804124");
    assert_eq!(ask(&simulator, "simulated.token.2", "/companies/552032534").await.0, 401);

    simulator.set_fault("fr_inpi", "token_expires:2").await.unwrap();
    let (_, token) = login(&simulator).await;
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(ask(&simulator, &token, "/companies/552032534").await.0);
    }
    assert_eq!(statuses, [200, 200, 401]);
    let (_, renewed) = login(&simulator).await;
    assert_eq!(ask(&simulator, &renewed, "/companies/552032534").await.0, 200);
    simulator.set_fault("fr_inpi", "connection_type").await.unwrap();
    assert_eq!(login(&simulator).await.0, 403);
    assert_eq!(post(&simulator, "fr_inpi", "/sso/login", "", json!({"username": "u"})).await.0, 401);
    assert_eq!(simulator.calls("fr_inpi").unwrap().counters["logins"], 3);
    simulator.shutdown().await;
}
