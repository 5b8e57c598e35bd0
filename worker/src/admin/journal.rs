//! What happened to the breakers: a bounded history that operators can read, follow, and find again after a restart.
//!
//! The journal is an [observer](Observer) of the registry. It runs on the registry's own thread for observers, so a slow disk
//! delays no call. With a file, each entry is a line of JSON; a line that cannot be read costs only itself.

use std::{
    collections::VecDeque,
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use circuit_registry::{Event, EventKind, Observer};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

/// Entries in all. Beyond that the oldest is forgotten.
const ENTRIES: usize = 2000;

/// Entries of one service, so that one that flaps does not push out the others.
const OF_ONE: usize = 200;

/// Entries that a slow reader of [`Journal::follow`] may be behind.
const BEHIND: usize = 256;

/// Bytes of the file that are read at a start: its end.
const FILE_READ: u64 = 4 << 20;

/// Lines in the file before it is written anew with the entries that are kept.
const FILE_LINES: usize = 2 * ENTRIES;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Increases by one with each entry.
    pub id: u64,
    /// When, by the worker's clock.
    pub at: Timestamp,
    /// The breaker; empty for what concerns all.
    pub service: String,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// What can happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    /// The state changed.
    Transition {
        /// The state before: `closed`, `open` or `half_open`.
        from: String,
        /// The state after.
        to: String,
        /// The reason.
        why: String,
        /// For an opening: how long until the first probe, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        open_for_ms: Option<u64>,
        /// The last failure before it: its kind, a few words, when, and how long it took.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_failure: Option<String>,
    },
    /// It would have opened, but it only observes.
    WouldOpen {
        /// The reason.
        why: String,
    },
    /// An operator set an override or released one.
    Override {
        /// The mode since then.
        mode: String,
        /// The operator.
        who: String,
        /// The reason.
        why: String,
    },
    /// Its thresholds changed.
    Reconfigured,
    /// A new file of thresholds was refused.
    ReloadFailed {
        /// What is wrong in it.
        error: String,
    },
}

impl What {
    /// What an event of the registry means here; `None` for events of single calls. The only place that reads events.
    fn of(kind: &EventKind) -> Option<Self> {
        Some(match kind {
            EventKind::Transition(change) => Self::Transition {
                from: change.from.as_str().to_owned(),
                to: change.to.as_str().to_owned(),
                why: change.cause.to_string(),
                open_for_ms: change.open_for.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
                last_failure: change.last_failure.as_ref().map(ToString::to_string),
            },
            EventKind::WouldOpen(change) => Self::WouldOpen { why: change.cause.to_string() },
            EventKind::Overridden { mode, who, why } => {
                Self::Override { mode: mode.as_str().to_owned(), who: who.clone(), why: why.clone() }
            }
            EventKind::Reconfigured => Self::Reconfigured,
            EventKind::ReloadFailed { error } => Self::ReloadFailed { error: error.clone() },
            _ => return None,
        })
    }
}

/// The history. Clones share it.
#[derive(Debug, Clone)]
pub struct Journal {
    kept: Arc<Mutex<Kept>>,
    news: broadcast::Sender<Entry>,
}

#[derive(Debug, Default)]
struct Kept {
    entries: VecDeque<Entry>,
    next: u64,
    file: Option<JournalFile>,
}

impl Default for Journal {
    fn default() -> Self {
        Self { kept: Arc::default(), news: broadcast::Sender::new(BEHIND) }
    }
}

