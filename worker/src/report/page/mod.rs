//! The report as a page for people. [`compose`] decides what stands on it and in which order; each format only sets it. So
//! all formats say the same, and the text of strangers is made harmless in one place.

mod compose;
mod graph;
mod html;
mod markdown;
mod text;
mod timeline;

pub use compose::compose;
pub use html::html;
pub use markdown::markdown;
pub use text::{text, wrap};

use super::neutral::neutral;

/// How a text is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// As it stands.
    Plain,
    /// An answer.
    Good,
    /// Look into it.
    Warn,
    /// Serious.
    Bad,
    /// Less important.
    Dim,
}

/// Harmless text with its tone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The text, on one line. It went through [`neutral`].
    text: String,
    tone: Tone,
}

impl Cell {
    /// Makes the text harmless.
    #[must_use]
    pub fn new(tone: Tone, text: impl AsRef<str>) -> Self {
        Self { text: neutral(text.as_ref()), tone }
    }

    /// Plain text.
    #[must_use]
    pub fn plain(text: impl AsRef<str>) -> Self {
        Self::new(Tone::Plain, text)
    }

    /// The harmless text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its tone.
    #[must_use]
    pub const fn tone(&self) -> Tone {
        self.tone
    }
}

/// A part of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// A paragraph.
    Text(Cell),
    /// A list.
    List(Vec<Cell>),
    /// Labels with their values, each value with a remark.
    Facts(Vec<(Cell, Vec<(Cell, Cell)>)>),
    /// A table. The last column holds the longest texts.
    Table {
        /// The headings.
        head: Vec<&'static str>,
        /// The rows, as long as the head.
        rows: Vec<Vec<Cell>>,
    },
    /// Owners, the company and its officers as a drawing. Only HTML shows it; the table beside it says the same.
    Graph(graph::Graph),
    /// What was asked when. Only HTML shows it; the table of sources says the same.
    Timeline(timeline::Timeline),
}

/// A section of the page.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Its heading.
    pub title: &'static str,
    /// What stands in it.
    pub blocks: Vec<Block>,
}

/// The whole page.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The company.
    pub title: Cell,
    /// The id of the investigation, and when it ended.
    pub subtitle: Cell,
    /// The verdict, the watch lists, the coverage: what must be read first.
    pub summary: Vec<Cell>,
    /// The sections, in the order of the page.
    pub sections: Vec<Section>,
}

/// Removes the columns in which every cell is empty.
fn without_empty_columns(head: Vec<&'static str>, rows: Vec<Vec<Cell>>) -> Block {
    let used: Vec<bool> =
        (0..head.len()).map(|n| rows.iter().any(|row| row.get(n).is_some_and(|cell| !cell.text.is_empty()))).collect();
    let kept = |n: usize| used.get(n).copied().unwrap_or(false);
    let head = head.into_iter().enumerate().filter(|(n, _)| kept(*n)).map(|(_, cell)| cell).collect();
    let rows = rows
        .into_iter()
        .map(|row| row.into_iter().enumerate().filter(|(n, _)| kept(*n)).map(|(_, cell)| cell).collect::<Vec<_>>());
    Block::Table { head, rows: rows.collect() }
}

#[cfg(test)]
mod tests;
