use super::*;

async fn crawl(simulator: &Simulator, url: &str) -> (u16, Value) {
    post(simulator, "crawl4ai", "/crawl", "Bearer t", json!({"urls": [url]})).await
}

#[tokio::test]
async fn a_dead_site_is_a_result_and_a_dead_crawler_a_status() {
    let simulator = start().await;
    let (_, good) = crawl(&simulator, "https://www.equinor.com/").await;
    assert!(good["results"][0]["markdown"]["raw_markdown"].as_str().unwrap().contains("923 609 016"));
    let (status, dead) = crawl(&simulator, "https://nowhere.example/").await;
    assert_eq!((status, &dead["results"][0]["success"]), (200, &json!(false)));
    for private in ["http://127.0.0.1/", "http://169.254.169.254/latest", "http://localhost:8080", "file:///etc/passwd"]
    {
        assert_eq!(crawl(&simulator, private).await.0, 400, "{private}");
    }
    for (fault, status) in [("queue_full", 503), ("all_failed", 500), ("too_large", 413), ("target_down", 200)] {
        simulator.set_fault("crawl4ai", fault).await.unwrap();
        let (got, answer) = crawl(&simulator, "https://www.equinor.com/").await;
        assert_eq!(got, status, "{fault}");
        assert!(answer["results"][0]["success"] == false || answer["detail"].is_string(), "{fault}: {answer}");
    }
    simulator.shutdown().await;
}

#[tokio::test]
async fn jobs_are_polled_and_markdown_comes_alone() {
    let simulator = start().await;
    let request = json!({"urls": ["https://example.com"]});
    let (status, job) = post(&simulator, "crawl4ai", "/crawl/job", "", request).await;
    assert_eq!(status, 202);
    let path = format!("/crawl/job/{}", job["task_id"].as_str().unwrap());
    assert_eq!(get(&simulator, "crawl4ai", &path).await.1["status"], "PROCESSING");
    let (_, done) = get(&simulator, "crawl4ai", &path).await;
    assert_eq!((&done["status"], &done["result"]["results"][0]["success"]), (&json!("COMPLETED"), &json!(true)));
    assert_eq!(get(&simulator, "crawl4ai", "/crawl/job/none").await.0, 404);
    let (_, markdown) = post(&simulator, "crawl4ai", "/md", "", json!({"url": "https://example.com"})).await;
    assert!(markdown["markdown"].as_str().unwrap().starts_with("# Example"));
    assert_eq!(get(&simulator, "crawl4ai", "/health").await.1["status"], "ok");
    simulator.shutdown().await;
}