impl Journal {
    /// A journal in the file at `path`, with what an earlier process wrote there. If the file cannot be used, that is logged
    /// and the journal is kept in memory only.
    #[must_use]
    pub fn in_file(path: &Path) -> Self {
        let journal = Self::default();
        match JournalFile::open(path) {
            Ok((file, entries)) => {
                let mut kept = journal.lock();
                kept.next = entries.last().map_or(0, |last| last.id + 1);
                for entry in entries {
                    kept.remember(entry);
                }
                kept.file = Some(file);
            }
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "the history of breakers is kept in memory only");
            }
        }
        journal
    }

    /// The entries of a service, or of all, oldest first.
    #[must_use]
    pub fn entries(&self, service: Option<&str>) -> Vec<Entry> {
        let kept = self.lock();
        kept.entries.iter().filter(|entry| service.is_none_or(|name| entry.service == name)).cloned().collect()
    }

    /// The entries so far, and all that follow.
    pub(super) fn follow(&self) -> (Vec<Entry>, broadcast::Receiver<Entry>) {
        let kept = self.lock();
        (kept.entries.iter().cloned().collect(), self.news.subscribe())
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Journal {
    fn wants_calls(&self) -> bool {
        false
    }

    fn on_event(&self, event: &Event) {
        let Some(what) = What::of(&event.kind) else { return };
        let mut kept = self.lock();
        let at = Timestamp::try_from(event.at).unwrap_or_default();
        let entry = Entry { id: kept.next, at, service: event.service.to_string(), what };
        kept.next += 1;
        kept.remember(entry.clone());
        kept.write(&entry);
        let _ = self.news.send(entry); // an error means that nobody follows
    }
}

impl Kept {
    fn remember(&mut self, entry: Entry) {
        let service = entry.service.clone();
        self.entries.push_back(entry);
        let of_one = |entry: &Entry| entry.service == service;
        if self.entries.iter().filter(|entry| of_one(entry)).count() > OF_ONE {
            let oldest = self.entries.iter().position(of_one);
            oldest.and_then(|oldest| self.entries.remove(oldest));
        }
        if self.entries.len() > ENTRIES {
            self.entries.pop_front();
        }
    }

    /// Appends the entry to the file. The first failure is logged and ends the file, not the journal.
    fn write(&mut self, entry: &Entry) {
        let Some(mut file) = self.file.take() else { return };
        let written = match file.append(entry) {
            Ok(()) if file.lines > FILE_LINES => file.rewrite(&self.entries),
            other => other,
        };
        match written {
            Ok(()) => self.file = Some(file),
            Err(error) => {
                tracing::warn!(%error, path = %file.path.display(), "the history of breakers is no longer written to its file");
            }
        }
    }
}

#[derive(Debug)]
struct JournalFile {
    path: PathBuf,
    file: File,
    lines: usize,
}

impl JournalFile {
    fn open(path: &Path) -> io::Result<(Self, Vec<Entry>)> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(FILE_READ)))?;
        let mut bytes = Vec::new();
        (&file).take(FILE_READ).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let entries: Vec<Entry> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if !bytes.is_empty() && !bytes.ends_with(b"\n") {
            // The last writer was killed in the middle of a line.
            file.write_all(b"\n")?;
        }
        Ok((Self { path: path.to_owned(), file, lines: text.lines().count() }, entries))
    }

    fn append(&mut self, entry: &Entry) -> io::Result<()> {
        self.lines += 1;
        self.file.write_all(line(entry)?.as_bytes())
    }

    /// Replaces the file by one with the kept entries only.
    fn rewrite(&mut self, entries: &VecDeque<Entry>) -> io::Result<()> {
        let beside = self.path.with_extension("new");
        let lines = entries.iter().map(line).collect::<io::Result<String>>()?;
        fs::write(&beside, lines)?;
        fs::rename(&beside, &self.path)?;
        self.file = OpenOptions::new().append(true).open(&self.path)?;
        self.lines = entries.len();
        Ok(())
    }
}

fn line(entry: &Entry) -> io::Result<String> {
    Ok(serde_json::to_string(entry)? + "\n")
}

#[cfg(test)]
mod tests {
    use circuit_registry::{BreakersConfig, CircuitRegistry, Override, Verdict};

    use super::*;

    fn registry(journal: &Journal) -> CircuitRegistry {
        let config = BreakersConfig::from_yaml("defaults: { fail_max: 1 }").expect("valid");
        CircuitRegistry::builder().config(config).observer(journal.clone()).log(false).build()
    }

    fn open(registry: &CircuitRegistry, service: &str) {
        registry.breaker(service).try_acquire().expect("closed").settle(Verdict::Failure);
    }

    #[test]
    fn the_history_survives_a_restart_and_a_torn_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("breakers.state.history");
        {
            let journal = Journal::in_file(&path);
            let registry = registry(&journal);
            open(&registry, "tavily");
            registry.breaker("vies").force_open(Override::new("alice", "maintenance"));
            registry.flush_observers();
        }
        OpenOptions::new().append(true).open(&path).expect("there").write_all(b"{\"id\":99,\"at\":").expect("torn");
        let journal = Journal::in_file(&path);
        let entries = journal.entries(None);
        assert_eq!(entries.len(), 3, "a forced opening is an override and a transition: {entries:?}");
        assert!(matches!(&entries[0].what, What::Transition { to, why, .. } if to == "open" && why.contains("1 ")));
        assert!(matches!(&entries[1].what, What::Override { who, .. } if who == "alice"));
        let registry = registry(&journal);
        open(&registry, "gleif");
        registry.flush_observers();
        assert_eq!(journal.entries(Some("gleif"))[0].id, 3, "ids go on");
        assert_eq!(Journal::in_file(&path).entries(None).len(), 4, "the torn line cost only itself");
    }

    #[test]
    fn the_history_is_bounded_in_memory_and_on_disk() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history");
        let journal = Journal::in_file(&path);
        let event = |service: &str| {
            let at = Timestamp::UNIX_EPOCH;
            let entry = Entry { id: 0, at, service: service.to_owned(), what: What::Reconfigured };
            let mut kept = journal.lock();
            kept.remember(entry.clone());
            kept.write(&entry);
        };
        event("quiet");
        for _ in 0..=OF_ONE {
            event("flapping");
        }
        assert_eq!(journal.entries(Some("flapping")).len(), OF_ONE);
        assert_eq!(journal.entries(Some("quiet")).len(), 1);
        for n in 0..FILE_LINES {
            event(&format!("service {}", n % 100));
        }
        assert_eq!(journal.entries(None).len(), ENTRIES);
        let lines = fs::read_to_string(&path).expect("there").lines().count();
        assert!(lines <= FILE_LINES + 1, "{lines} lines");
    }
}
