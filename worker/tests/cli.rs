//! The command as a user types it, without a server. Errors name the cause, the exit code tells user mistakes from failures,
//! and no error looks like a crash.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

fn osint(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_osint"));
    // No server on this machine may answer by accident.
    command.args(arguments).env("TEMPORAL_ADDRESS", "127.0.0.1:1").env_remove("OSINT_CONFIG").env_remove("RUST_LOG");
    command.env("RUST_BACKTRACE", "1").current_dir(env!("CARGO_TARGET_TMPDIR")).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    osint(arguments).output().expect("the program runs")
}

/// Runs a command that must fail with `code` and print each of `words`.
fn fails(arguments: &[&str], code: i32, words: &[&str]) {
    check(&run(arguments), arguments, code, words);
}

fn check(output: &Output, arguments: &[&str], code: i32, words: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?} printed: {text}");
    for word in words {
        assert!(text.contains(word), "{arguments:?} did not say {word:?}: {text}");
    }
    assert!(!text.contains("panicked") && !text.contains("stack backtrace"), "{arguments:?} crashed: {text}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed a result all the same");
}

fn file(name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).expect("a temporary file");
    path
}

#[test]
fn an_invalid_subject_is_the_users_mistake() {
    let investigate = |arguments: &[&str], words: &[&str]| fails(&[&["investigate"], arguments].concat(), 2, words);
    investigate(&["--country", "ZZ", "--id", "1"], &["ZZ", "such as NO"]);
    investigate(&["--country", "", "--id", "1"], &["country"]);
    investigate(&["--country", "NO", "--id", "923609017"], &["checksum", "923", "--as-written"]);
    investigate(&["--country", "NO", "--id", "12345"], &["expected 9 digits"]);
    investigate(&["--country", "NO", "--id", "; drop table"], &["expected 9 digits"]);
    investigate(&["--country", "NO", "--id", "923609016", "--lei", "5493001KJTIIGC8Y1R13"], &["checksum"]);
    investigate(&["--country", "NO", "--vat", "NO988077918MVA", "--as-written"], &["checksum"]);
    investigate(&["--country", "NO", "--id", "12345", "--as-written"], &["expected 9 digits"]);
    investigate(&["--country", "NO", "--vat", "CZ1"], &["error:"]);
    investigate(&["--country", "NO"], &["empty", "registration number"]);
    investigate(&["--country", "NO", "--name", "   "], &["empty"]);
    investigate(&["--id", "923609016"], &["--country"]);
    let long = "x".repeat(120_000);
    investigate(&["--country", "NO", "--name", &long], &["120000 bytes", "1000"]);
    investigate(&["--again", "investigation-1", "--country", "NO"], &["--again", "--country"]);
    investigate(&["--country", "NO", "--id", "923609016", "-o", "/nowhere/report.html"], &["/nowhere/report.html"]);
    investigate(&["--country", "NO", "--id", "923609016", "-o", "."], &["folder"]);
    investigate(&["--country", "NO", "--id", "923609016", "--format", "pdf"], &["pdf", "markdown"]);
}

#[test]
fn without_a_server_the_message_says_how_to_start_one() {
    for command in [
        &["investigate", "--country", "NO", "--id", "923609016"][..],
        &["worker"],
        &["history", "export", "investigation-1"],
        &["report", "investigation-1"],
        &["list"],
        &["follow", "investigation-1"],
    ] {
        fails(command, 1, &["no Temporal server at 127.0.0.1:1", "osint dev"]);
    }
    fails(&["breakers", "--admin", "127.0.0.1:1"], 1, &["no worker answers at 127.0.0.1:1", "osint worker"]);
}

#[test]
fn ids_and_time_spans_are_checked_before_anything_starts() {
    fails(&["report", "--diff", "investigation-1"], 2, &["--diff", "two ids"]);
    fails(&["report", "investigation-1", "investigation-2"], 2, &["--diff"]);
    fails(&["report"], 2, &["ID"]);
    fails(&["list", "--since", "soon"], 2, &["soon", "12h"]);
    fails(&["report", "x", "-o", "/nowhere/x.html"], 2, &["/nowhere/x.html"]);
}

#[test]
fn another_program_on_the_port_is_not_taken_for_temporal() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address").to_string();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    fails(&["history", "export", "x", "--address", &address], 1, &["no Temporal server at", &address]);
}

#[test]
fn a_malformed_address_is_the_users_mistake() {
    fails(&["worker", "--address", "nowhere:port"], 2, &["nowhere:port", "host:port"]);
    fails(&["worker", "--admin", "nowhere"], 2, &["--admin"]);
    fails(&["worker", "--store", "elsewhere"], 2, &["--store", "file:PATH", "redis://"]);
}

