//! Files that must never be seen half-written.

use std::{io, io::Write, path::Path};

use tempfile::NamedTempFile;

/// Writes a file beside its place, flushes it to the disk and moves it there. The file and the folders that are made for it
/// are for the owner alone.
///
/// # Errors
/// As the file system's. The file that was there stays as it was.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    make_folder(folder)?;
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Makes a folder, and those above it, for the owner alone.
///
/// # Errors
/// As the file system's.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
