use super::*;

async fn download(simulator: &Simulator) -> (String, Vec<u8>) {
    let (_, metadata) = get(simulator, "eba_register", "/api/filemetadata").await;
    let text = |field: &str| metadata[field].as_str().unwrap().to_owned();
    let url = text("golden_copy_path_context") + &text("latest_version_relative_zip_path");
    let zip = client().get(url).send().await.unwrap().bytes().await.unwrap();
    (text("sha256_hash"), zip.to_vec())
}

#[tokio::test]
async fn the_metadata_leads_to_a_zip_or_a_broken_one() {
    let simulator = start().await;
    let (hash, zip) = download(&simulator).await;
    assert!(zip.starts_with(b"PK\x03\x04") && hash.len() == 64);
    let sidecar = "/downloads/PSDMD/20261129/download-PSDMD-202611290000.zip.sha256";
    assert_eq!(fetch(&simulator, "eba_register", sidecar).await.text().await.unwrap().trim(), hash);

    simulator.set_fault("eba_register", "sha256_mismatch").await.unwrap();
    assert_ne!(download(&simulator).await.0, hash);
    simulator.set_fault("eba_register", "half_zip").await.unwrap();
    assert_eq!(download(&simulator).await, (hash, zip[..zip.len() / 2].to_vec()));
    simulator.clear("eba_register").await.unwrap();

    let query = json!({"$and": [{"_messagetype": "EUCLIDMD"}, {"_payload.EntityType": "CRD_CRE_INS"}]});
    let (_, banks) = post(&simulator, "eba_register", "/api/search/entities", "", query).await;
    assert_eq!(banks[0]["_payload"]["EntityCode"], "BE_NBB!0403199702");
    simulator.shutdown().await;
}