#[test]
fn an_error_in_a_breakers_file_names_line_and_key() {
    let broken = file("unknown-key.yaml", "services:\n  tavily:\n    fail_maximum: 3\n");
    let path = broken.to_str().expect("UTF-8");
    fails(&["check", path], 2, &["unknown-key.yaml:3:", "fail_maximum", "fail_max"]);
    fails(&["worker", "--config", path], 2, &["unknown-key.yaml:3:", "osint check"]);
    for (name, text) in [
        ("zero.yaml", &b"defaults: { fail_max: 0 }"[..]),
        ("tabs.yaml", b"defaults:\n\tfail_max: 3"),
        ("not-utf8.yaml", b"defaults: { \xff }"),
        ("list.yaml", b"- 1\n- 2\n"),
    ] {
        let path = file(name, text);
        fails(&["check", path.to_str().expect("UTF-8")], 2, &[name]);
    }
    fails(&["check", "/nowhere/breakers.yaml"], 2, &["/nowhere/breakers.yaml"]);
    fails(&["check", env!("CARGO_TARGET_TMPDIR")], 2, &["directory"]);
}

#[test]
fn a_valid_breakers_file_is_explained() {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../breakers.yaml");
    let output = run(&["check", shipped]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success());
    for word in ["tavily", "3 failures in a row", "60s", "brightdata_social", "120s", "(any other)", "30s"] {
        assert!(text.contains(word), "{word} is missing: {text}");
    }
}

#[test]
fn check_takes_its_file_from_argument_flag_and_variable() {
    let [one, two, three] =
        ["one", "two", "three"].map(|name| file(&format!("{name}.yaml"), "services: { tavilly: {} }"));
    let [one, two, three] = [&one, &two, &three].map(|path| path.to_str().expect("UTF-8"));
    for (arguments, used) in
        [(&["check"][..], three), (&["check", "--config", two], two), (&["check", one, "--config", two], one)]
    {
        let output = osint(arguments).env("OSINT_CONFIG", three).output().expect("the program runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains(used), "{arguments:?}: {text}");
        assert!(text.contains("no source has a breaker 'tavilly'; did you mean tavily?"), "{text}");
    }
    let empty = file("empty.yaml", " \n");
    fails(&["check", empty.to_str().expect("UTF-8")], 2, &["empty.yaml", "is empty"]);
    let output = run(&["check", one, "--diff", two]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "nothing changes");
}

#[test]
fn an_unknown_fault_is_the_users_mistake() {
    fails(&["demo", "--fault", "tavily"], 2, &["SOURCE=FAULT"]);
    fails(&["demo", "--fault", "unknown=down"], 2, &["unknown", "tavily"]);
    fails(&["demo", "--fault", "tavily=melted"], 2, &["melted", "slow:DURATION"]);
    fails(&["dev", "--fault", "tavily=melted"], 2, &["melted", "slow:DURATION"]);
}

#[test]
fn a_port_in_use_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("its address").port().to_string();
    let arguments = ["dev", "--port", &port];
    // A program that exists is enough: it is not started when its port is taken.
    let output = osint(&arguments).env("TEMPORAL_BIN", env!("CARGO_BIN_EXE_osint")).output().expect("the program runs");
    check(&output, &arguments, 1, &[&port, "in use", "another port"]);
}

#[test]
fn a_missing_server_program_is_explained() {
    let arguments = ["demo"];
    let output = osint(&arguments).env("TEMPORAL_BIN", "/nowhere/temporal").output().expect("the program runs");
    check(&output, &arguments, 2, &["/nowhere/temporal", "TEMPORAL_BIN"]);
    let output = osint(&arguments).env_remove("TEMPORAL_BIN").env("PATH", "").current_dir("/").output();
    check(&output.expect("the program runs"), &arguments, 1, &["temporal", "scripts/tools"]);
}

#[test]
fn the_help_lists_every_command() {
    let output = run(&["--help"]);
    let text = String::from_utf8_lossy(&output.stdout);
    for word in ["demo", "dev", "worker", "investigate", "breakers", "sources", "check", "history", "Exit codes"] {
        assert!(text.contains(word), "{word} is missing: {text}");
    }
    assert!(!text.contains('\x1b'), "colours in a pipe");
}

#[test]
fn the_catalog_prints_for_people_and_for_programs() {
    let output = run(&["sources", "--json"]);
    let list: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert!(list.as_array().is_some_and(|list| list.iter().any(|source| source["name"] == "no_brreg")));
    assert!(String::from_utf8_lossy(&run(&["sources"]).stdout).contains("no_brreg.entity"));
}

#[test]
fn a_closed_pipe_is_no_crash() {
    for arguments in [&["sources"][..], &["investigate", "--country", "ZZ"]] {
        let mut child =
            osint(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs");
        drop((child.stdout.take(), child.stderr.take()));
        let code = child.wait().expect("an exit code").code();
        assert!(matches!(code, Some(0 | 2)), "{arguments:?} ended with {code:?}");
    }
}
