//! The Markdown pages: their links lead to files, and the make targets they name exist.

use std::{
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

/// The Markdown files of the root, of `docs/`, and of each crate.
fn pages() -> Vec<PathBuf> {
    let folders = ["", "docs", "registry", "activities", "simulator", "worker", "tests", "conformance"];
    let files = folders.iter().filter_map(|folder| fs::read_dir(root().join(folder)).ok()).flatten();
    let pages = files.map(|entry| entry.expect("a readable folder").path());
    pages.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

fn text(page: &Path) -> String {
    fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

#[test]
fn every_relative_link_leads_to_a_file() {
    let mut links = 0;
    for page in pages() {
        let text = text(&page);
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains("://") && !target.starts_with('#')) {
            let file = target.split('#').next().unwrap_or_default();
            let at = page.parent().expect("a folder").join(file);
            assert!(at.exists(), "{} links to {target}, which does not exist", page.display());
            links += 1;
        }
    }
    assert!(links > 10, "only {links} links found: does the search for links still work?");
}

#[test]
fn every_named_make_target_exists() {
    let makefile = text(&root().join("Makefile"));
    let mut named = 0;
    for page in pages() {
        let text = text(&page);
        let chores = text
            .split("make ")
            .skip(1)
            .filter_map(|rest| rest.split(|c: char| !c.is_ascii_lowercase() && c != '-').next());
        // In prose, "make" is a verb; in code it follows a back-tick or a prompt.
        let code = text.split("make ").map(|before| before.ends_with('`') || before.ends_with("$ "));
        for (chore, _) in chores.zip(code).filter(|(chore, code)| *code && !chore.is_empty()) {
            assert!(makefile.contains(&format!("\n{chore}:")), "{}: there is no `make {chore}`", page.display());
            named += 1;
        }
    }
    assert!(named > 5, "only {named} chores found: does the search for targets still work?");
}

#[test]
fn the_page_of_upstreams_matches_the_catalog() {
    let page = text(&root().join("docs/upstreams.md"));
    assert!(page == osint_activities::catalog::page(), "docs/upstreams.md is out of date: run `make upstreams`");
}
