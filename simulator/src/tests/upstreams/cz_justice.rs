use super::*;

#[tokio::test]
async fn the_portal_lists_deeds_by_number_without_leading_zeros() {
    let simulator = start().await;
    let (_, deeds) = get(&simulator, "cz_justice", "/api/sbirka-listin/subjekty/27082440").await;
    let first = &deeds["vysledekdetail"]["prehledlistin"][0];
    assert_eq!(first["typlistiny"], "účetní závěrka [2024]");
    let id = first["detail"][0]["obsah"]["digitalnipodoba"]["documentid"].as_str().unwrap();
    let pdf = fetch(&simulator, "cz_justice", &format!("/dokumenty/sbirka-listin/{id}")).await.bytes().await.unwrap();
    assert!(pdf.starts_with(b"%PDF-"));
    let (status, none) = get(&simulator, "cz_justice", "/api/sbirka-listin/subjekty/1").await;
    assert_eq!((status, &none["vysledekdetail"]["prehledlistin"]), (200, &json!([])));
    simulator.shutdown().await;
}

#[tokio::test]
async fn the_older_site_answers_while_the_portal_challenges() {
    let simulator = start().await;
    simulator.set_fault("cz_justice", "200_html_challenge").await.unwrap();
    let (status, page) = get(&simulator, "cz_justice", "/api/sbirka-listin/subjekty/27082440").await;
    assert!(status == 200 && page.as_str().unwrap().contains("<html>"));

    let html = async |path: &str| get(&simulator, "cz_justice_legacy", path).await.1.as_str().unwrap().to_owned();
    let cut = |html: &str, from: &str| html.split_once(from).unwrap().1.split(['&', '"']).next().unwrap().to_owned();
    let found = html("/ias/ui/rejstrik-$firma?ico=27082440").await;
    let deeds = html(&format!("/ias/ui/vypis-sl-firma?subjektId={}", cut(&found, "subjektId="))).await;
    assert!(deeds.contains("<table class=\"list\">") && deeds.contains("<span class=\"symbol\">"));
    let deed = html(&format!("/ias/ui/vypis-sl-detail?dokument={}", cut(&deeds, "dokument="))).await;
    let pdf = html(&format!("/ias/content/download?id={}", cut(&deed, "download?id="))).await;
    assert!(pdf.starts_with("%PDF-"));
    assert!(html("/ias/ui/rejstrik-$firma?ico=00000001").await.contains("Nenalezeno"));
    simulator.shutdown().await;
}
