use super::*;

const CRUNCHBASE: &str = "gd_l1vijqt9jfj7olije";

async fn ask(simulator: &Simulator, path: &str) -> (u16, Value) {
    let url = format!("{}{path}", simulator.base_url("brightdata_enrichment").unwrap());
    body(client().get(url).bearer_auth("t").send().await.unwrap()).await
}

async fn trigger(simulator: &Simulator, dataset: &str, organisation: &str) -> (u16, Value) {
    let path = format!("/datasets/v3/trigger?dataset_id={dataset}&include_errors=true");
    let input = json!([{"url": format!("https://www.crunchbase.com/organization/{organisation}")}]);
    post(simulator, "brightdata_enrichment", &path, "Bearer t", input).await
}

async fn started(simulator: &Simulator, organisation: &str) -> String {
    let (status, job) = trigger(simulator, CRUNCHBASE, organisation).await;
    assert_eq!(status, 200);
    job["snapshot_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_job_is_started_polled_and_collected() {
    let simulator = start().await;
    simulator.set_fault("brightdata_enrichment", "polls:2").await.unwrap();
    let id = started(&simulator, "equinor").await;
    let (progress, snapshot) = (format!("/datasets/v3/progress/{id}"), format!("/datasets/v3/snapshot/{id}"));
    assert_eq!(ask(&simulator, &progress).await.1["status"], "starting");
    assert_eq!(ask(&simulator, &snapshot).await.0, 202);
    assert_eq!(ask(&simulator, &progress).await.1["status"], "ready");
    let (status, rows) = ask(&simulator, &snapshot).await;
    assert_eq!((status, &rows[0]["legal_name"]), (200, &json!("Equinor ASA")));
    let calls = simulator.calls("brightdata_enrichment").unwrap();
    assert_eq!((calls.counters["jobs"], calls.keys[CRUNCHBASE]), (1, 1));
    simulator.shutdown().await;
}

#[tokio::test]
async fn jobs_fail_in_every_documented_way() {
    let simulator = start().await;
    let id = started(&simulator, "nobody").await;
    let snapshot = format!("/datasets/v3/snapshot/{id}");
    assert_eq!(ask(&simulator, &snapshot).await.1[0]["error_code"], "dead_page");
    assert_eq!(ask(&simulator, "/datasets/v3/snapshot/s_none").await.0, 404);
    assert_eq!(trigger(&simulator, "gd_none", "equinor").await.0, 404);
    let path = format!("/datasets/v3/trigger?dataset_id={CRUNCHBASE}");
    let (status, error) = post(&simulator, "brightdata_enrichment", &path, "Bearer t", json!({})).await;
    assert!(status == 400 && error["validation_errors"].is_array());

    simulator.set_fault("brightdata_enrichment", "row_errors").await.unwrap();
    let id = started(&simulator, "equinor").await;
    while ask(&simulator, &format!("/datasets/v3/progress/{id}")).await.1["status"] != "ready" {}
    assert_eq!(ask(&simulator, &format!("/datasets/v3/snapshot/{id}")).await.1[0]["error_code"], "dead_page");
    simulator.set_fault("brightdata_enrichment", "job_failed").await.unwrap();
    let (status, failed) = ask(&simulator, &format!("/datasets/v3/progress/{id}")).await;
    assert!(status == 200 && failed["status"] == "failed" && failed["error_message"].is_string());
    simulator.set_fault("brightdata_enrichment", "expired").await.unwrap();
    assert_eq!(ask(&simulator, &snapshot).await.0, 400);
    simulator.set_fault("brightdata_enrichment", "too_many_jobs").await.unwrap();
    assert_eq!(trigger(&simulator, CRUNCHBASE, "equinor").await.0, 429);
    for (fault, status) in [("suspended", 200), ("suspended_403", 403)] {
        simulator.set_fault("brightdata_enrichment", fault).await.unwrap();
        assert_eq!(trigger(&simulator, CRUNCHBASE, "equinor").await, (status, json!("Account is suspended")));
    }
    assert_eq!(get(&simulator, "brightdata_person", "/customer/balance").await.0, 401);
    simulator.shutdown().await;
}
