//! The faults that only one upstream has.

use super::argument::Parameter;

/// A fault that only one upstream has. The upstream's handlers look it up by its name.
#[derive(Debug)]
pub(crate) struct Scenario {
    /// The name, before the colon.
    pub(crate) name: &'static str,
    /// What may follow the colon.
    pub(crate) parameter: Parameter,
    /// What the upstream then does.
    pub(crate) about: &'static str,
}

/// The scenario of every upstream that has a rate: it turns away the calls above that rate.
pub(crate) const ENFORCE_RATE: Scenario = Scenario {
    name: "enforce_rate",
    parameter: Parameter::None,
    about: "refuses the calls above the rate it publishes",
};
