//! The sources' operations as activities.

use circuit_registry::CircuitRegistry;
use osint_activities::{activity::Activities, client::Client, guard::Names, spec::Settings};

use crate::error::CliError;

/// Sets up the sources' operations. `lookup` knows the values of environment variables, `names` resolves host names.
///
/// # Errors
/// When a value cannot be used (the user's mistake), or the HTTP client cannot be set up.
pub fn source_activities(
    registry: &CircuitRegistry,
    lookup: impl Fn(&str) -> Option<String>,
    names: Names,
) -> Result<Activities, CliError> {
    let settings = Settings::read(lookup)
        .map_err(|error| CliError::user(error).hint("correct or unset the variable; `osint sources` lists them"))?;
    let client = Client::with_names(settings, names)
        .map_err(|error| CliError::failure(format!("TLS cannot be set up: {error}")))?;
    Ok(Activities::new(registry.clone(), client))
}
