//! What was promised, beside what was measured.

/// One promise.
#[derive(Debug, Clone)]
pub struct Target {
    what: String,
    unit: &'static str,
    measured: Option<f64>,
    most: f64,
}

impl Target {
    /// `measured` is to be at most `most`.
    pub fn at_most(what: impl Into<String>, unit: &'static str, measured: f64, most: f64) -> Self {
        Self { what: what.into(), unit, measured: Some(measured), most }
    }

    /// The same where there may be no figure.
    pub fn at_most_if_measured(what: impl Into<String>, unit: &'static str, measured: Option<f64>, most: f64) -> Self {
        Self { what: what.into(), unit, measured, most }
    }

    fn verdict(&self) -> &'static str {
        match self.measured {
            None => "not measured: the machine was too busy",
            Some(measured) if measured <= self.most => "met",
            Some(_) => "**missed**",
        }
    }
}

/// Prints the promises as a table.
pub fn print(targets: &[Target]) {
    println!("| target | measured | at most | unit | |\n|---|---:|---:|---|---|");
    for target in targets {
        let measured = target.measured.map_or("–".to_owned(), |measured| format!("{measured:.2}"));
        println!("| {} | {measured} | {:.2} | {} | {} |", target.what, target.most, target.unit, target.verdict());
    }
}
