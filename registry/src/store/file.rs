//! One file, one line per breaker. The rules are at [`FileStore`].

use std::{
    collections::BTreeMap,
    fs::{self, File, TryLockError},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use super::{
    error::{Answer, StoreError, StoreErrorKind},
    interface::{Content, Loaded, Record, Store},
    record::{Snapshot, Unreadable},
};
use crate::outcome::ServiceName;

/// A larger file is refused.
const LARGEST: u64 = 64 << 20;

/// How often a store asks again for the lock of another one, which may be about to end, and the pause in between.
const HANDOVER_TRIES: u32 = 50;
const HANDOVER_PAUSE: Duration = Duration::from_millis(10);

/// Keeps breakers in a file, one line per breaker.
///
/// * A save writes the whole file beside the old one, syncs it to the disk and renames it over the old one. So the path always
///   leads to one complete version, even if the process is killed.
/// * A line that cannot be read affects only its own breaker. A line of another version of this program stays in the file until
///   its breaker is saved.
/// * Nothing is written before the file was read. So a file that cannot be read loses nothing.
/// * One store owns a file: it holds a lock on `FILE.lock` from its first use until its last clone is dropped. A second store on
///   the same path is refused, in this process or in another, and the error names the process of the first. Where the file system
///   has no locks, the later writer wins.
#[derive(Debug, Clone)]
pub struct FileStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    content: Mutex<FileContent>,
    /// Held while reading and writing, so that a later write has the newer content.
    access: Mutex<Access>,
    /// Counts writes, so that no two share a temporary file.
    writes: AtomicU64,
}

/// What the file should hold.
#[derive(Debug, Default)]
struct FileContent {
    /// `None`: the service was saved without a text before the file was read.
    lines: BTreeMap<ServiceName, Option<String>>,
    /// The file was read: the lines are all that it should hold.
    read: bool,
    /// Counts changes of the lines.
    changes: u64,
}

/// The right to the file.
#[derive(Debug, Default)]
struct Access {
    /// The locked file, from the first use on. The lock ends with the process at the latest.
    lock: Option<File>,
    /// The changes that the file has.
    written: Option<u64>,
}

impl FileStore {
    /// A store in the file at `path`. The file need not exist, but its folder must.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let (content, access) = Default::default();
        Self { shared: Arc::new(Shared { path: path.into(), content, access, writes: AtomicU64::new(0) }) }
    }
}

impl Store for FileStore {
    fn kind(&self) -> &'static str {
        "file"
    }

    fn load<'a>(&'a self, _services: &'a [ServiceName]) -> Answer<'a, Vec<Loaded>> {
        let shared = self.shared.clone();
        Box::pin(blocking(move || shared.load()))
    }

    fn save<'a>(&'a self, records: &'a [Record]) -> Answer<'a, ()> {
        {
            let mut content = self.shared.content();
            content.changes += 1;
            for record in records {
                if content.read && record.text.is_none() {
                    content.lines.remove(&record.service);
                } else {
                    content.lines.insert(record.service.clone(), record.text.clone());
                }
            }
        }
        let shared = self.shared.clone();
        Box::pin(blocking(move || shared.save()))
    }
}

/// Runs work on the disk outside of the runtime's tasks, because a disk may be slow.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(StoreError::new(StoreErrorKind::Other, error.to_string())))
}

impl Shared {
    fn content(&self) -> MutexGuard<'_, FileContent> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn access(&self) -> MutexGuard<'_, Access> {
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn load(&self) -> Result<Vec<Loaded>, StoreError> {
        let mut access = self.access();
        match self.lock(&mut access) {
            Ok(()) => self.remove_leftovers(),
            Err(NoLock::Taken(error)) => return Err(error),
            Err(NoLock::Impossible(_)) => {} // it can be read all the same; a save says what is wrong
        }
        self.read()
    }

    /// Reads the file, and remembers its lines for the next save.
    fn read(&self) -> Result<Vec<Loaded>, StoreError> {
        let text = match self.size()? {
            None => String::new(),
            Some(size) if size > LARGEST => {
                let message = format!("{} is larger than {LARGEST} bytes", self.path.display());
                return Err(StoreError::new(StoreErrorKind::Other, message));
            }
            Some(_) => {
                let bytes = fs::read(&self.path).map_err(|error| store_error("cannot be read", &self.path, &error))?;
                String::from_utf8_lossy(&bytes).into_owned()
            }
        };
        let loaded: Vec<_> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| {
                let service = Snapshot::service_of(line).map(ServiceName::from);
                Loaded::new(service, Content::Text(line.to_owned()))
            })
            .collect();
        let mut content = self.content();
        for Loaded { service, content: line } in &loaded {
            if let (Some(service), Content::Text(text)) = (service, line)
                && matches!(Snapshot::decode(text, None), Ok(_) | Err(Unreadable::Version(_)))
            {
                // What was saved meanwhile is newer.
                content.lines.entry(service.clone()).or_insert_with(|| Some(text.clone()));
            }
        }
        content.lines.retain(|_, line| line.is_some());
        content.read = true;
        Ok(loaded)
    }

