//! The memory of one worker over a hundred thousand activities.
//!
//! SDK 1.1.1 keeps about 245 bytes of every activity until the worker ends: the token of the task and a handle to cancel it.
//! They are subtracted. The rest must be flat: the slope of a line through the rounds is less than a tenth of them. The server
//! is another process and not counted.

use std::fs;

use osint_tests::load::{Size, fan_out, with_worker};
use temporalio_client::Client;
use temporalio_sdk::Runtime;

use crate::Figure;

const ROUNDS: u32 = 40;
const WORKFLOWS: u32 = 5;
/// 500 activities: a quarter refused, a quarter in branches of one, half in branches of two.
const BRANCHES: u32 = 375;

/// What the SDK itself keeps of an activity, in bytes.
const SDK: f64 = 245.0;
const MOST: f64 = 25.0;

/// Rounds that only fill what is filled once: caches, pools, the allocator's own.
const WARM: usize = 10;

pub async fn measure(client: &Client) -> anyhow::Result<Figure> {
    let size = Size { branches: BRANCHES, in_turn: false, refused_every: 3 };
    let each = WORKFLOWS * activities(size);
    let runtime = Runtime::from_current_tokio(Default::default())?;
    let script = async {
        let mut memory = Vec::new();
        for round in 0..ROUNDS {
            let one = |n: u32| async move { fan_out(client, "soak", &format!("soak-{round}-{n}"), size).await };
            futures::future::try_join_all((0..WORKFLOWS).map(one)).await?;
            memory.push((f64::from((round + 1) * each), resident()?));
        }
        Ok(memory)
    };
    let memory = with_worker(&runtime, client, "soak", 2, script).await?;

    println!("\n## Memory of a worker, {} activities\n", ROUNDS * each);
    println!("| activities | resident, MB |\n|---:|---:|");
    for (activities, bytes) in memory.iter().step_by(4) {
        println!("| {activities} | {:.1} |", bytes / 1e6);
    }
    let slope = slope(&memory[WARM..]);
    println!("\n{slope:.0} bytes per activity, of which the SDK keeps {SDK} itself");
    Ok(Figure {
        what: format!("growth over {} activities beyond the SDK's own {SDK} bytes each", ROUNDS * each),
        measured: format!("{:.0} bytes per activity", slope - SDK),
        promised: "flat (< 25)",
        kept: slope - SDK < MOST,
    })
}

/// Activities of one workflow.
fn activities(size: Size) -> u32 {
    let of = |n: u32| if !n.is_multiple_of(size.refused_every) && !n.is_multiple_of(2) { 2 } else { 1 };
    (0..size.branches).map(of).sum()
}

/// Bytes of this process in memory.
fn resident() -> anyhow::Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|text| text.trim().split(' ').next()?.parse::<f64>().ok());
    Ok(kilobytes.ok_or_else(|| anyhow::anyhow!("no VmRSS in /proc/self/status"))? * 1024.0)
}

/// The slope of the line that fits best.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n: f64 = points.iter().map(|_| 1.0).sum();
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let covariance: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    covariance / points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>()
}
