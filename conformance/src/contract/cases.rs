//! The cases. Times are milliseconds of case time; *trip* is three quick failures at t=0 unless the policy says otherwise.
//!
//! A counter that reads zero is proved by what it takes to open: after it, one failure less than `fail_max` must not.

use std::{fmt, time::Duration};

use super::{End, Feature, Policy, State, Window};

/// One sentence of the contract.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The heading it stands under.
    pub group: &'static str,
    /// Its letter, with a number where a sentence makes two promises.
    pub key: &'static str,
    /// What it demands.
    pub demand: &'static str,
    /// What a crate must have a word for.
    pub needs: &'static [Feature],
    /// The breaker it is about.
    pub policy: Policy,
    /// By how much a breaker on a real clock runs faster than life, where the usual speed is too coarse.
    pub speed: Option<u32>,
    /// How it is tried.
    pub body: Body,
}

/// How a case is tried.
#[derive(Debug, Clone, Copy)]
pub enum Body {
    /// Step by step on one breaker.
    Steps(&'static [Step]),
    /// By code of the adapter: it is about files, fleets or many names.
    Own,
}

/// One thing that happens, or is looked at.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// Time passes until then.
    At(u64),
    /// As many failures as it takes.
    Trip,
    /// This many calls, one after the other, that end that way.
    Make(u32, End),
    /// A call starts, and must be admitted.
    Start(&'static str),
    /// A call in flight ends.
    End(&'static str, End),
    /// A call is admitted now.
    Admits,
    /// A call is rejected now.
    Rejects,
    /// A call is rejected now because every probe slot is taken.
    Full,
    /// The state is.
    Is(State),
    /// The state is read that many times.
    Read(u32),
    /// Callers come at once; this many are admitted, and stay.
    Callers {
        /// How many come.
        callers: u32,
        /// How many must get in.
        admitted: u32,
    },
    /// This many calls in flight fail at once, each on its own thread.
    FailTogether(u32),
    /// This many openings were announced.
    Openings(u32),
    /// This many rejections were counted.
    Rejections(u32),
    /// An operator forces it open.
    ForceOpen,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(time) => write!(f, "waiting until {}", *time as f64 / 1000.0),
            Self::Trip => f.write_str("the trip"),
            Self::Make(count, how) => write!(f, "{count} × {how:?}"),
            Self::Start(label) => write!(f, "{label}.start"),
            Self::End(label, how) => write!(f, "{label}.{how:?}"),
            Self::Admits => f.write_str("an admitted call"),
            Self::Rejects | Self::Full => f.write_str("a rejected call"),
            Self::Is(state) => write!(f, "reading {state:?}"),
            Self::Read(times) => write!(f, "{times} readings of the state"),
            Self::Callers { callers, .. } => write!(f, "{callers} callers at once"),
            Self::FailTogether(count) => write!(f, "{count} failures at once"),
            Self::Openings(_) | Self::Rejections(_) => f.write_str("looking at the counters"),
            Self::ForceOpen => f.write_str("force open"),
        }
    }
}

const fn steps(
    group: &'static str,
    key: &'static str,
    demand: &'static str,
    needs: &'static [Feature],
    steps: &'static [Step],
) -> Case {
    Case { group, key, demand, needs, policy: Policy::BASE, speed: None, body: Body::Steps(steps) }
}

const fn own(group: &'static str, key: &'static str, demand: &'static str, needs: &'static [Feature]) -> Case {
    Case { group, key, demand, needs, policy: Policy::BASE, speed: None, body: Body::Own }
}

const fn with(case: Case, policy: Policy) -> Case {
    Case { policy, ..case }
}

const fn window(size: u32, minimum: u32, percent: u32) -> Policy {
    Policy { window: Some(Window { size, minimum, percent }), ..Policy::BASE }
}

use End::{Drop, Err, Neutral, Ok, Panic};
use Feature as F;
use State::{Closed, HalfOpen, Open};
use Step::{Admits, At, End as Ends, Full, Is, Make, Rejects, Start, Trip};

