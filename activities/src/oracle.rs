//! Other people's libraries as judges in tests: python-stdnum for numbers, rigour for names.
//!
//! `scripts/tools python-oracles` fetches them. A test is skipped only where they cannot be fetched.

use std::{
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};

/// Runs a Python program of the oracles over lines, and returns its lines. `None` if there is no such Python here.
pub(crate) fn ask(program: &str, lines: &[String]) -> Option<Vec<String>> {
    let tools = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../scripts/tools");
    let found = Command::new(tools).arg("python-oracles").stderr(Stdio::null()).output().ok()?;
    if !found.status.success() {
        eprintln!("skipped: `scripts/tools python-oracles` fetches nothing here");
        return None;
    }
    let python = String::from_utf8(found.stdout).expect("a path").trim().to_owned();
    let mut run = Command::new(python);
    let run = run.args(["-c", program]).env("PYTHONIOENCODING", "utf-8").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = run.spawn().expect("the oracle starts");
    let input = lines.join("\n") + "\n";
    let mut stdin = child.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("the oracle ends");
    writer.join().expect("a writer").expect("the oracle reads everything");
    assert!(output.status.success(), "the oracle failed");
    let answers = String::from_utf8(output.stdout).expect("UTF-8");
    let answers: Vec<_> = answers.lines().map(str::to_owned).collect();
    assert_eq!(answers.len(), lines.len(), "one answer for each line");
    Some(answers)
}
