//! The figures that the targets are about, each pair measured in one run, and the targets.

use std::time::Duration;

use breaker_conformance::speed::{
    Form, Scene, Subject,
    measure::{Cost, Effort, measure},
    ours,
    rivals::{floors, rivals},
    targets::{Target, print},
    windows,
};

/// Each of two threads may pay at most this many times what one pays alone.
const FLAT: f64 = 1.3;

fn main() {
    // `cargo bench -p breaker-conformance --bench summary -- closed` measures that section alone.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_wanted = |section: &str| wanted.is_empty() || wanted.iter().any(|word| word == section);
    let mut targets = Vec::new();
    for (name, section) in SECTIONS {
        if is_wanted(name) {
            section(&mut targets);
        }
    }
    println!("\n## Targets\n");
    print(&targets);
}

type Section = fn(&mut Vec<Target>);

const SECTIONS: [(&str, Section); 6] = [
    ("closed", closed),
    ("rejected", rejected),
    ("look-up", look_up),
    ("windows", windows_of_any_size),
    ("policies", other_policies),
    ("context", in_a_call_context),
];

/// Subjects with their costs; the floors come first.
struct Table {
    subjects: Vec<Subject>,
    costs: Vec<Cost>,
}

impl Table {
    fn measure(title: &str, subjects: impl IntoIterator<Item = Subject>) -> Self {
        let subjects: Vec<Subject> = floors().into_iter().chain(subjects).collect();
        let costs = measure(&subjects, Effort::STANDARD);
        let table = Self { subjects, costs };
        table.print(title);
        table
    }

    fn print(&self, title: &str) {
        println!("\n## {title}\n\nNanoseconds per call and thread; *over* is over the bare call of the same form.\n");
        println!("| breaker | form | one thread | over | two threads | over | two : one |");
        println!("|---|---|---:|---:|---:|---:|---:|");
        for (subject, cost) in self.subjects.iter().zip(&self.costs) {
            let floor = self.floor(subject.form);
            let show = |figure: Option<f64>| figure.map_or("busy".to_owned(), |figure| format!("{figure:.1}"));
            println!(
                "| {} | {:?} | {:.1} | {:.1} | {} | {} | {} |",
                subject.name,
                subject.form,
                cost.one,
                cost.one - floor.one,
                show(cost.two),
                show(cost.two.zip(floor.two).map(|(two, floor)| two - floor)),
                show(cost.two.map(|two| two / cost.one)),
            );
        }
    }

    /// The bare call of a form.
    fn floor(&self, form: Form) -> Cost {
        self.costs[if form == Form::Future { 0 } else { 1 }]
    }

    fn ours(&self) -> Cost {
        let at = self.subjects.iter().position(|subject| subject.name == ours::NAME).expect("ours is in the table");
        self.costs[at]
    }

    /// The least over the floor among the published crates, and whose it is.
    fn fastest(&self, over: impl Fn(Cost, Cost) -> Option<f64>) -> Option<(String, f64)> {
        let published = self.subjects.iter().zip(&self.costs).skip(floors().len());
        published
            .filter(|(subject, _)| !subject.name.starts_with(ours::NAME) && !is_look_up(subject))
            .filter_map(|(subject, cost)| {
                let over = over(*cost, self.floor(subject.form))?;
                Some((format!("{} as {:?}", subject.name, subject.form), over))
            })
            .min_by(|a, b| a.1.total_cmp(&b.1))
    }
}

fn over_one(cost: Cost, floor: Cost) -> Option<f64> {
    Some(cost.one - floor.one)
}

fn over_two(cost: Cost, floor: Cost) -> Option<f64> {
    Some(cost.two? - floor.two?)
}

