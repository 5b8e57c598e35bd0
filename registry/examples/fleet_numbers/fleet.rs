//! Many worker processes on one sick upstream, and many of them killed.

use std::{collections::BTreeSet, time::Duration};

use circuit_registry::{CircuitRegistry, State};
use tokio::time::{Instant, sleep};

use crate::{
    PATIENCE, Report, registry,
    server::Server,
    worker::{CALLERS, FAIL_MAX, INTERVAL, LEASE, Upstream, Worker, micros},
};

const WORKERS: usize = 8;
const INTERVALS: usize = 10;
const KILLS: usize = 50;

/// Snapshots are stored at most this much later than what they say.
const COALESCE: Duration = Duration::from_millis(250);

/// One upstream dies under constant load, stays dead for ten intervals and recovers.
pub(crate) async fn outage(report: &mut Report) {
    let (server, upstream) = (Server::start().await, Upstream::start().await);
    let workers: Vec<_> = (0..WORKERS).map(|_| Worker::start(&server.address(), upstream.port)).collect();
    sleep(Duration::from_secs(2)).await;
    let start = Instant::now();
    upstream.die();
    sleep(INTERVAL / 2).await;
    let first = upstream.asked();
    let most = FAIL_MAX + WORKERS * CALLERS;
    let what = format!("{WORKERS} workers, calls to an upstream that dies");
    let promised = format!("at most {FAIL_MAX} + 1 in flight of each of {} callers", WORKERS * CALLERS);
    report.line(&what, &first.len().to_string(), &promised, first.len() <= most);
    let enough = upstream.enough().unwrap_or(start);
    let late = first.iter().filter(|at| **at > enough).count();
    let spread = first.last().map_or(Duration::ZERO, |last| last.saturating_duration_since(enough));
    let what = format!("of them begun after failure {FAIL_MAX} was answered");
    let promised = format!("while the news spread, for {:.1} ms", spread.as_secs_f64() * 1e3);
    report.line(&what, &late.to_string(), &promised, spread <= Duration::from_millis(100));
    let at_first = first.len();

    // Probes come when the opening of before is over: count them by the gaps between them.
    sleep(start + INTERVAL * (INTERVALS as u32 + 1) - Instant::now()).await;
    let probes = upstream.asked().split_off(at_first);
    let closest = probes.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or_default();
    let what = format!("probes of the whole fleet in {:.1} s", (Instant::now() - start).as_secs_f64());
    let kept = probes.len() <= INTERVALS && probes.len() + 1 >= INTERVALS && closest >= INTERVAL;
    report.line(&what, &probes.len().to_string(), "1 per interval of 1 s", kept);
    let what = "closest two probes";
    report.line(what, &format!("{:.3} s", closest.as_secs_f64()), "at least the interval", closest >= INTERVAL);

    workers.iter().for_each(|worker| drop(worker.said()));
    upstream.recover();
    let verdict = loop {
        match upstream.recovered() {
            Some(at) => break at,
            None => sleep(Duration::from_millis(1)).await,
        }
    };
    sleep(Duration::from_secs(2)).await;
    let closed: Vec<u64> = workers.iter().filter_map(|worker| last(&worker.said(), "closed")).collect();
    let slowest = closed.iter().map(|at| at.saturating_sub(verdict)).max().unwrap_or(u64::MAX);
    let what = format!("{} of {WORKERS} workers closed after the probe's verdict", closed.len());
    let kept = closed.len() == WORKERS && slowest <= 1_000_000;
    report.line(&what, &format!("{:.1} ms", slowest as f64 / 1e3), "all within 1 s", kept);
}

/// Random workers are killed under load, while the upstream comes and goes.
pub(crate) async fn kills(report: &mut Report) {
    let (server, upstream) = (Server::start().await, Upstream::start().await);
    let mut workers: Vec<_> = (0..WORKERS).map(|_| Worker::start(&server.address(), upstream.port)).collect();
    let mut known = BTreeSet::new();
    let mut draw = 0x9E37_79B9_7F4A_7C15_u64;
    upstream.die();
    let start = Instant::now();
    for _ in 0..KILLS {
        draw = draw.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        sleep(Duration::from_millis(100 + (draw >> 40) % 300)).await;
        let victim = workers.swap_remove((draw >> 33) as usize % workers.len());
        let killed = micros();
        for line in victim.kill() {
            let mut words = line.split(' ');
            if let (Some("opened"), Some(name), Some(at)) = (words.next(), words.next(), words.next())
                && at.parse().is_ok_and(|at: u64| at + COALESCE.as_micros() as u64 <= killed)
            {
                known.insert(name.to_owned());
            }
        }
        workers.push(Worker::start(&server.address(), upstream.port));
    }
    let asked = upstream.asked();
    let gaps = asked.windows(2).map(|pair| pair[1] - pair[0]);
    let longest = gaps.max().unwrap_or_default().max(Instant::now() - asked.last().copied().unwrap_or(start));
    let most = INTERVAL + LEASE + Duration::from_millis(500);
    let what = format!("{KILLS} workers killed: longest time without a probe");
    let promised = "interval + lease (+ 0.5 s)";
    report.line(&what, &format!("{:.2} s", longest.as_secs_f64()), promised, longest <= most);

    let other = registry(
        CircuitRegistry::builder(),
        &server.address(),
        "fleet: share\ndefaults: { fail_max: 1, reset_timeout: 1h }",
    );
    let _keeper = other.restore().await;
    let lost = known.iter().filter(|name| other.breaker(name).view().state != State::Open).count();
    let what = format!("of {} openings older than 250 ms at the kill, lost", known.len());
    report.line(&what, &lost.to_string(), "none", lost == 0 && !known.is_empty());

    workers.iter().for_each(|worker| drop(worker.said()));
    upstream.recover();
    let recovered = Instant::now();
    let mut open: Vec<_> = workers.iter().map(|_| true).collect();
    while open.contains(&true) && recovered.elapsed() < PATIENCE {
        sleep(Duration::from_millis(20)).await;
        for (worker, open) in workers.iter().zip(&mut open) {
            *open &= last(&worker.said(), "closed").is_none();
        }
    }
    let stuck = open.iter().filter(|open| **open).count();
    let what = format!("breakers still open {:.1} s after the recovery", recovered.elapsed().as_secs_f64());
    report.line(&what, &stuck.to_string(), "none", stuck == 0);
}

/// The time in the last line that begins with `word`.
fn last(lines: &[String], word: &str) -> Option<u64> {
    lines.iter().rev().find_map(|line| line.strip_prefix(word)?.trim().parse().ok())
}
