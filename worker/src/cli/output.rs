//! Where a report goes, and in which format.

use std::{
    io::{IsTerminal, Write as _, stdout},
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use tempfile::NamedTempFile;

use crate::{
    error::CliError,
    report::{
        Paint, Report,
        export::{bods, ftm},
        insight::Insight,
        neutral::escaped_json,
        page::{compose, html, markdown, text},
    },
};

/// Exit codes of `--fail-on`.
const GAP: u8 = 3;
const HIT: u8 = 4;

/// Columns of a page that goes to a file or a pipe.
const COLUMNS: usize = 100;

/// Format of a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// A page for a terminal
    #[default]
    Table,
    /// One JSON document
    Json,
    /// GitHub-flavoured Markdown
    Markdown,
    /// One HTML file that needs nothing else
    Html,
    /// FollowTheMoney entities, one a line
    Ftm,
    /// Statements of the Beneficial Ownership Data Standard 0.4
    Bods,
}

/// What makes the command fail although there is a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FailOn {
    /// A question without a full answer: exit code 3
    Gap,
    /// A watch-list entry that matches: exit code 4
    Hit,
}

/// Arguments of every command that prints a report.
#[derive(Debug, Args)]
#[command(next_help_heading = "Report")]
pub(super) struct OutputArgs {
    /// Format of the report
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// File to write; without it, standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Fail when the report has this; may be given twice. A hit outweighs a gap
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    fail_on: Vec<FailOn>,
}

impl OutputArgs {
    /// Checks before anything starts that the file can be written.
    pub(super) fn check(&self) -> Result<(), CliError> {
        self.output.as_deref().map_or(Ok(()), |file| draft(file).map(drop))
    }

    /// True if programs read the output.
    pub(super) fn is_json(&self) -> bool {
        self.json || self.format == Format::Json
    }

    /// Writes the report. Then fails, if `--fail-on` asks for it.
    pub(super) fn write(&self, report: &Report) -> Result<(), CliError> {
        let format = if self.json { Format::Json } else { self.format };
        match &self.output {
            None => super::print(&set(report, format, Paint::of(&stdout()), width())?)?,
            Some(file) => save(file, &set(report, format, Paint::PLAIN, COLUMNS)?)?,
        }
        self.judge(report)
    }

    fn judge(&self, report: &Report) -> Result<(), CliError> {
        let gaps = report.coverage.gaps.len() + report.coverage.not_asked.len();
        if self.fail_on.contains(&FailOn::Hit) && Insight::of(report).has_hit() {
            return Err(CliError::report(HIT, "a watch list names the company or one of its people (--fail-on hit)"));
        }
        if self.fail_on.contains(&FailOn::Gap) && gaps > 0 {
            return Err(CliError::report(GAP, format!("{gaps} questions have no full answer (--fail-on gap)")));
        }
        Ok(())
    }
}

/// The report in a format.
pub(super) fn set(report: &Report, format: Format, paint: Paint, width: usize) -> Result<String, CliError> {
    Ok(match format {
        Format::Table => text(&compose(report), paint, width),
        Format::Markdown => markdown(&compose(report)),
        Format::Html => html(&compose(report)),
        Format::Ftm => ftm::ftm(report),
        Format::Bods => bods::bods(report) + "\n",
        Format::Json => {
            let document = report.document().and_then(|document| serde_json::to_string_pretty(&document));
            let document = document.map_err(|error| CliError::failure(format!("cannot write JSON: {error}")))?;
            escaped_json(&document) + "\n"
        }
    })
}

/// Columns of the terminal, as far as lines stay readable.
pub(super) fn width() -> usize {
    let columns = terminal_size::terminal_size().filter(|_| stdout().is_terminal()).map(|(width, _)| width.0.into());
    columns.map_or(COLUMNS, |columns: usize| columns.clamp(40, 120))
}

/// A file beside the one that is asked for. It takes its place when it is whole.
fn draft(file: &Path) -> Result<NamedTempFile, CliError> {
    if file.is_dir() {
        return Err(CliError::user(format!("cannot write {}: it is a folder", file.display())));
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    NamedTempFile::new_in(folder).map_err(|error| unwritable(file, &error))
}

/// Writes the file whole, or not at all.
pub(super) fn save(file: &Path, content: &str) -> Result<(), CliError> {
    let mut draft = draft(file)?;
    draft.write_all(content.as_bytes()).map_err(|error| unwritable(file, &error))?;
    draft.persist(file).map_err(|error| unwritable(file, &error.error))?;
    Ok(())
}

fn unwritable(file: &Path, error: &std::io::Error) -> CliError {
    CliError::user(format!("cannot write {}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_whole_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("report.html");
        save(&file, "first").expect("writable");
        save(&file, "second").expect("writable");
        assert_eq!(std::fs::read_to_string(&file).expect("readable"), "second");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "a draft is left behind");
        for bad in [folder.path(), Path::new("/nowhere/report.html")] {
            assert_eq!(save(bad, "x").expect_err("unwritable").code(), 2);
        }
    }
}
