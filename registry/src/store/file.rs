//! One file, one line per breaker.
//!
//! A save writes the whole file beside the old one, syncs it to the disk and renames it over the old one. So the path always leads to
//! one complete version. A line that cannot be read affects only its own breaker. One process owns a file; of two processes, the
//! later writer would win.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    error::{Answer, StoreError, StoreErrorKind},
    interface::{Content, Loaded, Record, Store},
    record::Snapshot,
};
use crate::outcome::ServiceName;

/// A larger file is refused.
const LARGEST: u64 = 64 << 20;

/// Keeps breakers in a file.
#[derive(Debug, Clone)]
pub struct FileStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    lines: Mutex<BTreeMap<ServiceName, String>>,
    /// Held while writing, so that a later write has the newer content.
    writing: Mutex<()>,
    /// Counts writes, so that no two share a temporary file.
    writes: AtomicU64,
}

impl FileStore {
    /// A store in the file at `path`. The file need not exist, but its folder must.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let (lines, writing) = Default::default();
        Self { shared: Arc::new(Shared { path: path.into(), lines, writing, writes: AtomicU64::new(0) }) }
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
            let mut lines = self.shared.lines.lock().unwrap_or_else(PoisonError::into_inner);
            for record in records {
                match &record.text {
                    Some(text) => drop(lines.insert(record.service.clone(), text.clone())),
                    None => drop(lines.remove(&record.service)),
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
    fn load(&self) -> Result<Vec<Loaded>, StoreError> {
        self.remove_leftovers();
        let Some(size) = self.size()? else { return Ok(Vec::new()) };
        if size > LARGEST {
            let message = format!("{} is larger than {LARGEST} bytes", self.path.display());
            return Err(StoreError::new(StoreErrorKind::Other, message));
        }
        let bytes = fs::read(&self.path).map_err(|error| store_error("cannot be read", &self.path, &error))?;
        let text = String::from_utf8_lossy(&bytes);
        let loaded: Vec<_> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| {
                let service = Snapshot::service_of(line).map(ServiceName::from);
                Loaded::new(service, Content::Text(line.to_owned()))
            })
            .collect();
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        for Loaded { service, content } in &loaded {
            if let (Some(service), Content::Text(text)) = (service, content)
                && Snapshot::decode(text, None).is_ok()
            {
                lines.insert(service.clone(), text.clone());
            }
        }
        Ok(loaded)
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
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.size()?;
        let temporary = self.beside(self.writes.fetch_add(1, Ordering::Relaxed));
        let written = self.write(&temporary);
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written.map_err(|error| store_error("cannot be written", &self.path, &error))
    }

    fn write(&self, temporary: &Path) -> io::Result<()> {
        let text: String = {
            let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.values().flat_map(|line| [line.as_str(), "\n"]).collect()
        };
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
