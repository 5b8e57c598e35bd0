//! What is wrong with a configuration, and where.

use std::{
    fmt,
    path::{Path, PathBuf},
};

/// A place in the file; lines and columns count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
}

impl Place {
    pub(crate) const fn start() -> Self {
        Self { line: 1, column: 1 }
    }
}

/// Why a configuration was refused. Displays as `breakers.yaml:12:5: services.tavily.fail_max: must be at least 1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    file: Option<PathBuf>,
    place: Option<Place>,
    key: String,
    message: String,
}

impl ConfigError {
    pub(crate) fn new(place: Place, key: &str, message: impl AsRef<str>) -> Self {
        Self { file: None, place: Some(place), key: one_line(key), message: one_line(message.as_ref()) }
    }

    pub(crate) fn unreadable(file: &Path, message: impl AsRef<str>) -> Self {
        Self { file: Some(file.to_owned()), place: None, key: String::new(), message: one_line(message.as_ref()) }
    }

    pub(crate) fn in_file(mut self, file: &Path) -> Self {
        self.file = Some(file.to_owned());
        self
    }

    /// The file, if the configuration came from one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Where in the file, unless the file as a whole could not be read.
    #[must_use]
    pub const fn place(&self) -> Option<Place> {
        self.place
    }

    /// The key with its path, such as `services.tavily.fail_max`; empty for the document as a whole.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What is wrong, without the place.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// Text that may quote a file: cut to one line of limited length.
fn one_line(text: &str) -> String {
    const LONGEST: usize = 500;
    let mut line = String::new();
    for (n, c) in text.chars().enumerate() {
        if n == LONGEST {
            line.push('…');
            break;
        }
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}", file.display())?,
            None => f.write_str("configuration")?,
        }
        if let Some(Place { line, column }) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for ConfigError {}
