//! What one upstream is: where it lives, what it answers to which call, its fixtures and its own faults.
//!
//! Handlers are pure: a [`Call`] goes in, an [`Answer`] comes out. They see no socket and no clock; faults, counting and
//! delays happen in front of them, once for all upstreams. What an upstream must remember between calls (a job that is
//! still running, a token that wears out) is in its [`Memory`].

mod call;
mod fixture;
mod memory;
mod route;
mod search;
mod uri;
mod xml;

use std::time::Duration;

pub(crate) use call::Call;
pub(crate) use fixture::{Fixture, fixtures};
pub(crate) use memory::Memory;
pub(crate) use route::{Route, get, post};
pub(crate) use search::{matches, page};
pub(crate) use uri::{pairs, segments};
pub(crate) use xml::escape;

use crate::answer::{Answer, HTML_MOVED};
use crate::fault::Scenario;

/// How many calls an upstream allows in a window, and what it answers to the next one.
#[derive(Debug)]
pub(crate) struct Rate {
    pub(crate) calls: usize,
    pub(crate) window: Duration,
    pub(crate) refusal: fn() -> Answer,
}

/// One upstream.
#[derive(Debug)]
pub(crate) struct UpstreamSpec {
    /// The name, as in the catalog of sources; a second host of a source has its own (`vatsense`, `nbb_official`).
    pub(crate) name: &'static str,
    /// The public origins whose links in answers must lead back to the simulator; the first is the upstream's own.
    pub(crate) hosts: &'static [&'static str],
    /// The path that the base URL ends in.
    pub(crate) base: &'static str,
    /// Its operations; the first one that matches a call answers it.
    pub(crate) routes: &'static [Route],
    /// What it answers to a call that matches no route.
    pub(crate) unrouted: fn() -> Answer,
    /// The files that its handlers answer from.
    pub(crate) fixtures: &'static [Fixture],
    /// The faults that only it has.
    pub(crate) scenarios: &'static [Scenario],
    /// The part of the upstream that a call is about (a member state, a data set), if calls are also counted by part.
    pub(crate) key: fn(&Call) -> Option<String>,
    /// Enforced while the fault `enforce_rate` is set.
    pub(crate) rate: Option<Rate>,
    /// Environment variables of its credentials and values that it accepts.
    pub(crate) credentials: &'static [(&'static str, &'static str)],
}

/// An upstream without anything, for `..EMPTY`.
pub(crate) const EMPTY: UpstreamSpec = UpstreamSpec {
    name: "",
    hosts: &[],
    base: "",
    routes: &[],
    unrouted: moved,
    fixtures: &[],
    scenarios: &[],
    key: |_| None,
    rate: None,
    credentials: &[],
};

fn moved() -> Answer {
    Answer::html(404, HTML_MOVED)
}
