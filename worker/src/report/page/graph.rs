//! Owners, the company and its officers as a drawing.

use std::fmt::Write as _;

use super::html::escape;
use crate::report::{
    insight::{Person, Relation, Screened},
    neutral::clipped,
};

/// Boxes of one kind. More of them are counted.
const MOST: usize = 10;

/// Measures in the units of the drawing, which is as wide as a phone.
const WIDTH: usize = 380;
const HEIGHT: usize = 36;
const STEP: usize = 46;
const INDENT: usize = 28;

/// Characters that fit into a box.
const CHARS: usize = 44;

/// The drawing: owners above the company, officers below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    company: String,
    above: Vec<Node>,
    below: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    name: String,
    remark: String,
    class: &'static str,
}

impl Graph {
    /// The drawing of a company with its people.
    #[must_use]
    pub fn of(company: &str, people: &[Person]) -> Self {
        let owns = |person: &&Person| matches!(person.relation, Relation::Owner | Relation::Parent);
        let (owners, officers): (Vec<&Person>, Vec<&Person>) = people.iter().partition(owns);
        Self { company: clipped(company, CHARS), above: nodes(&owners), below: nodes(&officers) }
    }

    /// The drawing as SVG.
    pub(super) fn svg(&self) -> String {
        let rows = self.above.len() + 1 + self.below.len();
        let height = rows * STEP;
        let mut out = format!(
            "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Owners above, the company, its officers below\">"
        );
        let middle = self.above.len() * STEP;
        for (n, node) in self.above.iter().enumerate() {
            self.edge(&mut out, n * STEP + HEIGHT / 2, middle);
            draw(&mut out, INDENT, n * STEP, node);
        }
        for (n, node) in self.below.iter().enumerate() {
            let y = middle + (n + 1) * STEP;
            self.edge(&mut out, y + HEIGHT / 2, middle + HEIGHT);
            draw(&mut out, INDENT, y, node);
        }
        let subject = Node { name: self.company.clone(), remark: "the company".to_owned(), class: "subject" };
        draw(&mut out, 0, middle, &subject);
        out.push_str("</svg>");
        out
    }

    /// A line from a box to the company.
    fn edge(&self, out: &mut String, from: usize, to: usize) {
        let x = INDENT / 2;
        let _ = write!(out, "<path class=\"edge\" d=\"M{INDENT} {from}H{x}V{to}\"/>");
    }
}

fn nodes(people: &[&Person]) -> Vec<Node> {
    let node = |person: &&Person| {
        let (class, list) = match person.screened {
            Screened::Hit { .. } => ("bad", "watch-list hit"),
            Screened::NoHit { .. } => ("good", "no hit"),
            Screened::NotScreened => ("warn", "not screened"),
        };
        let detail = person.detail.as_deref().unwrap_or(person.relation.label());
        Node { name: clipped(&person.name, CHARS), remark: clipped(&format!("{list}, {detail}"), CHARS), class }
    };
    let mut nodes: Vec<Node> = people.iter().take(MOST).map(node).collect();
    if people.len() > MOST {
        let name = format!("and {} more, see the table", people.len() - MOST);
        nodes.push(Node { name, remark: String::new(), class: "more" });
    }
    nodes
}

fn draw(out: &mut String, x: usize, y: usize, node: &Node) {
    let (width, text) = (WIDTH - x - 1, x + 10);
    let (first, second) = (y + 15, y + 29);
    let _ = write!(
        out,
        "<g class=\"node {}\"><rect x=\"{x}.5\" y=\"{y}.5\" width=\"{width}\" height=\"{HEIGHT}\" rx=\"5\"/>\
         <text x=\"{text}\" y=\"{first}\">{}</text><text class=\"remark\" x=\"{text}\" y=\"{second}\">{}</text></g>",
        node.class,
        escape(&node.name),
        escape(&node.remark)
    );
}
