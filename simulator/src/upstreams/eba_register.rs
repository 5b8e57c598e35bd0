//! The register of payment institutions: metadata that leads to one large ZIP, regenerated every night.

use std::{
    io::{Cursor, Write},
    sync::LazyLock,
};

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::digest::sha256;
use crate::fault::{Parameter, Scenario};
use crate::spec::{Call, EMPTY, UpstreamSpec, fixtures, get, post};

/// The spec.
pub(crate) static SPEC: UpstreamSpec = UpstreamSpec {
    name: "eba_register",
    hosts: &["https://euclid.eba.europa.eu"],
    base: "/register",
    routes: &[
        get("metadata", "/api/filemetadata", metadata),
        get("download", "/downloads/PSDMD/20261129/{}", download),
        post("credit_institutions", "/api/search/entities", credit_institutions),
    ],
    fixtures: fixtures![
        "eba_register/credit_institutions.json",
        "eba_register/filemetadata.json",
        "eba_register/files/download-PSDMD-202611290000.zip",
        "eba_register/files/download-PSDMD-202611290000.zip.sha256",
    ],
    scenarios: &[
        Scenario {
            name: "sha256_mismatch",
            parameter: Parameter::None,
            about: "the metadata announces another checksum",
        },
        Scenario {
            name: "half_zip",
            parameter: Parameter::None,
            about: "the download is a complete response with half of the file",
        },
    ],
    ..EMPTY
};

fn missing() -> Answer {
    Answer::html(404, crate::answer::HTML_MOVED)
}

/// An edition without any institution, for a register with the fault `not_found`.
static EMPTY_EDITION: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let text = br#"[[{"disclaimer": "The register is provided for information only."}], []]"#;
    let file = archive.start_file("PSDMD.json", zip::write::SimpleFileOptions::default());
    let written = file.and_then(|()| Ok(archive.write_all(text)?)).and_then(|()| archive.finish());
    written.map(Cursor::into_inner).unwrap_or_default()
});

fn metadata(call: &Call) -> Answer {
    let metadata = call.fixed("/filemetadata.json").and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
    let Some(mut metadata) = metadata else { return missing() };
    if call.not_found {
        metadata["sha256_hash"] = json!(sha256(&EMPTY_EDITION));
    }
    if call.scenario("sha256_mismatch").is_some() {
        metadata["sha256_hash"] = json!("0".repeat(64));
    }
    Answer::ok(metadata).with_etag(call.header("if-none-match"))
}

fn download(call: &Call) -> Answer {
    let name = call.captured(0);
    let content_type = if name.ends_with(".zip") { "application/zip" } else { "text/plain" };
    if call.not_found {
        return Answer::bytes(200, content_type, EMPTY_EDITION.as_slice().into());
    }
    let Some(bytes) = call.fixture(&format!("/files/{name}")) else { return missing() };
    let length = if call.scenario("half_zip").is_some() { bytes.len() / 2 } else { bytes.len() };
    Answer::bytes(200, content_type, bytes[..length].into())
}

fn credit_institutions(call: &Call) -> Answer {
    let request = call.json();
    let filters = request["$and"].as_array().into_iter().flatten();
    let wanted = filters.filter_map(|filter| filter["_payload.EntityType"].as_str()).next().unwrap_or_default();
    let all = call.record("/credit_institutions.json").and_then(|all| all.as_array().cloned()).unwrap_or_default();
    Answer::ok(Value::Array(all.into_iter().filter(|entity| entity["_payload"]["EntityType"] == wanted).collect()))
}
