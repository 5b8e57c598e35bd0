//! The last good edition of each file that a source publishes as a whole, such as the register of a sector.
//!
//! A source downloads the file through its session and offers it here. An edition replaces the last one only when its
//! checksum is right, so a broken download changes nothing. With a folder, editions outlive the process.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedMutexGuard;

use crate::error::SourceError;

/// A file that was believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edition {
    /// What the source calls this edition.
    pub version: String,
    /// The date of the edition, as the source gives it, else of the download.
    pub date: Timestamp,
    /// The file.
    pub bytes: Arc<[u8]>,
}

/// The last good editions, by name. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct EditionCache(Arc<Slots>);

#[derive(Debug, Default)]
struct Slots {
    folder: Option<PathBuf>,
    slots: Mutex<HashMap<&'static str, Arc<tokio::sync::Mutex<EditionSlot>>>>,
}

/// The slot of one file. Its lock lets one task at a time look for a newer edition.
#[derive(Debug, Default)]
pub struct EditionSlot {
    edition: Option<Edition>,
    /// When the source last confirmed that the edition is its newest edition.
    checked: Option<Timestamp>,
    /// The source's own etag of the announcement that was confirmed.
    etag: Option<String>,
    path: Option<PathBuf>,
    /// The folder has been looked into.
    opened: bool,
}

/// What stands before the bytes in a file of ours, on a line of its own.
#[derive(Serialize, Deserialize)]
struct Label {
    version: String,
    date: Timestamp,
    sha256: String,
}

impl EditionCache {
    /// Copies in memory and, if given, in a folder.
    #[must_use]
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self(Arc::new(Slots { folder, ..Slots::default() }))
    }

    /// The slot of a file. Waits while another task looks for a newer edition.
    pub async fn slot(&self, name: &'static str) -> OwnedMutexGuard<EditionSlot> {
        let slot = self.0.slots.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default().clone();
        let mut slot = slot.lock_owned().await;
        if !slot.opened {
            slot.opened = true;
            slot.path = self.0.folder.as_ref().map(|folder| folder.join(name));
            if let Some(path) = slot.path.clone() {
                let read = tokio::task::spawn_blocking(move || std::fs::read(path).ok().and_then(|b| unlabel(&b)));
                slot.edition = read.await.ok().flatten();
            }
        }
        slot
    }
}

impl EditionSlot {
    /// The last good edition.
    #[must_use]
    pub const fn edition(&self) -> Option<&Edition> {
        self.edition.as_ref()
    }

    /// The last good edition, where nothing else can answer.
    ///
    /// # Errors
    /// If there is none.
    pub fn last(&self) -> Result<Edition, SourceError> {
        self.edition.clone().ok_or_else(|| SourceError::unavailable("has left no earlier edition"))
    }

    /// True if there is no need to ask the source whether there is a newer edition.
    #[must_use]
    pub fn checked_within(&self, time: Duration, now: Timestamp) -> bool {
        let age = self.checked.map(|at| now.duration_since(at));
        self.edition.is_some() && age.is_some_and(|age| Duration::try_from(age).is_ok_and(|age| age <= time))
    }

    /// What to ask with whether the announcement of the edition still stands; nothing without an edition.
    #[must_use]
    pub fn etag(&self) -> Option<&str> {
        self.etag.as_deref().filter(|_| self.edition.is_some())
    }

    /// The source has confirmed that the edition is its newest edition.
    pub const fn confirm(&mut self, now: Timestamp) {
        self.checked = Some(now);
    }

    /// The etag of the announcement that led to the edition.
    pub fn confirmed_as(&mut self, etag: Option<String>) {
        self.etag = etag;
    }

    /// Another edition was believed. A folder that cannot be written to is a warning and nothing worse.
    pub async fn replace(&mut self, edition: Edition, now: Timestamp) {
        self.edition = Some(edition.clone());
        self.etag = None;
        self.confirm(now);
        let Some(path) = self.path.clone() else { return };
        let written = tokio::task::spawn_blocking(move || crate::files::write(&path, &label(&edition)?)).await;
        if let Ok(Err(error)) = written {
            tracing::warn!(%error, "a edition could not be kept in the folder");
        }
    }

    /// Time has passed since the source was asked.
    #[cfg(test)]
    pub(crate) const fn forget_check(&mut self) {
        self.checked = None;
    }
}

/// Bytes in hexadecimal digits, as checksums are published.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The SHA-1 of a file. It tells a broken download from a whole one, and nothing about who made it.
#[must_use]
pub fn sha1(bytes: &[u8]) -> String {
    hex(digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref())
}

/// The SHA-256 of a file.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

fn label(edition: &Edition) -> std::io::Result<Vec<u8>> {
    let label = Label { version: edition.version.clone(), date: edition.date, sha256: sha256(&edition.bytes) };
    let mut whole = serde_json::to_vec(&label)?;
    whole.push(b'\n');
    whole.extend_from_slice(&edition.bytes);
    Ok(whole)
}

/// A edition from a file of ours. One that is damaged is none.
fn unlabel(whole: &[u8]) -> Option<Edition> {
    let end = whole.iter().position(|byte| *byte == b'\n')?;
    let label: Label = serde_json::from_slice(&whole[..end]).ok()?;
    let bytes = &whole[end + 1..];
    (sha256(bytes) == label.sha256).then(|| Edition { version: label.version, date: label.date, bytes: bytes.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edition(version: &str) -> Edition {
        let bytes = format!("edition\n{version}").into_bytes();
        Edition { version: version.to_owned(), date: Timestamp::UNIX_EPOCH, bytes: bytes.into() }
    }

    #[tokio::test]
    async fn a_copy_answers_until_a_newer_one_is_believed() {
        let (files, now) = (EditionCache::default(), Timestamp::UNIX_EPOCH);
        assert!(files.slot("x").await.edition().is_none());
        files.slot("x").await.replace(edition("1"), now).await;
        let slot = files.slot("x").await;
        assert_eq!(slot.edition().map(|edition| edition.version.as_str()), Some("1"));
        let day = Duration::from_secs(86_400);
        assert!(slot.checked_within(day, now));
        assert!(!slot.checked_within(day, now.checked_add(day * 2).expect("a time")));
        assert!(files.slot("y").await.edition().is_none());
    }

    #[tokio::test]
    async fn a_copy_outlives_the_process_unless_it_is_damaged() {
        let folder = std::env::temp_dir().join(format!("osint-files-{}", std::process::id()));
        let now = Timestamp::UNIX_EPOCH;
        EditionCache::new(Some(folder.clone())).slot("x").await.replace(edition("1"), now).await;
        let reborn = EditionCache::new(Some(folder.clone()));
        let slot = reborn.slot("x").await;
        assert_eq!(slot.edition(), Some(&edition("1")));
        assert!(!slot.checked_within(Duration::MAX, now), "but it may be an old one");
        let mut whole = std::fs::read(folder.join("x")).expect("a file");
        whole.pop();
        std::fs::write(folder.join("x"), whole).expect("damage");
        assert!(EditionCache::new(Some(folder.clone())).slot("x").await.edition().is_none());
        std::fs::remove_dir_all(folder).expect("cleaned up");
    }
}
