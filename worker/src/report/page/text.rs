//! The page on a terminal: as wide as the terminal, wrapped at words.

use unicode_width::UnicodeWidthStr;

use super::{Block, Cell, Page, Tone};
use crate::report::Paint;

/// Space between two columns.
const GAP: usize = 2;

/// A last column narrower than this goes below its row.
const READABLE: usize = 24;

/// Sets the page as text of at most `width` columns.
#[must_use]
pub fn text(page: &Page, paint: Paint, width: usize) -> String {
    let mut out = String::new();
    line(&mut out, &paint.bold(page.title.text()));
    line(&mut out, &paint.dim(page.subtitle.text()));
    out.push('\n');
    for cell in &page.summary {
        paragraph(&mut out, cell, paint, width, "", "  ");
    }
    for section in &page.sections {
        let shown: Vec<&Block> =
            section.blocks.iter().filter(|block| !matches!(block, Block::Graph(_) | Block::Timeline(_))).collect();
        if shown.is_empty() {
            continue;
        }
        out.push('\n');
        line(&mut out, &paint.bold(section.title));
        shown.into_iter().for_each(|each| block(&mut out, each, paint, width));
    }
    out
}

fn line(out: &mut String, text: &str) {
    out.push_str(text.trim_end());
    out.push('\n');
}

fn block(out: &mut String, block: &Block, paint: Paint, width: usize) {
    match block {
        Block::Text(cell) => paragraph(out, cell, paint, width, "  ", "  "),
        Block::List(items) => items.iter().for_each(|item| paragraph(out, item, paint, width, "  - ", "    ")),
        Block::Facts(facts) => self::facts(out, facts, paint, width),
        Block::Table { head, rows } => table(out, head, rows, paint, width),
        Block::Graph(_) | Block::Timeline(_) => {}
    }
}

/// A text in lines of at most `width`, the first after `first`, the others after `rest`.
fn paragraph(out: &mut String, cell: &Cell, paint: Paint, width: usize, first: &str, rest: &str) {
    for (n, part) in wrap(cell.text(), width.saturating_sub(first.width().max(rest.width()))).into_iter().enumerate() {
        line(out, &format!("{}{}", if n == 0 { first } else { rest }, paint.tone(cell.tone(), &part)));
    }
}

/// Labels on the left, values on the right, or below on a narrow terminal.
fn facts(out: &mut String, facts: &[(Cell, Vec<(Cell, Cell)>)], paint: Paint, width: usize) {
    let labels = facts.iter().map(|(label, _)| label.text().width()).max().unwrap_or(0);
    let below = width < labels + 2 * GAP + READABLE + 12;
    let indent = if below { 6 } else { 2 + labels + GAP };
    for (label, values) in facts {
        let mut head = format!("  {}", paint.tone(label.tone(), label.text()));
        if below {
            line(out, &head);
        } else {
            head.push_str(&" ".repeat(labels - label.text().width() + GAP));
        }
        let mut first = !below;
        for (value, remark) in values {
            let room = width.saturating_sub(indent);
            let remark = format!("({})", remark.text());
            let fits = value.text().width() + 1 + remark.width() <= room;
            let mut lines: Vec<String> =
                wrap(value.text(), room).iter().map(|part| paint.tone(value.tone(), part)).collect();
            if fits && lines.len() == 1 {
                lines[0] = format!("{} {}", lines[0], paint.dim(&remark));
            } else {
                lines.extend(wrap(&remark, room).iter().map(|part| paint.dim(part)));
            }
            for part in lines {
                line(out, &if first { format!("{head}{part}") } else { format!("{}{part}", " ".repeat(indent)) });
                first = false;
            }
        }
    }
}