fn closed(targets: &mut Vec<Target>) {
    let table =
        Table::measure("Closed, successful", [ours::calls(Scene::Closed)].into_iter().chain(rivals(Scene::Closed)));
    let (ours, floor) = (table.ours(), table.floor(Form::Future));
    let (name, fastest) = table.fastest(over_one).expect("there are published crates");
    let over = ours.one - floor.one;
    targets.push(Target::at_most(format!("closed call over the bare call: half of {name}"), "ns", over, fastest / 2.0));
    let flatness = ours.two.map(|two| two / ours.one);
    targets.push(Target::at_most_if_measured("closed call, two threads : one", "×", flatness, FLAT));
}

fn rejected(targets: &mut Vec<Target>) {
    let ours = [ours::calls(Scene::Rejected), ours::calls_of_a_long_name(Scene::Rejected)];
    let table = Table::measure("Rejected", ours.into_iter().chain(rivals(Scene::Rejected)));
    let (ours, floor) = (table.ours(), table.floor(Form::Future));
    let (name, fastest) = table.fastest(over_one).expect("there are published crates");
    let what = format!("rejected call over the bare call: {name}");
    targets.push(Target::at_most(what, "ns", ours.one - floor.one, fastest));
    if let Some((name, fastest)) = table.fastest(over_two) {
        let what = format!("rejected call over the bare call, two threads: {name}");
        targets.push(Target::at_most_if_measured(what, "ns", over_two(ours, floor), fastest));
    }
}

fn look_up(targets: &mut Vec<Target>) {
    let subjects = ours::lookups().into_iter().chain([ours::calls(Scene::Closed)]).chain(rivals(Scene::Closed));
    let table = Table::measure("Look-up by name", subjects);
    let call = table.ours().one;
    let (name, fastest) = table.fastest(|cost, _| Some(cost.one)).expect("there are published crates");
    for (subject, cost) in table.subjects.iter().zip(&table.costs).filter(|(subject, _)| is_look_up(subject)) {
        let what = format!("{} over Breaker::call: the whole call of {name}", subject.name);
        targets.push(Target::at_most(what, "ns", cost.one - call, fastest));
    }
}

fn is_look_up(subject: &Subject) -> bool {
    subject.name.starts_with("registry.call")
}

fn windows_of_any_size(targets: &mut Vec<Target>) {
    println!("\n## Windows\n\nNanoseconds per closed, successful call by the number of calls in the window.\n");
    println!("| window | {} |", windows::FILLS.map(|fill| fill.to_string()).join(" | "));
    println!("|---|{}", "---:|".repeat(windows::FILLS.len()));
    let mut row = |windowed: &windows::Windowed| {
        let costs = windows::FILLS.map(|fill| windows::cost(windowed, fill, Duration::from_millis(800)));
        println!("| {} | {} |", windowed.name, costs.map(|cost| format!("{cost:.1}")).join(" | "));
        costs
    };
    let ours: Vec<_> = ours::WINDOWS.iter().map(|windowed| (windowed.name, row(windowed))).collect();
    let cheapest = windows::RIVALS.iter().flat_map(&mut row).fold(f64::INFINITY, f64::min);
    for (name, costs) in ours {
        let (least, most) = costs.iter().fold((f64::INFINITY, 0.0), |(l, m), cost| (cost.min(l), cost.max(m)));
        let what = format!("{name}: a third of tower-resilience's cheapest");
        targets.push(Target::at_most(what, "ns", most, cheapest / 3.0));
        targets.push(Target::at_most(format!("{name}: dearest fill : cheapest fill"), "×", most / least, FLAT));
    }
}

/// For information: what else a policy may ask for. No target is about it.
fn other_policies(_: &mut Vec<Target>) {
    Table::measure("Closed, successful, with more in the policy", ours::policies());
}

/// For information: what the look for a surrounding call context adds. No target is about it.
fn in_a_call_context(_: &mut Vec<Target>) {
    let subjects = [Scene::Closed, Scene::Rejected].map(ours::calls_in_context);
    Table::measure("Within a call context: closed, then rejected", subjects);
}
