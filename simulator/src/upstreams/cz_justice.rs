//! The Czech collection of deeds: the portal's own JSON, and the older HTML site, the fallback when the portal blocks.

use serde_json::json;

use crate::answer::Answer;
use crate::spec::{Call, EMPTY, UpstreamSpec, fixtures, get};

/// The spec of the portal.
pub(crate) static PORTAL: UpstreamSpec = UpstreamSpec {
    name: "cz_justice",
    hosts: &["https://verejnerejstriky.msp.gov.cz"],
    routes: &[
        get("deeds", "/api/sbirka-listin/subjekty/{}", deeds),
        get("document", "/dokumenty/sbirka-listin/{}", |call| document(call, call.captured(0))),
    ],
    fixtures: fixtures!["cz_justice/deeds/27082440.json", "cz_justice/deeds/45274649.json", "cz_justice/document.pdf"],
    ..EMPTY
};

/// The spec of the older site.
pub(crate) static LEGACY: UpstreamSpec = UpstreamSpec {
    name: "cz_justice_legacy",
    hosts: &["https://or.justice.cz"],
    routes: &[
        get("search", "/ias/ui/rejstrik-$firma", |call| {
            let found = call.fixture(&format!("/search/{:0>8}.html", call.query("ico").unwrap_or_default()));
            html(found.or_else(|| call.fixed("/nothing.html")))
        }),
        get("deeds", "/ias/ui/vypis-sl-firma", |call| {
            html(call.fixture(&format!("/deeds/{}.html", call.query("subjektId").unwrap_or_default())))
        }),
        get("deed", "/ias/ui/vypis-sl-detail", |call| {
            html(call.fixture(&format!("/documents/{}.html", call.query("dokument").unwrap_or_default())))
        }),
        get("document", "/ias/content/download", |call| document(call, call.query("id").unwrap_or_default())),
    ],
    fixtures: fixtures![
        "cz_justice/document.pdf",
        "cz_justice_legacy/deeds/441107.html",
        "cz_justice_legacy/deeds/52173.html",
        "cz_justice_legacy/documents/90010001.html",
        "cz_justice_legacy/documents/90010002.html",
        "cz_justice_legacy/documents/90020001.html",
        "cz_justice_legacy/nothing.html",
        "cz_justice_legacy/search/27082440.html",
        "cz_justice_legacy/search/45274649.html",
    ],
    ..EMPTY
};

fn missing() -> Answer {
    Answer::html(404, crate::answer::HTML_MOVED)
}

fn deeds(call: &Call) -> Answer {
    // Numbers are asked for without their leading zeros.
    let nothing = || json!({"vysledekdetail": {"prehledlistin": []}});
    Answer::ok(call.record(&format!("/deeds/{}.json", call.captured(0))).unwrap_or_else(nothing))
}

fn html(found: Option<&'static [u8]>) -> Answer {
    found.map_or_else(missing, |bytes| Answer::bytes(200, "text/html;charset=UTF-8", bytes.into()))
}

fn document(call: &Call, id: &str) -> Answer {
    let file = call.fixture("/document.pdf").filter(|_| !id.is_empty());
    file.map_or_else(missing, |bytes| Answer::bytes(200, "application/pdf", bytes.into()))
}