/// A table. Where it does not fit, its last column goes below the rows; where even that does not, each row becomes a block.
fn table(out: &mut String, head: &[&'static str], rows: &[Vec<Cell>], paint: Paint, width: usize) {
    let Some(last) = head.len().checked_sub(1) else { return };
    let widest = |n: usize| {
        let cells = rows.iter().filter_map(|row| row.get(n)).map(|cell| cell.text().width());
        cells.chain([head[n].width()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(widest).collect();
    let fixed = 2 + widths[..last].iter().map(|width| width + GAP).sum::<usize>();
    if fixed > width + GAP {
        return blocks(out, head, rows, paint, width);
    }
    let beside = width >= fixed + widths[last].min(READABLE);
    let pad = |text: &str, n: usize| " ".repeat(widths[n] - text.width() + GAP);
    let mut heading = String::from("  ");
    for (n, cell) in head.iter().enumerate().filter(|(n, _)| beside || *n < last) {
        heading.push_str(&paint.bold(cell));
        heading.push_str(&pad(cell, n));
    }
    line(out, &heading);
    for row in rows {
        let mut start = String::from("  ");
        for (n, cell) in row[..last].iter().enumerate() {
            start.push_str(&paint.tone(cell.tone(), cell.text()));
            start.push_str(&pad(cell.text(), n));
        }
        let (indent, room) = if beside { (fixed, width - fixed) } else { (6, width.saturating_sub(6)) };
        let mut parts = wrap(row[last].text(), room).into_iter().map(|part| paint.tone(row[last].tone(), &part));
        if beside {
            start.push_str(&parts.next().unwrap_or_default());
        }
        line(out, &start);
        parts.for_each(|part| line(out, &format!("{}{part}", " ".repeat(indent))));
    }
}

/// Each row as a heading, its short cells on one line, and its long last cell below.
fn blocks(out: &mut String, head: &[&'static str], rows: &[Vec<Cell>], paint: Paint, width: usize) {
    for row in rows {
        let (Some((name, cells)), Some(last)) = (row.split_first(), row.last()) else { continue };
        paragraph(out, name, paint, width, "  ", "    ");
        let filled = head[1..].iter().zip(&cells[..cells.len() - 1]).filter(|(_, cell)| !cell.text().is_empty());
        let short: Vec<String> =
            filled.map(|(label, cell)| format!("{} {}", label.to_lowercase(), cell.text())).collect();
        let worst = cells.iter().map(Cell::tone).find(|tone| matches!(tone, Tone::Bad | Tone::Warn));
        let short = Cell::new(worst.unwrap_or(Tone::Plain), short.join(", "));
        paragraph(out, &short, paint, width, "    ", "      ");
        paragraph(out, last, paint, width, "    ", "      ");
    }
}

/// The text in lines of at most `width` columns, broken at words. A longer word is cut.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(8);
    let mut lines: Vec<String> = Vec::new();
    let mut current = String::new();
    for word in text.split_whitespace() {
        for piece in pieces(word, width) {
            let used = current.width();
            if used > 0 && used + 1 + piece.width() > width {
                lines.push(std::mem::take(&mut current));
            }
            if !current.is_empty() {
                current.push(' ');
            }
            current.push_str(&piece);
        }
    }
    if !current.is_empty() {
        lines.push(current);
    }
    lines
}

/// A word in pieces of at most `width` columns.
fn pieces(word: &str, width: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for c in word.chars() {
        let last = pieces.len() - 1;
        if pieces[last].width() + c.to_string().width() > width {
            pieces.push(c.to_string());
        } else {
            pieces[last].push(c);
        }
    }
    pieces
}

impl Paint {
    /// The text in the colour of its tone.
    #[must_use]
    pub fn tone(self, tone: Tone, text: &str) -> String {
        match tone {
            Tone::Plain => text.to_owned(),
            Tone::Good => self.green(text),
            Tone::Warn => self.yellow(text),
            Tone::Bad => self.red(text),
            Tone::Dim => self.dim(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_at_words_by_columns() {
        assert_eq!(wrap("one two three", 9), ["one two", "three"]);
        assert_eq!(wrap("漢字漢字 漢字", 9), ["漢字漢字", "漢字"]);
        assert_eq!(wrap("aaaaaaaaaaaa b", 8), ["aaaaaaaa", "aaaa b"]);
        assert!(wrap("  ", 8).is_empty());
    }

    #[test]
    fn a_table_fits_every_width() {
        let rows = vec![vec![
            Cell::plain("opensanctions_feed.screen"),
            Cell::new(Tone::Bad, "not_applicable"),
            Cell::plain("12345"),
            Cell::plain("the source did not answer, and nothing else did either, so nothing is known"),
        ]];
        for width in [40, 50, 60, 80, 120] {
            let mut out = String::new();
            table(&mut out, &["SOURCE", "STATUS", "MS", "REASON"], &rows, Paint::PLAIN, width);
            assert!(out.lines().all(|line| line.width() <= width), "{width}:\n{out}");
            assert!(out.contains("not_applicable") && out.contains("12345") && out.contains("answer,"), "{out}");
        }
    }
}
