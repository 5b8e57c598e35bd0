//! The table of cases and crates, as markdown.

use std::{fmt::Write, thread};

use super::{
    Adapter, Outcome,
    cases::{CASES, Case},
    run,
};

/// Every case through every adapter; crates side by side, each on its own thread.
pub fn examine(adapters: &[Box<dyn Adapter>]) -> Vec<Vec<Outcome>> {
    thread::scope(|scope| {
        let columns: Vec<_> = adapters
            .iter()
            .map(|adapter| scope.spawn(|| CASES.iter().map(|case| run(adapter.as_ref(), case)).collect()))
            .collect();
        columns.into_iter().map(|column| column.join().unwrap_or_else(|_| Vec::new())).collect()
    })
}

/// The cell of an outcome.
pub fn mark(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "pass",
        Outcome::Fail(_) => "**FAIL**",
        Outcome::RuledOut(_) => "–",
    }
}

fn label(case: &Case) -> String {
    format!("{} {}", case.group, case.key)
}

/// The summary, the table, and the reason of everything that is not a pass.
pub fn markdown(adapters: &[Box<dyn Adapter>], columns: &[Vec<Outcome>]) -> String {
    let mut text = String::new();
    let _ = write_tables(&mut text, adapters, columns);
    text
}

fn write_tables(text: &mut String, adapters: &[Box<dyn Adapter>], columns: &[Vec<Outcome>]) -> std::fmt::Result {
    writeln!(text, "| crate | pass | FAIL | ruled out |\n|---|---:|---:|---:|")?;
    for (adapter, column) in adapters.iter().zip(columns) {
        let count = |wanted: &str| column.iter().filter(|outcome| mark(outcome) == wanted).count();
        writeln!(text, "| {} | {} | {} | {} |", adapter.name(), count("pass"), count("**FAIL**"), count("–"))?;
    }
    write!(text, "\n| case | demand |")?;
    for adapter in adapters {
        write!(text, " {} |", adapter.name())?;
    }
    writeln!(text, "\n|---|---|{}", "---|".repeat(adapters.len()))?;
    for (row, case) in CASES.iter().enumerate() {
        write!(text, "| {} | {} |", label(case), case.demand)?;
        for column in columns {
            write!(text, " {} |", column.get(row).map_or("crashed", mark))?;
        }
        writeln!(text)?;
    }
    for (adapter, column) in adapters.iter().zip(columns) {
        let remarks = CASES.iter().zip(column).filter(|(_, outcome)| **outcome != Outcome::Pass);
        let (failed, ruled_out): (Vec<_>, Vec<_>) = remarks.partition(|(_, outcome)| mark(outcome) == "**FAIL**");
        if failed.is_empty() && ruled_out.is_empty() {
            continue;
        }
        writeln!(text, "\n### {}\n", adapter.name())?;
        for (case, outcome) in failed {
            if let Outcome::Fail(seen) = outcome {
                writeln!(text, "- **{}** fails at {seen}.", label(case))?;
            }
        }
        write_reasons(text, &ruled_out)?;
    }
    Ok(())
}

/// One line per reason, with the cases it rules out.
fn write_reasons(text: &mut String, ruled_out: &[(&Case, &Outcome)]) -> std::fmt::Result {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for (case, outcome) in ruled_out {
        let Outcome::RuledOut(reason) = outcome else { continue };
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, cases)) => cases.push(label(case)),
            None => reasons.push((reason, vec![label(case)])),
        }
    }
    for (reason, cases) in reasons {
        writeln!(text, "- ruled out, {reason}: {}.", cases.join(", "))?;
    }
    Ok(())
}
