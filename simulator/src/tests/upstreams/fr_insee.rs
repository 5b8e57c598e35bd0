use super::*;

async fn ask(simulator: &Simulator, path: &str) -> (u16, Value) {
    let url = format!("{}{path}", simulator.base_url("fr_insee").unwrap());
    body(client().get(url).header("x-insee-api-key-integration", "k").send().await.unwrap()).await
}

#[tokio::test]
async fn units_are_found_unknown_or_hidden() {
    let simulator = start().await;
    for (path, status, pointer, value) in [
        ("/siren/552032534", 200, "/uniteLegale/periodesUniteLegale/0/denominationUniteLegale", "DANONE"),
        ("/siren/999999998", 404, "/header/message", "Aucun élément trouvé pour le siren 999999998"),
        ("/siren/999000102", 403, "/header/message", "Unité légale non diffusable (999000102)"),
        ("/siren/1", 400, "/header/message", "Erreur de syntaxe dans le paramètre siren"),
        ("/siret/55203253400646", 200, "/etablissement/nic", "00646"),
        ("/siren?q=denominationUniteLegale:%22DANONE%22&nombre=20", 200, "/unitesLegales/0/siren", "552032534"),
        (
            "/siren?q=denominationUniteLegale:%22NOBODY%22",
            404,
            "/header/message",
            "Aucun élément trouvé pour les critères de recherche",
        ),
        ("/siren?q=%22", 400, "/header/message", "Erreur de syntaxe dans le paramètre q="),
        ("/informations", 200, "/etatService", "UP"),
    ] {
        let (got, answer) = ask(&simulator, path).await;
        assert_eq!((got, answer.pointer(pointer)), (status, Some(&json!(value))), "{path}");
    }
    assert_eq!(get(&simulator, "fr_insee", "/siren/552032534").await.0, 401);
    simulator.set_fault("fr_insee", "maintenance").await.unwrap();
    assert_eq!(ask(&simulator, "/siren/552032534").await.0, 503);
    simulator.set_fault("fr_insee", "non_diffusible").await.unwrap();
    assert_eq!(ask(&simulator, "/siren/552032534").await.0, 403);
    simulator.shutdown().await;
}

#[tokio::test]
async fn the_open_search_needs_no_key() {
    let simulator = start().await;
    let search = async |query: &str| get(&simulator, "recherche_entreprises", &format!("/search?q={query}")).await;
    assert_eq!(search("552032534").await.1["results"][0]["nom_complet"], "DANONE");
    assert_eq!(search("nobody").await.1["total_results"], 0);
    let (status, error) = search("x").await;
    assert!(status == 400 && error["erreur"].is_string());
    simulator.shutdown().await;
}
