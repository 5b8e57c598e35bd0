//! The last good copy of each file that a source publishes as a whole, such as a register of a whole sector.
//!
//! A file is believed when its checksum is right, and from then on it answers until a newer one is believed: a download that
//! breaks off or does not match leaves the copy as it was. Where there is a folder, the copy outlives the process.

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

use crate::classify::Trouble;

/// A file that was believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copy {
    /// What the source calls this edition.
    pub version: String,
    /// The date of the edition, as the source gives it, else of the download.
    pub date: Timestamp,
    /// The file.
    pub bytes: Arc<[u8]>,
}

/// The last good copies, by name. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Files(Arc<Shelf>);

#[derive(Debug, Default)]
struct Shelf {
    folder: Option<PathBuf>,
    places: Mutex<HashMap<&'static str, Arc<tokio::sync::Mutex<Place>>>>,
}

/// The place of one file. Whoever holds it is the only one who looks for a newer edition.
#[derive(Debug, Default)]
pub struct Place {
    copy: Option<Copy>,
    /// When the source last confirmed that the copy is its newest edition.
    checked: Option<Timestamp>,
    /// The source's own mark of the announcement that was confirmed.
    mark: Option<String>,
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

impl Files {
    /// Copies in memory and, if given, in a folder.
    #[must_use]
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self(Arc::new(Shelf { folder, ..Shelf::default() }))
    }

    /// The place of a file. Waits for whoever is looking for a newer edition at the moment.
    pub async fn place(&self, name: &'static str) -> OwnedMutexGuard<Place> {
        let place = self.0.places.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default().clone();
        let mut place = place.lock_owned().await;
        if !place.opened {
            place.opened = true;
            place.path = self.0.folder.as_ref().map(|folder| folder.join(name));
            if let Some(path) = place.path.clone() {
                let read = tokio::task::spawn_blocking(move || std::fs::read(path).ok().and_then(|b| unlabel(&b)));
                place.copy = read.await.ok().flatten();
            }
        }
        place
    }
}

impl Place {
    /// The last good copy.
    #[must_use]
    pub const fn copy(&self) -> Option<&Copy> {
        self.copy.as_ref()
    }

    /// The last good copy, where nothing else can answer.
    ///
    /// # Errors
    /// If there is none.
    pub fn last(&self) -> Result<Copy, Trouble> {
        self.copy.clone().ok_or_else(|| Trouble::unavailable("has left no earlier copy"))
    }

    /// True if there is no need to ask the source whether there is a newer edition.
    #[must_use]
    pub fn checked_within(&self, time: Duration, now: Timestamp) -> bool {
        let age = self.checked.map(|at| now.duration_since(at));
        self.copy.is_some() && age.is_some_and(|age| Duration::try_from(age).is_ok_and(|age| age <= time))
    }

    /// What to ask with whether the announcement of the copy still stands; nothing without a copy.
    #[must_use]
    pub fn mark(&self) -> Option<&str> {
        self.mark.as_deref().filter(|_| self.copy.is_some())
    }

    /// The source has confirmed that the copy is its newest edition.
    pub const fn confirm(&mut self, now: Timestamp) {
        self.checked = Some(now);
    }

    /// The mark of the announcement that led to the copy.
    pub fn marked(&mut self, mark: Option<String>) {
        self.mark = mark;
    }

    /// Another edition was believed. A folder that cannot be written to is a warning and nothing worse.
    pub async fn replace(&mut self, copy: Copy, now: Timestamp) {
        self.copy = Some(copy.clone());
        self.mark = None;
        self.confirm(now);
        let Some(path) = self.path.clone() else { return };
        let written = tokio::task::spawn_blocking(move || super::store(&path, &label(&copy)?)).await;
        if let Ok(Err(error)) = written {
            tracing::warn!(%error, "a copy could not be kept in the folder");
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

fn label(copy: &Copy) -> std::io::Result<Vec<u8>> {
    let label = Label { version: copy.version.clone(), date: copy.date, sha256: sha256(&copy.bytes) };
    let mut whole = serde_json::to_vec(&label)?;
    whole.push(b'\n');
    whole.extend_from_slice(&copy.bytes);
    Ok(whole)
}

/// A copy from a file of ours. One that is damaged is none.
fn unlabel(whole: &[u8]) -> Option<Copy> {
    let end = whole.iter().position(|byte| *byte == b'\n')?;
    let label: Label = serde_json::from_slice(&whole[..end]).ok()?;
    let bytes = &whole[end + 1..];
    (sha256(bytes) == label.sha256).then(|| Copy { version: label.version, date: label.date, bytes: bytes.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(version: &str) -> Copy {
        let bytes = format!("edition\n{version}").into_bytes();
        Copy { version: version.to_owned(), date: Timestamp::UNIX_EPOCH, bytes: bytes.into() }
    }

    #[tokio::test]
    async fn a_copy_answers_until_a_newer_one_is_believed() {
        let (files, now) = (Files::default(), Timestamp::UNIX_EPOCH);
        assert!(files.place("x").await.copy().is_none());
        files.place("x").await.replace(copy("1"), now).await;
        let place = files.place("x").await;
        assert_eq!(place.copy().map(|copy| copy.version.as_str()), Some("1"));
        let day = Duration::from_secs(86_400);
        assert!(place.checked_within(day, now));
        assert!(!place.checked_within(day, now.checked_add(day * 2).expect("a time")));
        assert!(files.place("y").await.copy().is_none());
    }

    #[tokio::test]
    async fn a_copy_outlives_the_process_unless_it_is_damaged() {
        let folder = std::env::temp_dir().join(format!("osint-files-{}", std::process::id()));
        let now = Timestamp::UNIX_EPOCH;
        Files::new(Some(folder.clone())).place("x").await.replace(copy("1"), now).await;
        let reborn = Files::new(Some(folder.clone()));
        let place = reborn.place("x").await;
        assert_eq!(place.copy(), Some(&copy("1")));
        assert!(!place.checked_within(Duration::MAX, now), "but it may be an old one");
        let mut whole = std::fs::read(folder.join("x")).expect("a file");
        whole.pop();
        std::fs::write(folder.join("x"), whole).expect("damage");
        assert!(Files::new(Some(folder.clone())).place("x").await.copy().is_none());
        std::fs::remove_dir_all(folder).expect("cleaned up");
    }
}
