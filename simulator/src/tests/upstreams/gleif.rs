use super::*;

#[tokio::test]
async fn records_are_found_by_lei_number_and_name() {
    let simulator = start().await;
    let (status, record) = get(&simulator, "gleif", "/lei-records/OW6OFBNCKXC4US5C7523").await;
    assert_eq!((status, &record["data"]["attributes"]["entity"]["registeredAs"]), (200, &json!("923 609 016")));
    let link = record["data"]["links"]["self"].as_str().unwrap();
    assert_eq!(link, format!("{}/lei-records/OW6OFBNCKXC4US5C7523", simulator.base_url("gleif").unwrap()));

    for (query, total) in [
        ("filter[entity.registeredAs]=923+609+016&filter[entity.jurisdiction]=NO", 1),
        ("filter[entity.registeredAs]=923609016", 0),
        ("filter[entity.legalName]=equinor", 2),
        ("filter[entity.legalName]=%C4%8CEZ", 1),
        ("filter[fulltext]=nobody+at+all", 0),
    ] {
        let (status, found) = get(&simulator, "gleif", &format!("/lei-records?{query}")).await;
        assert_eq!((status, &found["meta"]["pagination"]["total"]), (200, &json!(total)), "{query}");
        assert_eq!(found["data"].as_array().unwrap().len(), total, "{query}");
    }
    let (_, second) = get(&simulator, "gleif", "/lei-records?page[size]=10&page[number]=2").await;
    assert_eq!(second["meta"]["pagination"]["from"], 11);
    assert_eq!(get(&simulator, "gleif", "/lei-records?page[size]=0").await.0, 400);
    simulator.shutdown().await;
}

#[tokio::test]
async fn a_company_has_a_parent_or_a_reason_for_none() {
    let simulator = start().await;
    let (subsidiary, parent) = ("/lei-records/98450073EGD581D89F03", "/lei-records/OW6OFBNCKXC4US5C7523");
    for kind in ["direct-parent", "ultimate-parent"] {
        let (status, found) = get(&simulator, "gleif", &format!("{subsidiary}/{kind}")).await;
        assert_eq!((status, &found["data"]["id"]), (200, &json!("OW6OFBNCKXC4US5C7523")));
        assert_eq!(get(&simulator, "gleif", &format!("{subsidiary}/{kind}-reporting-exception")).await.0, 404);

        let (status, error) = get(&simulator, "gleif", &format!("{parent}/{kind}")).await;
        assert_eq!((status, &error["errors"][0]["status"]), (404, &json!("404")));
        let (status, exception) = get(&simulator, "gleif", &format!("{parent}/{kind}-reporting-exception")).await;
        assert_eq!((status, &exception["data"]["attributes"]["reason"]), (200, &json!("NATURAL_PERSONS")));
    }
    let (_, children) = get(&simulator, "gleif", &format!("{parent}/direct-children")).await;
    assert_eq!(children["data"][0]["id"], "98450073EGD581D89F03");
    simulator.shutdown().await;
}

#[tokio::test]
async fn every_lei_of_the_fixtures_has_a_valid_checksum() {
    let simulator = start().await;
    let (_, all) = get(&simulator, "gleif", "/lei-records?page[size]=200").await;
    for record in all["data"].as_array().unwrap() {
        let lei = record["id"].as_str().unwrap();
        let rest = lei.chars().fold(0_u64, |rest, c| {
            let value = u64::from(c.to_digit(36).unwrap());
            (rest * if value < 10 { 10 } else { 100 } + value) % 97
        });
        assert_eq!((lei.len(), rest), (20, 1), "{lei}");
    }
    simulator.shutdown().await;
}
