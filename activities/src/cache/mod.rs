//! Keeps earlier answers, for two uses that must not be mixed up.
//!
//! An answer that is *still good* saves a request: the row of an operation says how long ([`Operation::fresh`]). An old answer
//! that is *better than none* is the last fallback: `breakers.yaml` says how old (`cache: { max_age: 30d }`), and the finding
//! says `cached` and its age. The engine in [`activity`](crate::activity) asks this module before and after the source.
//!
//! Only whole answers are kept. They are bounded in number and size, in memory and, where `OSINT_CACHE` names one, in a
//! folder that outlives the process and that several workers may share. Answers name people; names of files do not.

use std::{
    collections::{HashMap, VecDeque},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use jiff::Timestamp;
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use crate::{
    editions::hex,
    files,
    model::{Facts, Status, Subject},
    spec::{Answer, Need, Operation},
};

/// An answer that takes more than this, written as JSON, is not kept.
const LARGEST: usize = 1_000_000;

/// All answers in memory together.
const MEMORY: usize = 64_000_000;

/// Files in the folder; the oldest go first.
const FILES: usize = 20_000;

/// After so long a file goes in any case: data about people must not stay for ever.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

/// The folder is looked through at the first write and after this many more.
const SWEEP: usize = 500;

/// What was asked about whom, without saying so: a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

/// An answer and when it was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// When the source gave it.
    pub at: Timestamp,
    /// The date that the source gave for its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Timestamp>,
    /// The facts of the answer.
    pub facts: Facts,
}

/// Answers given earlier. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Answers(Arc<Store>);

#[derive(Debug, Default)]
struct Store {
    folder: Option<PathBuf>,
    memory: Mutex<Memory>,
    writes: AtomicUsize,
}

#[derive(Debug, Default)]
struct Memory {
    entries: HashMap<Key, Arc<[u8]>>,
    /// In the order in which they came; a key that was replaced stands at its first place.
    order: VecDeque<Key>,
    bytes: usize,
}

impl Key {
    /// The key of an operation about a subject. Two descriptions of the same company differ in what they know, so it is
    /// known by its number alone where it has one. What the question starts from belongs to the key, too; where that is an
    /// address or a website, it is the whole question, because the answer is not about the company.
    #[must_use]
    pub fn of(operation: &Operation, subject: &Subject) -> Self {
        let company = [(Need::Id, &subject.id), (Need::Lei, &subject.lei), (Need::Vat, &subject.vat)];
        let company = company.into_iter().chain([(Need::Name, &subject.name)]);
        let known = company.filter_map(|(need, value)| Some((need, value.clone()?))).next();
        let start = operation.needs.iter().find_map(|need| Some((*need, need.of(subject)?)));
        let elsewhere = matches!(start, Some((Need::Address | Need::Website, _)));
        let mut digest = Context::new(&SHA256);
        let mut add = |part: &str| {
            digest.update(&(part.len() as u64).to_be_bytes());
            digest.update(part.as_bytes());
        };
        add(operation.name);
        add(subject.country.as_str());
        for (need, value) in known.filter(|_| !elsewhere).into_iter().chain(start) {
            add(need.as_str());
            add(&value.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase());
        }
        let mut key = [0; 32];
        key.copy_from_slice(digest.finish().as_ref());
        Self(key)
    }

    fn file(self) -> String {
        hex(&self.0) + ".json"
    }
}

impl Kept {
    /// How old the knowledge is: the source's own date, or the time of the answer.
    #[must_use]
    pub fn date(&self) -> Timestamp {
        self.as_of.unwrap_or(self.at)
    }
}

impl Answers {
    /// Answers in memory and, if given, in a folder. It is made when there is something to put into it.
    #[must_use]
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self(Arc::new(Store { folder, ..Store::default() }))
    }

    /// Keeps an answer, if it is a whole one. A folder that cannot be written to is a warning and nothing worse.
    pub async fn keep(&self, key: Key, answer: &Answer, now: Timestamp) {
        if answer.status != Status::Complete {
            return;
        }
        let kept = Kept { at: now, as_of: answer.as_of, facts: answer.facts.clone() };
        let Ok(bytes) = serde_json::to_vec(&kept) else { return };
        if bytes.len() > LARGEST {
            return;
        }
        let bytes: Arc<[u8]> = bytes.into();
        self.0.memory().put(key, bytes.clone());
        let Some(folder) = self.0.folder.clone() else { return };
        let nth = self.0.writes.fetch_add(1, Ordering::Relaxed);
        let work = move || {
            if nth.is_multiple_of(SWEEP) {
                sweep(&folder)?;
            }
            files::write(&folder.join(key.file()), &bytes)
        };
        if let Ok(Err(error)) = tokio::task::spawn_blocking(work).await {
            tracing::warn!(%error, "an answer could not be kept in the folder");
        }
    }

    /// The answer of that key, if there is one and it is not older than that. A file that does not read is no answer.
    pub async fn find(&self, key: Key, max_age: Duration, now: Timestamp) -> Option<Kept> {
        let young = |kept: &Kept| Duration::try_from(now.duration_since(kept.at)).is_ok_and(|age| age <= max_age);
        let read = |bytes: &[u8]| serde_json::from_slice::<Kept>(bytes).ok().filter(young);
        let in_memory = self.0.memory().entries.get(&key).cloned();
        if let Some(kept) = in_memory.and_then(|bytes| read(&bytes)) {
            return Some(kept);
        }
        let path = self.0.folder.as_ref()?.join(key.file());
        let bytes = tokio::fs::read(path).await.ok().filter(|bytes| bytes.len() <= LARGEST)?;
        read(&bytes)
    }
}

