//! Hot reload over a real file system: what editors, volume mounts and accidents do to a file.

#![cfg(feature = "reload")]

use std::{fs, os::unix::fs::symlink, path::Path, time::Duration};

use circuit_registry::{
    BreakersConfig, CircuitRegistry,
    reload::{Reload, Reloader, watch},
};

const THREE: &str = "services: { s: { fail_max: 3 } }\n";
const SEVEN: &str = "services: { s: { fail_max: 7 } }\n";

fn fail_max(registry: &CircuitRegistry) -> u32 {
    registry.config().policy("s").trip.fail_max.expect("a consecutive policy").get()
}

struct Fixture {
    dir: tempfile::TempDir,
    registry: CircuitRegistry,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        fs::write(dir.path().join("breakers.yaml"), THREE).expect("writable");
        let config = BreakersConfig::load(&dir.path().join("breakers.yaml")).expect("valid");
        Self { dir, registry: CircuitRegistry::new(config) }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn reloader(&self) -> Reloader<CircuitRegistry> {
        Reloader::new(self.registry.clone(), &self.path("breakers.yaml"))
    }
}

#[test]
fn a_good_file_is_applied_once() {
    let fixture = Fixture::new();
    let mut reloader = fixture.reloader();
    assert_eq!(reloader.look(), Reload::Unchanged);
    fs::write(fixture.path("breakers.yaml"), SEVEN).unwrap();
    let Reload::Applied(diff) = reloader.look() else { panic!("must be applied") };
    assert_eq!(diff.changed, ["s"]);
    assert_eq!(reloader.look(), Reload::Unchanged);
    assert_eq!((fail_max(&fixture.registry), fixture.registry.reloads()), (7, (1, 0)));
}

#[test]
fn bad_files_keep_the_running_configuration() {
    let fixture = Fixture::new();
    let mut reloader = fixture.reloader();
    let path = fixture.path("breakers.yaml");
    let mut refused = |what: &str, says: &str| {
        let Reload::Refused(error) = reloader.look() else { panic!("{what} must be refused") };
        assert!(error.to_string().contains(says), "{what}: {error}");
        assert_eq!(reloader.look(), Reload::Unchanged, "{what} is reported once");
        assert_eq!(fail_max(&fixture.registry), 3, "{what}");
    };
    fs::write(&path, "services: { s: { fail_max: 0 } }").unwrap();
    refused("a bad value", "services.s.fail_max");
    fs::write(&path, "services: { s: { fail_m").unwrap();
    refused("half a file", "not valid YAML");
    fs::write(&path, "").unwrap();
    refused("an empty file", "is empty");
    fs::write(&path, [b'a', 0xff]).unwrap();
    refused("bytes", "is not UTF-8");
    fs::remove_file(&path).unwrap();
    refused("no file", "cannot be opened");
    fs::create_dir(&path).unwrap();
    refused("a directory", "is a directory");
    assert_eq!(fixture.registry.reloads(), (0, 6));
    fs::remove_dir(&path).unwrap();
    fs::write(&path, SEVEN).unwrap();
    assert!(matches!(reloader.look(), Reload::Applied(_)), "and a good one is applied again");
}

/// Waits for the registry to become what `done` says; the watcher's own debounce and no clock of ours decides when.
async fn until(what: &str, done: impl Fn() -> bool) {
    let wait = async {
        while !done() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap_or_else(|_| panic!("never happened: {what}"));
}

#[tokio::test]
async fn rename_and_truncate_are_noticed() {
    let fixture = Fixture::new();
    let path = fixture.path("breakers.yaml");
    let watching = tokio::spawn(watch(fixture.registry.clone(), path.clone()));
    until("the first look", || fixture.registry.reloads() == (1, 0)).await;

    fs::write(fixture.path(".breakers.yaml.swp"), SEVEN).unwrap();
    fs::rename(fixture.path(".breakers.yaml.swp"), &path).unwrap();
    until("an editor that renames", || fail_max(&fixture.registry) == 7).await;

    fs::write(&path, "services: [").unwrap();
    until("a bad file", || fixture.registry.reloads().1 == 1).await;
    assert_eq!(fail_max(&fixture.registry), 7);

    fs::write(&path, THREE).unwrap();
    until("a rewrite in place", || fail_max(&fixture.registry) == 3).await;
    watching.abort();
}

#[tokio::test]
async fn a_swapped_link_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    // As volumes are mounted: breakers.yaml -> ..data/breakers.yaml, ..data -> ..one; then ..data -> ..two in one step.
    for (version, yaml) in [("..one", THREE), ("..two", SEVEN)] {
        fs::create_dir(at(version)).unwrap();
        fs::write(at(version).join("breakers.yaml"), yaml).unwrap();
    }
    symlink("..one", at("..data")).unwrap();
    symlink(Path::new("..data/breakers.yaml"), at("breakers.yaml")).unwrap();
    let registry = CircuitRegistry::new(BreakersConfig::load(&at("breakers.yaml")).unwrap());
    let watching = tokio::spawn(watch(registry.clone(), at("breakers.yaml")));
    until("the first look", || registry.reloads().0 == 1).await;

    symlink("..two", at("..data_tmp")).unwrap();
    fs::rename(at("..data_tmp"), at("..data")).unwrap();
    until("the swap", || fail_max(&registry) == 7).await;
    watching.abort();
}

#[tokio::test]
async fn a_directory_that_is_not_there_cannot_be_watched() {
    let registry = CircuitRegistry::new(BreakersConfig::default());
    assert!(watch(registry, "/nowhere/at/all/breakers.yaml".into()).await.is_err());
}
