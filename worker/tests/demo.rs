//! The demo, from start to end, as a user sees it. Needs the `temporal` program, and `/proc` to see what it leaves behind.

#![cfg(target_os = "linux")]

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use serde_json::Value;

fn demo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_osint"));
    command.arg("demo").args(arguments).env_remove("RUST_LOG").env_remove("OSINT_CONFIG").stdin(Stdio::null());
    command
}

/// Processes whose parent or grandparent is `pid`, from `/proc`.
fn descendants(pid: u32) -> Vec<u32> {
    let parent_of = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
    };
    let all = std::fs::read_dir("/proc")
        .expect("a system with /proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    all.filter(|child| parent_of(*child) == Some(pid) || parent_of(*child).and_then(parent_of) == Some(pid)).collect()
}

fn alive(pid: u32) -> bool {
    // A zombie counts as gone.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).is_some_and(|state| state != "Z")
}

fn wait_until_gone(processes: &[u32]) {
    for _ in 0..500 {
        if !processes.iter().any(|pid| alive(*pid)) {
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(20));
    }
    panic!("left behind: {:?}", processes.iter().filter(|pid| alive(**pid)).collect::<Vec<_>>());
}

#[test]
fn the_demos_json_is_only_the_report_of_the_outage() {
    let output = demo(&["--json"]).output().expect("the program runs");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    assert!(log.contains("ratio"), "{log}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(document["status"], "partial");
    assert_eq!(document["subject"]["id"], "923609016");
    let findings = document["findings"].as_array().expect("a list");
    let of_tavily = |finding: &&Value| finding["source"] == "tavily";
    assert!(findings.iter().filter(of_tavily).all(|finding| finding["status"] == "degraded"));
    let others = findings.iter().filter(|finding| !of_tavily(finding));
    assert!(others.clone().all(|finding| finding["status"] != "degraded"));
    assert!(others.clone().any(|finding| finding["status"] == "complete"));
    let breaker =
        document["breakers"].as_array().expect("a list").iter().find(|breaker| breaker["service"] == "tavily");
    let breaker = breaker.expect("the breaker of the source that is down");
    assert_eq!(breaker["state"], "open");
    assert!(breaker["retry_in_ms"].as_u64().is_some_and(|ms| ms <= 60_000));
}

#[test]
fn the_demo_leaves_no_process_behind_after_any_signal() {
    for signal in ["INT", "TERM", "KILL"] {
        let mut child = demo(&[]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program runs");
        let mut log = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        // The first finding shows that the server, the sources and the worker are all there.
        let up = log.by_ref().map_while(Result::ok).any(|line| line.contains("complete"));
        assert!(up, "the demo did not start");
        let processes = descendants(child.id());
        assert!(!processes.is_empty(), "the server is a descendant of the demo");
        let kill = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
        assert!(kill.expect("kill runs").success());
        drop(log);
        let code = child.wait().expect("an exit code").code();
        assert_eq!(code, (signal != "KILL").then_some(130), "ended by {signal}");
        wait_until_gone(&processes);
    }
}