impl Store {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    fn put(&mut self, key: Key, bytes: Arc<[u8]>) {
        self.bytes += bytes.len();
        match self.entries.insert(key, bytes) {
            Some(former) => self.bytes -= former.len(),
            None => self.order.push_back(key),
        }
        while self.bytes > MEMORY {
            let Some(gone) = self.order.pop_front().and_then(|oldest| self.entries.remove(&oldest)) else { break };
            self.bytes -= gone.len();
        }
    }
}

/// Takes out what is too old or too much.
fn sweep(folder: &Path) -> io::Result<()> {
    let ours = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.len() > 64 && name.is_char_boundary(64) && name[..64].bytes().all(|b| b.is_ascii_hexdigit())
    };
    files::make_folder(folder)?;
    let mut files: Vec<(SystemTime, PathBuf)> = std::fs::read_dir(folder)?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.metadata().ok()?.modified().ok()?, entry.path())).filter(|(_, path)| ours(path))
        })
        .collect();
    files.sort_unstable();
    let surplus = files.len().saturating_sub(FILES);
    let old = |at: &SystemTime| at.elapsed().is_ok_and(|age| age > LONGEST);
    for (nth, (at, path)) in files.iter().enumerate() {
        if nth < surplus || old(at) {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{catalog, model::Company};

    const DAY: Duration = Duration::from_secs(86_400);

    fn key(operation: &str, subject: &Subject) -> Key {
        Key::of(catalog::operation(operation).expect(operation).operation, subject)
    }

    fn company(id: &str, name: &str) -> Subject {
        let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Subject { id: known(id), name: known(name), ..Subject::new("NO".parse().expect("a country")) }
    }

    fn answer(name: &str) -> Answer {
        let company = Company { name: Some(name.to_owned()), ..Company::default() };
        Facts { companies: vec![company], ..Facts::default() }.into()
    }

    #[test]
    fn a_key_is_the_question_and_not_how_much_else_is_known() {
        let (bare, more) = (company("923609016", ""), company("923609016", "EQUINOR ASA"));
        assert_eq!(key("no_brreg.entity", &bare), key("no_brreg.entity", &more));
        assert_ne!(key("no_brreg.entity", &bare), key("no_brreg.roles", &bare));
        assert_ne!(key("no_brreg.entity", &bare), key("no_brreg.entity", &company("982463718", "")));
        // Companies of one name differ by their numbers.
        assert_ne!(
            key("tavily.adverse_media", &more),
            key("tavily.adverse_media", &company("982463718", "EQUINOR ASA"))
        );
        // Where an address is does not depend on who lives there, or on how it is spaced.
        let at = |subject: Subject, address: &str| Subject { address: Some(address.into()), ..subject };
        let place = key("nominatim.search", &at(bare, "Forusbeen 50, Stavanger"));
        assert_eq!(place, key("nominatim.search", &at(company("1", "OTHER"), " forusbeen  50, STAVANGER")));
        assert_ne!(place, key("nominatim.search", &at(more, "Forusbeen 51, Stavanger")));
    }

    #[tokio::test]
    async fn answers_have_an_age_and_only_whole_ones_are_kept() {
        let (answers, key) = (Answers::default(), key("no_brreg.entity", &company("923609016", "")));
        let now = Timestamp::UNIX_EPOCH;
        answers.keep(key, &Answer { status: Status::Partial, ..answer("EQUINOR ASA") }, now).await;
        assert_eq!(answers.find(key, DAY, now).await, None);
        answers.keep(key, &answer("EQUINOR ASA").dated(Some(now)), now).await;
        let later = |age: Duration| now.checked_add(age).expect("a time");
        let kept = answers.find(key, DAY, later(DAY)).await.expect("kept");
        assert_eq!((kept.date(), kept.facts), (now, answer("EQUINOR ASA").facts));
        assert_eq!(answers.find(key, DAY, later(DAY + Duration::from_millis(1))).await, None);
    }

    #[tokio::test]
    async fn a_folder_outlives_the_process_without_names_in_it() {
        let folder = std::env::temp_dir().join(format!("osint-cache-{}", std::process::id()));
        let (now, key) = (Timestamp::now(), key("no_brreg.entity", &company("", "EQUINOR ASA")));
        Answers::new(Some(folder.clone())).keep(key, &answer("EQUINOR ASA"), now).await;
        let names: Vec<_> = std::fs::read_dir(&folder).expect("a folder").filter_map(Result::ok).collect();
        assert_eq!(names.len(), 1, "and nothing half-written beside it");
        assert_eq!(names[0].file_name().to_str(), Some(key.file().as_str()));
        let reborn = Answers::new(Some(folder.clone()));
        assert!(reborn.find(key, DAY, now).await.is_some());
        std::fs::write(folder.join(key.file()), b"{half").expect("damage");
        assert_eq!(reborn.find(key, DAY, now).await, None, "damage is no answer and no panic");
        std::fs::remove_dir_all(folder).expect("cleaned up");
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_go_first() {
        let mut memory = Memory::default();
        let key = |n: u8| Key([n; 32]);
        let large: Arc<[u8]> = vec![0; MEMORY / 3].into();
        for n in [0, 1, 1, 2, 3] {
            memory.put(key(n), large.clone());
            assert!(memory.bytes <= MEMORY);
        }
        let left: Vec<_> = (0..4).filter(|n| memory.entries.contains_key(&key(*n))).collect();
        assert_eq!(left, [1, 2, 3]);
    }
}
