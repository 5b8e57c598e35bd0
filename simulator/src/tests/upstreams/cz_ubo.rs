use super::*;

#[tokio::test]
async fn it_is_closed_or_wants_a_login_or_answers() {
    let simulator = start().await;
    let owners = async || get(&simulator, "cz_ubo", "/ias/issm/rejstrik-$sm?ico=27082440").await;
    assert_eq!(owners().await.0, 403);
    simulator.set_fault("cz_ubo", "login_page").await.unwrap();
    let (status, page) = owners().await;
    assert!(status == 200 && page.as_str().unwrap().contains("<form"));
    simulator.set_fault("cz_ubo", "authenticated").await.unwrap();
    assert_eq!(owners().await.1["ico"], "27082440");
    simulator.shutdown().await;
}
