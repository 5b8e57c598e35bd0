//! Many worker processes on one sick upstream, and many of them killed.

use circuit_registry_testing::redis_server::Server;
use std::{collections::BTreeSet, time::Duration};

use circuit_registry::{CircuitRegistry, State};
use tokio::time::{Instant, sleep};

use crate::{
    PATIENCE, Report, registry,
    worker::{CALLERS, FAIL_MAX, INTERVAL, LEASE, Upstream, Worker, micros},
};

const WORKERS: usize = 8;
const INTERVALS: usize = 10;
const DEATHS: usize = 10;
const KILLS: usize = 50;

/// Snapshots are stored at most this much later than what they say.
const COALESCE: Duration = Duration::from_millis(250);

/// Upstreams that die under constant load, once for a fleet and once for a single process with as many callers: what each costs.
pub(crate) async fn deaths(report: &mut Report) {
    for (processes, callers) in [(1, WORKERS * CALLERS), (WORKERS, CALLERS)] {
        let (server, upstream) = (Server::start().await, Upstream::start().await);
        let start = || Worker::start(&server.address(), upstream.port, callers);
        let workers: Vec<_> = (0..processes).map(|_| start()).collect();
        sleep(Duration::from_secs(2)).await;
        let (mut received, mut beyond, mut late, mut spread) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..DEATHS {
            upstream.die();
            sleep(INTERVAL / 2).await;
            let death = upstream.death();
            let (enough, in_flight) = death.enough.expect("it failed often enough");
            let after: Vec<_> = death.asked.iter().filter(|at| **at > enough).collect();
            let last = after.iter().max().map_or(Duration::ZERO, |last| **last - enough);
            received.push(death.asked.len());
            beyond.push(death.asked.len().saturating_sub(FAIL_MAX + in_flight));
            late.push(after.len());
            spread.push(last.as_micros() as usize);
            workers.iter().for_each(|worker| drop(worker.printed()));
            upstream.recover();
            all_closed(&workers).await;
            sleep(INTERVAL / 2).await;
        }
        let who = format!("{processes} x {callers} callers, {DEATHS} deaths");
        let what = format!("{who}: calls received");
        let kept = received.iter().all(|calls| *calls <= FAIL_MAX + WORKERS * CALLERS);
        report.line(&what, &middle_and_most(&mut received), "at most 5 + 32 callers", kept);
        let what = format!("{who}: beyond 5 + those in flight at failure 5");
        let kept = beyond.iter().all(|calls| *calls == 0);
        report.line(&what, &middle_and_most(&mut beyond), "none", kept);
        let what = format!("{who}: begun after failure 5 was answered");
        let promised = format!("within {} us, while the news spread", middle_and_most(&mut spread));
        report.line(&what, &middle_and_most(&mut late), &promised, true);
    }
}

/// Half are no more than the first, and all no more than the second.
fn middle_and_most(values: &mut [usize]) -> String {
    values.sort_unstable();
    format!("{} / {}", values[values.len() / 2], values[values.len() - 1])
}

/// Waits until each worker reports its breaker closed. Returns how many have not.
async fn all_closed(workers: &[Worker]) -> usize {
    let start = Instant::now();
    let mut open = vec![true; workers.len()];
    while open.contains(&true) && start.elapsed() < PATIENCE {
        sleep(Duration::from_millis(20)).await;
        for (worker, open) in workers.iter().zip(&mut open) {
            *open &= last(&worker.printed(), "closed").is_none();
        }
    }
    open.into_iter().filter(|open| *open).count()
}

/// One upstream dies under constant load, stays dead for ten intervals and recovers.
pub(crate) async fn outage(report: &mut Report) {
    let (server, upstream) = (Server::start().await, Upstream::start().await);
    let workers: Vec<_> = (0..WORKERS).map(|_| Worker::start(&server.address(), upstream.port, CALLERS)).collect();
    sleep(Duration::from_secs(2)).await;
    let start = Instant::now();
    upstream.die();
    sleep(INTERVAL / 2).await;
    let at_first = upstream.death().asked.len();

    // Probes come when the opening of before is over: count them by the gaps between them.
    sleep(start + INTERVAL * (INTERVALS as u32 + 1) - Instant::now()).await;
    let probes = upstream.death().asked.split_off(at_first);
    let closest = probes.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or_default();
    let what = format!("probes of the whole fleet in {:.1} s", (Instant::now() - start).as_secs_f64());
    let kept = probes.len() <= INTERVALS && probes.len() + 1 >= INTERVALS && closest >= INTERVAL;
    report.line(&what, &probes.len().to_string(), "1 per interval of 1 s", kept);
    let what = "closest two probes";
    report.line(what, &format!("{:.3} s", closest.as_secs_f64()), "at least the interval", closest >= INTERVAL);

    workers.iter().for_each(|worker| drop(worker.printed()));
    upstream.recover();
    let verdict = loop {
        match upstream.recovered() {
            Some(at) => break at,
            None => sleep(Duration::from_millis(1)).await,
        }
    };
    sleep(Duration::from_secs(2)).await;
    let closed: Vec<u64> = workers.iter().filter_map(|worker| last(&worker.printed(), "closed")).collect();
    let slowest = closed.iter().map(|at| at.saturating_sub(verdict)).max().unwrap_or(u64::MAX);
    let what = format!("{} of {WORKERS} workers closed after the probe's verdict", closed.len());
    let kept = closed.len() == WORKERS && slowest <= 1_000_000;
    report.line(&what, &format!("{:.1} ms", slowest as f64 / 1e3), "all within 1 s", kept);
}

/// Random workers are killed under load, while the upstream comes and goes.
pub(crate) async fn kills(report: &mut Report) {
    let (server, upstream) = (Server::start().await, Upstream::start().await);
    let mut workers: Vec<_> = (0..WORKERS).map(|_| Worker::start(&server.address(), upstream.port, CALLERS)).collect();
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
        workers.push(Worker::start(&server.address(), upstream.port, CALLERS));
    }
    let asked = upstream.death().asked;
    let gaps = asked.windows(2).map(|pair| pair[1] - pair[0]);
    let longest = gaps.max().unwrap_or_default().max(Instant::now() - asked.last().copied().unwrap_or(start));
    let most = INTERVAL + LEASE + Duration::from_millis(500);
    let what = format!("{KILLS} workers killed: longest time without a probe");
    let promised = "interval + lease (+ 0.5 s)";
    report.line(&what, &format!("{:.2} s", longest.as_secs_f64()), promised, longest <= most);

    let other = registry(
        CircuitRegistry::builder(),
        &server.address(),
        "fleet: share\nnames: { max_dynamic: 100000 }\ndefaults: { fail_max: 1, reset_timeout: 1h }",
    );
    let _sync_task = other.restore().await;
    let lost = known.iter().filter(|name| other.breaker(name).view().state != State::Open).count();
    let what = format!("of {} openings older than 250 ms at the kill, lost", known.len());
    report.line(&what, &lost.to_string(), "none", lost == 0 && !known.is_empty());

    workers.iter().for_each(|worker| drop(worker.printed()));
    upstream.recover();
    let recovered = Instant::now();
    let stuck = all_closed(&workers).await;
    let what = format!("breakers still open {:.1} s after the recovery", recovered.elapsed().as_secs_f64());
    report.line(&what, &stuck.to_string(), "none", stuck == 0);
}

/// The time in the last line that begins with `word`.
fn last(lines: &[String], word: &str) -> Option<u64> {
    lines.iter().rev().find_map(|line| line.strip_prefix(word)?.trim().parse().ok())
}
