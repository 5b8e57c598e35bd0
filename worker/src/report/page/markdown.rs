//! The page as Markdown. Everything that a cell holds is text: no markup of a source is obeyed.

use super::{Block, Cell, Page, Tone};

/// Sets the page as GitHub-flavoured Markdown.
#[must_use]
pub fn markdown(page: &Page) -> String {
    let mut out = format!("# {}\n\n{}\n\n", escape(page.title.text()), escape(page.subtitle.text()));
    page.summary.iter().for_each(|cell| out.push_str(&format!("- {}\n", toned(cell))));
    for section in &page.sections {
        let blocks: Vec<String> = section.blocks.iter().filter_map(block).collect();
        if !blocks.is_empty() {
            out.push_str(&format!("\n## {}\n\n{}", section.title, blocks.join("\n")));
        }
    }
    out
}

fn block(block: &Block) -> Option<String> {
    let list = |items: &mut dyn Iterator<Item = String>| items.map(|item| format!("- {item}\n")).collect::<String>();
    Some(match block {
        Block::Text(cell) => format!("{}\n", toned(cell)),
        Block::List(items) => list(&mut items.iter().map(toned)),
        Block::Facts(facts) => list(&mut facts.iter().map(|(label, values)| {
            let values =
                values.iter().map(|(value, remark)| format!("{} ({})", escape(value.text()), escape(remark.text())));
            format!("**{}**: {}", escape(label.text()), values.collect::<Vec<_>>().join(" / "))
        })),
        Block::Table { head, rows } => {
            let row =
                |cells: &mut dyn Iterator<Item = String>| format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
            let mut out = row(&mut head.iter().map(|cell| (*cell).to_owned()));
            out.push_str(&row(&mut head.iter().map(|_| "---".to_owned())));
            rows.iter().for_each(|cells| out.push_str(&row(&mut cells.iter().map(toned))));
            out
        }
        Block::Graph(_) | Block::Timeline(_) => return None,
    })
}

/// What is serious is bold: Markdown has no colours.
fn toned(cell: &Cell) -> String {
    let text = escape(cell.text());
    if cell.tone() == Tone::Bad && !text.is_empty() { format!("**{text}**") } else { text }
}

/// The text without meaning for Markdown or HTML.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '#' | '+' | '!' | '|' | '~' => {
                out.push('\\');
                out.push(c);
            }
            // A list, a heading under a line, or an ordered list could begin with these.
            '-' | '=' | '.' if out.is_empty() || (c == '.' && out.chars().all(|c| c.is_ascii_digit())) => {
                out.push('\\');
                out.push(c);
            }
            // A bare address would become a link.
            ':' if text.contains("://") => out.push_str("&#58;"),
            _ => out.push(c),
        }
    }
    out
}