/// All of them, in the order of the contract.
pub const CASES: &[Case] = &[
    steps(
        "Permits",
        "a",
        "a dropped probe frees its slot",
        &[F::Cancel],
        &[Trip, At(60_000), Start("P"), Ends("P", Drop), Admits],
    ),
    steps(
        "Permits",
        "b",
        "a neutral probe frees its slot and leaves it half-open",
        &[F::Neutral],
        &[Trip, At(60_000), Start("P"), Ends("P", Neutral), Is(HalfOpen), Admits],
    ),
    steps(
        "Permits",
        "c",
        "a drop from before the trip does not touch the probe",
        &[F::Cancel],
        &[Start("A"), Trip, At(60_000), Start("P"), Ends("A", Drop), Ends("P", Ok), Is(Closed)],
    ),
    steps(
        "Permits",
        "d",
        "a hung probe is replaced after `max_wait`; its verdict is late",
        &[F::MaxWait],
        &[Trip, At(60_000), Start("P"), At(90_000), Start("Q"), Ends("P", Ok), Is(HalfOpen), Ends("Q", Ok), Is(Closed)],
    ),
    steps(
        "Permits",
        "e1",
        "ten callers at once, one slot: one admitted",
        &[F::OnePermit],
        &[Trip, At(60_000), Step::Callers { callers: 10, admitted: 1 }],
    ),
    with(
        steps(
            "Permits",
            "e4",
            "ten callers at once, four slots: four admitted",
            &[F::ManyPermits],
            &[Trip, At(60_000), Step::Callers { callers: 10, admitted: 4 }],
        ),
        Policy { permits: 4, ..Policy::BASE },
    ),
    steps(
        "Permits",
        "f",
        "reading the state a hundred times spends no permit",
        &[F::StateReading],
        &[Trip, At(60_000), Step::Read(100), Start("P"), Full],
    ),
    steps(
        "Permits",
        "g",
        "a probe that panics frees its slot and counts as a failure",
        &[],
        &[
            Trip,
            At(60_000),
            Start("P"),
            Ends("P", Panic),
            Is(Open),
            At(119_000),
            Rejects,
            At(120_000),
            Start("Q"),
            Ends("Q", Ok),
            Is(Closed),
        ],
    ),
    steps(
        "Generations",
        "a",
        "a late success does not close it",
        &[],
        &[Start("A"), Trip, At(61_000), Start("P"), Ends("A", Ok), Is(HalfOpen), Full],
    ),
    steps(
        "Generations",
        "b",
        "a late failure does not reopen it; the probe closes it",
        &[],
        &[Start("A"), Trip, At(61_000), Start("P"), Ends("A", Err), Is(HalfOpen), Ends("P", Ok), Is(Closed)],
    ),
    steps(
        "Generations",
        "c",
        "late failures after closing count for nothing",
        &[F::Consecutive],
        &[
            Start("A"),
            Start("B"),
            Start("C"),
            Trip,
            At(60_000),
            Start("P"),
            Ends("P", Ok),
            Is(Closed),
            Ends("A", Err),
            Ends("B", Err),
            Ends("C", Err),
            Is(Closed),
            Make(2, Err),
            Is(Closed),
            Admits,
        ],
    ),
    steps(
        "Generations",
        "d",
        "a late success while open changes nothing, not even the deadline",
        &[],
        &[Start("A"), Trip, Ends("A", Ok), Is(Open), At(58_000), Rejects, At(60_000), Admits],
    ),
    steps(
        "Generations",
        "e",
        "a late failure while open does not move the deadline",
        &[],
        &[Start("A"), Trip, At(55_000), Ends("A", Err), At(60_000), Admits],
    ),
    steps(
        "Counting",
        "a",
        "f f s f f: closed",
        &[F::Consecutive],
        &[Make(2, Err), Make(1, Ok), Make(2, Err), Is(Closed), Admits],
    ),
    steps(
        "Counting",
        "b",
        "f f n f: open",
        &[F::Consecutive, F::Neutral],
        &[Make(2, Err), Make(1, Neutral), Make(1, Err), Is(Open), Rejects],
    ),
    steps(
        "Counting",
        "c",
        "a hundred cancelled calls: closed, counter 0",
        &[F::Consecutive, F::Cancel],
        &[Make(100, Drop), Is(Closed), Make(2, Err), Is(Closed), Admits],
    ),
    with(
        steps(
            "Counting",
            "d",
            "three hung calls and `timeout: 5s`: open at t=5",
            &[F::Timeout],
            &[Start("A"), Start("B"), Start("C"), At(4_000), Is(Closed), At(5_000), Is(Open), Rejects],
        ),
        Policy { timeout: Some(Duration::from_secs(5)), ..Policy::BASE },
    ),
    with(
        steps(
            "Counting",
            "e",
            "window of 10 at 50 %: 1000 ok, then open on the 5th failure",
            &[F::CountWindow],
            &[Make(1000, Ok), Make(4, Err), Is(Closed), Make(1, Err), Is(Open)],
        ),
        window(10, 1, 50),
    ),
    with(
        steps(
            "Counting",
            "f",
            "size 100, `minimum_calls: 5`: five failures open it",
            &[F::CountWindow, F::MinimumCalls],
            &[Make(4, Err), Is(Closed), Make(1, Err), Is(Open)],
        ),
        window(100, 5, 50),
    ),
    with(
        steps(
            "Counting",
            "g",
            "one permit: one good probe closes it, whatever `minimum_calls` says",
            &[F::MinimumCalls],
            &[Trip, Is(Open), At(60_000), Start("P"), Ends("P", Ok), Is(Closed)],
        ),
        window(20, 20, 50),
    ),
    with(
        steps(
            "Counting",
            "h",
            "1000 threads fail once each: one opening, one event",
            &[F::Consecutive],
            &[Step::FailTogether(1000), Is(Open), Step::Openings(1)],
        ),
        Policy { fail_max: 1000, ..Policy::BASE },
    ),
    own("Time", "a", "the wall clock set back an hour while open delays nothing", &[F::WallClock]),
    own(
        "Time",
        "b",
        "a snapshot of a process a day old keeps its wall deadline in one five seconds old",
        &[F::Snapshot],
    ),
    own("Time", "c", "10 000 failed probes with growth: the open time is the cap", &[F::Growth]),
    Case {
        speed: Some(1),
        policy: Policy { reset_timeout: Duration::from_secs(1), ..Policy::BASE },
        ..steps(
            "Time",
            "d",
            "`reset_timeout: 1s` opened at x.999: not before (x+1).999",
            &[],
            &[At(999), Trip, At(1_900), Rejects, At(1_999), Admits],
        )
    },
    own("Time", "e", "another machine's clock ten minutes ahead does not move a restored deadline", &[F::Snapshot]),
    steps(
        "Metrics",
        "a",
        "trip, no traffic, t=61: the state reads half-open",
        &[F::StateReading],
        &[Trip, Is(Open), At(61_000), Is(HalfOpen)],
    ),
    own("Metrics", "b", "before the first call every configured service has its series", &[F::Names]),
    steps(
        "Metrics",
        "c",
        "one rejection: the counter moves by one",
        &[F::RejectionCount],
        &[Trip, Step::Rejections(0), Rejects, Step::Rejections(1)],
    ),
    own("Metrics", "d", "after a reload the counters go on", &[F::Reload]),
    steps(
        "Control",
        "a",
        "forced open stays open at t=60 and t=600",
        &[F::ForceOpen],
        &[Trip, Step::ForceOpen, At(60_000), Rejects, At(600_000), Rejects],
    ),
    steps(
        "Control",
        "b",
        "force open while half-open acts at once; the probe's verdict is late",
        &[F::ForceOpen],
        &[Trip, At(60_000), Start("P"), Step::ForceOpen, Rejects, Ends("P", Ok), Is(Open), Rejects],
    ),
    own("Control", "c", "observe only: ten failures, all admitted, one would-open event", &[F::Observe]),
    own("Config", "a", "a new `reset_timeout` leaves this opening alone and holds for the next", &[F::Reload]),
    own("Config", "b", "four failures of five, `fail_max` reloaded to three: the next failure opens", &[F::Reload]),
    own(
        "Config",
        "c",
        "bad values are load errors with file, line and key; the running config stays",
        &[F::ConfigFile],
    ),
    own("Config", "d", "a hundred thousand dynamic names: bounded, and no open breaker is evicted", &[F::Names]),
    own("Composition", "a", "a rejection costs no retry token", &[F::RetryBudget]),
    own("Composition", "b", "a hundred breakers with jitter probe spread out, none early", &[F::Jitter]),
    own("Fleet", "c", "a peer's opening observed at t=50 half-opens at t=60", &[F::Snapshot]),
    own("Fleet", "d", "a store that lost the key: start closed, never crash", &[F::Snapshot]),
    own("Fleet", "e", "a half-open snapshot is restored as open and due", &[F::Snapshot]),
];