    /// Takes the lock on the file, unless this store has it.
    fn lock(&self, access: &mut Access) -> Result<(), NoLock> {
        if access.lock.is_some() {
            return Ok(());
        }
        let path = self.lock_path();
        let impossible = |error: &io::Error| NoLock::Impossible(store_error("cannot be written", &path, error));
        let opened = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = opened.map_err(|error| impossible(&error))?;
        let mut locked = file.try_lock();
        for _ in 0..HANDOVER_TRIES {
            if !matches!(locked, Err(TryLockError::WouldBlock)) {
                break;
            }
            pause();
            locked = file.try_lock();
        }
        match locked {
            Ok(()) => {
                // The name of the owner helps a reader of the next error, and nothing depends on it.
                let _ = file.set_len(0).and_then(|()| write!(file, "process {}", std::process::id()));
            }
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                let _ = file.take(100).read_to_string(&mut owner);
                let owner = if owner.is_empty() { "another store" } else { &owner };
                let message = format!("{} is in use by {owner}: a file has one store", self.path.display());
                return Err(NoLock::Taken(StoreError::new(StoreErrorKind::Denied, message)));
            }
            // A file system without locks: the file works as before.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(impossible(&error)),
        }
        access.lock = Some(file);
        Ok(())
    }

    /// `state` → `state.lock`
    fn lock_path(&self) -> PathBuf {
        self.path.with_file_name(format!("{}.lock", self.path.file_name().unwrap_or_default().to_string_lossy()))
    }

    /// The size of the file; `None` if there is none. Anything else at the path, such as a device, is an error and is not touched.
    fn size(&self) -> Result<Option<u64>, StoreError> {
        match fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(store_error("cannot be read", &self.path, &error)),
            Ok(meta) if meta.is_file() => Ok(Some(meta.len())),
            Ok(_) => {
                let message = format!("{} is not a file", self.path.display());
                Err(StoreError::new(StoreErrorKind::Other, message))
            }
        }
    }

    fn save(&self) -> Result<(), StoreError> {
        let mut access = self.access();
        self.size()?;
        self.lock(&mut access).map_err(NoLock::into_error)?;
        if !self.content().read {
            self.read()?;
        }
        let (text, changes) = {
            let content = self.content();
            let lines = content.lines.values().flatten();
            (lines.flat_map(|line| [line.as_str(), "\n"]).collect::<String>(), content.changes)
        };
        if access.written == Some(changes) {
            return Ok(()); // a save that came later was faster, and wrote this one too
        }
        let temporary = self.beside(self.writes.fetch_add(1, Ordering::Relaxed));
        let written = self.write(&temporary, &text);
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        access.written = written.is_ok().then_some(changes);
        written.map_err(|error| store_error("cannot be written", &self.path, &error))
    }

    fn write(&self, temporary: &Path, text: &str) -> io::Result<()> {
        let mut file = File::create(temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        drop(file);
        fs::rename(temporary, &self.path)?;
        // The rename is durable once the folder is synced. Some file systems cannot sync a folder.
        let _ = File::open(folder(&self.path)).and_then(|folder| folder.sync_all());
        Ok(())
    }

    /// `state` → `state.tmp-1234-5`
    fn beside(&self, write: u64) -> PathBuf {
        let mut name = self.temporary_prefix();
        name.push_str(&format!("{}-{write}", std::process::id()));
        self.path.with_file_name(name)
    }

    fn temporary_prefix(&self) -> String {
        format!("{}.tmp-", self.path.file_name().unwrap_or_default().to_string_lossy())
    }

    /// Removes the temporary files of processes that were killed while they wrote.
    fn remove_leftovers(&self) {
        let prefix = self.temporary_prefix();
        let entries = fs::read_dir(folder(&self.path)).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Why this store has no lock on its file.
enum NoLock {
    /// Another store has it.
    Taken(StoreError),
    /// The lock file cannot be made.
    Impossible(StoreError),
}

impl NoLock {
    fn into_error(self) -> StoreError {
        match self {
            Self::Taken(error) | Self::Impossible(error) => error,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "on a thread for blocking work, and no clock of ours ends another store")]
fn pause() {
    thread::sleep(HANDOVER_PAUSE);
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn store_error(what: &str, path: &Path, error: &io::Error) -> StoreError {
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied => StoreErrorKind::Denied,
        io::ErrorKind::ReadOnlyFilesystem => StoreErrorKind::ReadOnly,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => StoreErrorKind::Full,
        io::ErrorKind::NotFound => StoreErrorKind::Unreachable,
        _ => StoreErrorKind::Other,
    };
    StoreError::new(kind, format!("{} {what}: {error}", path.display()))
}
