//! The page as one HTML file. It needs nothing from anywhere: no script, no font, no picture.

use super::{Block, Cell, Page, Section, Tone};

const STYLE: &str = include_str!("style.css");

/// Sets the page as HTML.
#[must_use]
pub fn html(page: &Page) -> String {
    let title = escape(page.title.text());
    let summary: String = page.summary.iter().map(paragraph).collect();
    let sections: String = page.sections.iter().map(section).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1 dir=\"auto\">{title}</h1>\n\
         <p class=\"dim\">{}</p>\n<div class=\"summary\">{summary}</div>\n</header>\n<main>\n{sections}</main>\n</body>\n</html>\n",
        escape(page.subtitle.text())
    )
}

fn section(section: &Section) -> String {
    let blocks: String = section.blocks.iter().map(block).collect();
    format!("<section>\n<h2>{}</h2>\n{blocks}</section>\n", escape(section.title))
}

fn block(block: &Block) -> String {
    match block {
        Block::Text(cell) => paragraph(cell),
        Block::List(items) => {
            let items: String = items.iter().map(|item| format!("<li>{}</li>\n", span(item))).collect();
            format!("<ul>\n{items}</ul>\n")
        }
        Block::Facts(facts) => {
            let facts: String = facts.iter().map(fact).collect();
            format!("<dl>\n{facts}</dl>\n")
        }
        Block::Table { head, rows } => table(head, rows),
        Block::Graph(graph) => format!("<figure>{}</figure>\n", graph.svg()),
        Block::Timeline(timeline) => format!("<figure>{}</figure>\n", timeline.svg()),
    }
}

fn fact((label, values): &(Cell, Vec<(Cell, Cell)>)) -> String {
    let value = |(value, remark): &(Cell, Cell)| {
        format!("<dd>{} <span class=\"dim\">{}</span></dd>", span(value), escape(remark.text()))
    };
    let values: String = values.iter().map(value).collect();
    format!("<div><dt>{}</dt>{values}</div>\n", span(label))
}

fn table(head: &[&'static str], rows: &[Vec<Cell>]) -> String {
    let cells: String = head.iter().map(|cell| format!("<th scope=\"col\">{}</th>", escape(cell))).collect();
    let row = |row: &Vec<Cell>| {
        let cell = |(label, cell): (&&str, &Cell)| {
            let empty = if cell.text().is_empty() { " class=\"empty\"" } else { "" };
            format!("<td{empty} data-label=\"{}\">{}</td>", escape(label), span(cell))
        };
        let cells: String = head.iter().zip(row).map(cell).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let rows: String = rows.iter().map(row).collect();
    format!("<table>\n<thead><tr>{cells}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n")
}

fn paragraph(cell: &Cell) -> String {
    format!("<p>{}</p>\n", span(cell))
}

/// The text in its tone. `bdi` keeps the reading direction of a name from spreading.
fn span(cell: &Cell) -> String {
    let text = escape(cell.text());
    match cell.tone() {
        Tone::Plain => format!("<bdi>{text}</bdi>"),
        Tone::Good => format!("<bdi class=\"good\">{text}</bdi>"),
        Tone::Warn => format!("<bdi class=\"warn\">{text}</bdi>"),
        Tone::Bad => format!("<bdi class=\"bad\">{text}</bdi>"),
        Tone::Dim => format!("<bdi class=\"dim\">{text}</bdi>"),
    }
}

/// The text without meaning for HTML, in content and in quoted attributes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}
