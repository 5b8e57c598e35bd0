use super::*;

#[tokio::test]
async fn pages_in_two_languages_and_not_found_with_200() {
    let simulator = start().await;
    let page = async |path: &str| get(&simulator, "kbo", path).await;
    for (path, text) in [
        ("/toonondernemingps.html?ondernemingsnummer=0202239951&lang=en", "Public limited company of public law"),
        ("/toonondernemingps.html?ondernemingsnummer=202239951&lang=fr", "Situation juridique:"),
        ("/zoeknummerform.html?nummer=0202.239.951&actionLu=Zoek", "0202.239.951"),
        ("/toonondernemingps.html?ondernemingsnummer=0999000129&lang=en", "Opening of bankruptcy procedure"),
        ("/vestiginglijst.html?ondernemingsnummer=0202239951&lang=en", "2.123.456."),
        ("/toonondernemingps.html?ondernemingsnummer=0417497106&lang=en", "<p>No data included in CBE.</p>"),
        ("/toonondernemingps.html?ondernemingsnummer=0431150351&lang=en", "is not valid"),
    ] {
        let (status, html) = page(path).await;
        assert!(status == 200 && html.as_str().unwrap().contains(text), "{path}: {html}");
    }
    simulator.set_fault("kbo", "blocked").await.unwrap();
    assert_eq!(page("/zoeknummerform.html?nummer=0202.239.951").await.0, 403);
    simulator.shutdown().await;
}
