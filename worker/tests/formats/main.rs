//! The report's formats, judged by the programs that read them: headless Chromium, the `followthemoney` package, and the
//! JSON Schema of the Beneficial Ownership Data Standard. `scripts/tools` provides them.

mod report;

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use osint_worker::report::{
    Report,
    export::{bods::bods, ftm::ftm},
    page::{compose, html},
};
use report::{HOSTILE, hostile, listed, unscreened};
use serde_json::Value;

/// Path of a program of `scripts/tools`.
fn tool(name: &str) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/tools");
    let output = Command::new(script).arg(name).output().expect("scripts/tools runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}

/// Runs a script of this folder with the oracles' Python. Returns what it prints.
fn oracle(script: &str, input: &str) -> String {
    let mut child = Command::new(tool("python-oracles"))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats").join(script))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a Python");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn reports() -> Vec<Report> {
    let mut all = vec![listed(), unscreened()];
    all.extend(HOSTILE.map(hostile));
    all
}

#[test]
fn entities_are_valid_follow_the_money() {
    for report in reports() {
        let entities = ftm(&report);
        assert!(entities.lines().count() >= 5, "{entities}");
        assert_eq!(oracle("ftm.py", &entities), "", "{entities}");
    }
    let bad = r#"{"id":"a","schema":"Company","properties":{"name":["X"],"jurisdiction":["Narnia"]}}"#;
    assert!(oracle("ftm.py", bad).contains("Narnia"), "the oracle judges nothing");
}

#[test]
fn statements_are_valid_bods() {
    for report in reports() {
        let statements = bods(&report);
        assert_eq!(oracle("bods.py", &statements), "", "{statements}");
        assert!(!statements.contains("noBeneficialOwners"));
    }
    assert!(bods(&unscreened()).contains("informationUnknownToPublisher"), "no source names an owner");
    assert!(oracle("bods.py", r#"[{"recordType":"firm"}]"#).contains("firm"), "the oracle judges nothing");
}

/// Loads a page in Chromium and returns its document after `script` has run.
fn browse(html: &str, name: &str, flags: &[&str], script: &str) -> (String, String) {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // The page's own policy forbids scripts. This copy has one, to measure.
    let measured =
        html.replace("default-src 'none'; ", "").replace("</body>", &format!("<script>{script}</script></body>"));
    std::fs::write(&file, if script.is_empty() { html } else { &measured }).expect("a temporary file");
    let output = Command::new(tool("chromium-headless-shell"))
        .args(["--headless", "--no-sandbox", "--dump-dom", "--enable-logging=stderr", "--virtual-time-budget=1000"])
        .args(flags)
        .arg(&file)
        .output()
        .expect("Chromium runs");
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Measures the width of the page, and the contrast of each text with what is behind it.
const MEASURE: &str = include_str!("measure.js");

#[test]
fn html_fits_a_phone_and_is_readable_in_both_schemes() {
    for (n, report) in reports().iter().enumerate() {
        for (scheme, flag) in [("light", "1"), ("dark", "0")] {
            let flags = ["--window-size=400,900", &format!("--blink-settings=preferredColorScheme={flag}")];
            let (document, log) = browse(&html(&compose(report)), &format!("measured-{n}.html"), &flags, MEASURE);
            let start = document.find("<pre id=\"measured\">").unwrap_or_else(|| panic!("{log}")) + 19;
            let end = start + document[start..].find("</pre>").expect("its end");
            let measured: Value = serde_json::from_str(&document[start..end].replace("&amp;", "&")).expect("JSON");
            assert_eq!(measured["dark"], scheme == "dark", "the scheme was not applied");
            assert!(measured["texts"].as_u64().is_some_and(|count| count > 50), "{measured}");
            assert_eq!(measured["overflow"], 0, "report {n}: {measured}");
            assert!(
                measured["contrast"].as_f64().is_some_and(|least| least >= 4.5),
                "report {n}, {scheme}: {measured}"
            );
        }
    }
}

#[test]
fn html_runs_nothing_and_asks_for_nothing() {
    for (n, report) in reports().iter().enumerate() {
        let (document, log) = browse(&html(&compose(report)), &format!("plain-{n}.html"), &[], "");
        assert!(document.contains("<main>"), "{log}");
        assert!(!document.contains("<script") && !document.contains("<img"), "report {n}");
        let wrong: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
        assert!(wrong.is_empty(), "report {n}: {wrong:?}");
    }
}

#[test]
fn html_prints() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("printed.pdf");
    let flag = format!("--print-to-pdf={}", file.display());
    browse(&html(&compose(&listed())), "printed.html", &[&flag], "");
    let pdf = std::fs::read(&file).expect("a file");
    assert!(pdf.starts_with(b"%PDF") && pdf.len() > 10_000);
}
