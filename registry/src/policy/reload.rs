//! Hot reload. The running configuration is always a valid one, whatever happens to the file.
//!
//! The *directory* is watched, not the file: editors that write a new file and rename it, and mounted volumes that swap a symbolic
//! store handle, replace the file we would be watching. Every event only says "look again"; after a pause without events
//! the file is read, parsed and validated, and applied if its contents are new and good. A bad, empty or missing file is reported once and
//! changes nothing. A slow heartbeat looks again anyway, for file systems without events.

use std::{
    convert::Infallible,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use notify::{RecursiveMode, Watcher};
use tokio::{sync::mpsc, time::timeout};

use super::{
    ConfigDiff,
    config::{BreakersConfig, ConfigError},
};

/// After the last event the file is left alone this long before it is read: a writer may still be at it.
const DEBOUNCE: Duration = Duration::from_millis(150);

/// Look again after this long even without an event.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// What one look at the file came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reload {
    /// The file is as it was.
    Unchanged,
    /// The file is good and in force now.
    Applied(ConfigDiff),
    /// The file is not good; what was in force still is.
    Refused(ConfigError),
}

/// What goes by a configuration and can change to another one: a [`CircuitRegistry`](crate::CircuitRegistry).
pub trait Reloadable {
    /// Goes by `config` from now on.
    fn apply(&self, config: BreakersConfig) -> ConfigDiff;

    /// A configuration could not be loaded; the one in force stays.
    fn reload_failed(&self, error: &ConfigError);
}

/// Looks at one file and applies what it finds. The decisions of [`watch`], without the watching.
#[derive(Debug)]
pub struct Reloader<R> {
    registry: R,
    path: PathBuf,
    seen: Option<Result<Vec<u8>, ConfigError>>,
}

impl<R: Reloadable> Reloader<R> {
    /// A reloader for `registry`, which is assumed to have been loaded from `path` as it is now.
    #[must_use]
    pub fn new(registry: R, path: &Path) -> Self {
        let seen = Some(BreakersConfig::read(path));
        Self { registry, path: path.to_owned(), seen }
    }

    /// Reads the file and applies it if it is new and good.
    pub fn look(&mut self) -> Reload {
        let found = BreakersConfig::read(&self.path);
        if self.seen.as_ref() == Some(&found) {
            return Reload::Unchanged;
        }
        let config = found.as_ref().map_err(Clone::clone).and_then(|bytes| {
            // A file that is being rewritten is empty for a moment, and an empty file would be valid.
            if bytes.iter().all(u8::is_ascii_whitespace) {
                return Err(ConfigError::unreadable(&self.path, "is empty"));
            }
            BreakersConfig::from_bytes(bytes, &self.path)
        });
        self.seen = Some(found);
        match config {
            Ok(config) => Reload::Applied(self.registry.apply(config)),
            Err(error) => {
                self.registry.reload_failed(&error);
                Reload::Refused(error)
            }
        }
    }
}

/// Keeps `registry` at what `path` says, for as long as the returned future is polled. Good files are applied, bad ones
/// reported; see [`CircuitRegistry::apply`](crate::CircuitRegistry::apply) and
/// [`CircuitRegistry::reload_failed`](crate::CircuitRegistry::reload_failed).
///
/// # Errors
/// If the file's directory cannot be watched. It never ends otherwise.
pub async fn watch<R: Reloadable>(registry: R, path: PathBuf) -> io::Result<Infallible> {
    let (changed, mut changes) = mpsc::channel(1);
    let mut watcher = notify::recommended_watcher(move |_event| {
        // One waiting "look again" is as good as many.
        let _ = changed.try_send(());
    })
    .map_err(io::Error::other)?;
    for directory in directories(&path) {
        watcher.watch(&directory, RecursiveMode::NonRecursive).map_err(io::Error::other)?;
    }
    let mut reloader = Reloader::new(registry, &path);
    // The file may have changed between its first reading and the watch.
    reloader.seen = None;
    loop {
        reloader.look();
        if timeout(HEARTBEAT, changes.recv()).await.is_ok() {
            while timeout(DEBOUNCE, changes.recv()).await.is_ok() {}
        }
    }
}

/// The directories whose changes can change the file: its own, and, if it is a store handle, that of what it leads to.
fn directories(path: &Path) -> Vec<PathBuf> {
    let parent = |path: &Path| match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let mut directories = vec![parent(path)];
    if let Ok(target) = path.canonicalize() {
        let target = parent(&target);
        if directories[0].canonicalize().is_ok_and(|own| own != target) {
            directories.push(target);
        }
    }
    directories
}
