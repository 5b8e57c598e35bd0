use super::*;

const FORUSBEEN: &str = "/search?q=Forusbeen+50,+4035+STAVANGER,+Norge&format=jsonv2&limit=1&addressdetails=1";

#[tokio::test]
async fn places_are_found_by_free_or_structured_address() {
    let simulator = start().await;
    let (_, found) = get(&simulator, "nominatim", FORUSBEEN).await;
    assert_eq!((&found[0]["lat"], &found[0]["address"]["country_code"]), (&json!("58.8903"), &json!("no")));
    let (_, found) =
        get(&simulator, "nominatim", "/search?street=27+Boulevard+du+Roi+Albert+II&city=Bruxelles&format=json").await;
    assert!(found[0].get("class").is_some() && found[0].get("address").is_none());
    for (path, status, answer) in [
        ("/search?q=Nowhere+1&format=jsonv2", 200, json!([])),
        ("/search?q=Forusbeen+50&format=jsonv2&countrycodes=be", 200, json!([])),
        ("/status", 200, json!("OK")),
    ] {
        assert_eq!(get(&simulator, "nominatim", path).await, (status, answer), "{path}");
    }
    assert_eq!(get(&simulator, "nominatim", "/search?q=x&city=y&format=json").await.0, 400);
    assert!(get(&simulator, "nominatim", "/search?q=Forusbeen+50").await.1.as_str().unwrap().contains("<html>"));
    assert_eq!(get(&simulator, "nominatim", "/status?format=json").await.1["status"], 0);
    simulator.shutdown().await;
}

#[tokio::test]
async fn it_refuses_unnamed_and_fast_clients() {
    let simulator = start().await;
    let url = format!("{}{FORUSBEEN}", simulator.base_url("nominatim").unwrap());
    for agent in ["", "reqwest/0.13", "python-requests/2.32"] {
        let response = client().get(&url).header("user-agent", agent).send().await.unwrap();
        assert_eq!(response.status(), 403, "{agent}");
    }
    simulator.set_fault("nominatim", "enforce_rate").await.unwrap();
    let mut refused = 0;
    for _ in 0..50 {
        refused += u32::from(get(&simulator, "nominatim", FORUSBEEN).await.0 == 403);
    }
    assert!(refused > 0, "50 calls on end were all let through");
    simulator.set_fault("nominatim", "blocked").await.unwrap();
    assert_eq!(get(&simulator, "nominatim", FORUSBEEN).await.0, 403);
    simulator.set_fault("nominatim", "database_down").await.unwrap();
    assert_eq!(get(&simulator, "nominatim", "/status?format=json").await.1["status"], 700);
    assert_eq!(get(&simulator, "nominatim", "/status").await.0, 500);
    simulator.shutdown().await;
}
