//! How a command fails: what happened, what to do next, and the exit code.
//!
//! Exit code 2 is the user's mistake (input, configuration, flags). Exit code 1 is a failure of this program or its
//! environment. Exit codes 3 and 4 are about a report that was made: `--fail-on` asked for them. Exit code 130 means that a signal interrupted the command.

use std::{fmt, io, process::ExitCode};

/// The error of a command: what happened, and a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CliError {
    code: u8,
    what: String,
    next: Option<String>,
}

impl CliError {
    /// A mistake that the user can correct: exit code 2.
    pub fn user(what: impl fmt::Display) -> Self {
        Self { code: 2, what: what.to_string(), next: None }
    }

    /// A failure that is not the user's mistake: exit code 1.
    pub fn failure(what: impl fmt::Display) -> Self {
        Self { code: 1, what: what.to_string(), next: None }
    }

    /// A report that the user asked to be told about with `--fail-on`: exit code 3 for a gap, 4 for a hit.
    pub(crate) fn report(code: u8, what: impl fmt::Display) -> Self {
        Self { code, what: what.to_string(), next: None }
    }

    /// A port that cannot be listened on.
    pub(crate) fn port(port: u16, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::AddrInUse => Self::failure(format!("port {port} is in use"))
                .hint("stop the program that uses it, or choose another port (see --help)"),
            _ => Self::failure(format!("cannot listen on port {port}: {error}")),
        }
    }

    /// A signal ended the command before it was done: exit code 130, as shells report Ctrl-C.
    #[must_use]
    pub fn interrupted() -> Self {
        Self { code: 130, what: "interrupted".to_owned(), next: None }
    }

    /// Adds a hint: what to do next. An empty text adds none.
    #[must_use]
    pub fn hint(self, next: impl fmt::Display) -> Self {
        let next = Some(next.to_string()).filter(|text| !text.trim().is_empty());
        Self { next, ..self }
    }

    /// The exit code: 1, 2, 3, 4 or 130.
    #[must_use]
    pub const fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.what)?;
        match &self.next {
            Some(next) => write!(f, "\n  {}", next.replace('\n', "\n  ")),
            None => Ok(()),
        }
    }
}

impl std::error::Error for CliError {}

impl From<CliError> for ExitCode {
    fn from(error: CliError) -> Self {
        Self::from(error.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_its_text_and_its_hint() {
        let error = CliError::user("unknown country 'ZZ'").hint("use a code\nsuch as NO");
        assert_eq!(error.to_string(), "error: unknown country 'ZZ'\n  use a code\n  such as NO");
        assert_eq!((error.code(), CliError::failure("x").code()), (2, 1));
        assert_eq!(CliError::failure("it ended at once").hint("\n").to_string(), "error: it ended at once");
    }
}
