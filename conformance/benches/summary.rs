//! Prints what a call costs through every breaker, all measured in one run.

use std::time::Duration;

use breaker_conformance::speed::{
    Form, Scene, Subject,
    measure::{Cost, Effort, measure},
    rivals::{floors, rivals},
    windows,
};

fn main() {
    for scene in [Scene::Closed, Scene::Rejected] {
        let mut subjects = floors();
        subjects.extend(rivals(scene));
        let costs = measure(&subjects, Effort::STANDARD);
        table(scene, &subjects, &costs);
    }
    windows_table();
}

fn table(scene: Scene, subjects: &[Subject], costs: &[Cost]) {
    println!("\n{scene:?}: ns per call and thread; over = less the bare call of the same form");
    for (subject, cost) in subjects.iter().zip(costs) {
        let floor = costs[usize::from(subject.form == Form::Closure)];
        println!(
            "{:42} {:8} {:8.2} {:8.2} {:8.2} {:6.2}",
            subject.name,
            format!("{:?}", subject.form),
            cost.one,
            cost.one - floor.one,
            cost.two.unwrap_or(f64::NAN),
            cost.two.unwrap_or(f64::NAN) / cost.one,
        );
    }
}

fn windows_table() {
    for windowed in windows::RIVALS {
        for fill in windows::FILLS {
            println!(
                "{:42} {fill:>8} {:10.1}",
                windowed.name,
                windows::cost(&windowed, fill, Duration::from_millis(500))
            );
        }
    }
}
