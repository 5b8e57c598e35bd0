//! The secret that an operator's requests carry, and the file that hands it to commands on the same machine.
//!
//! The file is `$XDG_RUNTIME_DIR/osint-UID/PORT.token`, or in the folder of temporary files. Folder and file are readable by the
//! worker's own user only. It lives as long as the worker.

use std::{
    env, fmt,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    str::FromStr,
};

use ring::rand::{SecureRandom, SystemRandom};

/// Fewer bytes can be guessed.
const SHORTEST: usize = 16;

/// A secret. Its `Debug` form does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The secret itself.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// A random one of 32 bytes; `None` if the system has no randomness.
    fn random() -> Option<Self> {
        let mut bytes = [0_u8; 32];
        SystemRandom::new().fill(&mut bytes).ok()?;
        Some(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }
}

impl FromStr for Token {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() < SHORTEST || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("expected a secret of at least {SHORTEST} visible ASCII characters"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

/// The file with a random token; dropping it removes the file.
#[derive(Debug)]
pub(super) struct TokenFile {
    path: PathBuf,
    pub(super) token: Token,
}

impl TokenFile {
    /// Writes a new token for the server on this port.
    pub(super) fn create(port: u16) -> io::Result<Self> {
        let folder = folder();
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => private(&folder)?,
        }
        let token = Token::random().ok_or_else(|| io::Error::other("the system has no randomness"))?;
        let path = file(&folder, port);
        // An earlier worker that was killed may have left one.
        let _ = fs::remove_file(&path);
        let mut opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        opened.write_all(token.secret().as_bytes())?;
        Ok(Self { path, token })
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        // A later worker on the same port has a file of its own under this name.
        if fs::read_to_string(&self.path).is_ok_and(|text| text == self.token.0) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The token of the worker that listens on this port of this machine, if it runs as the same user.
#[must_use]
pub fn local(port: u16) -> Option<Token> {
    let folder = folder();
    private(&folder).ok()?;
    fs::read_to_string(file(&folder, port)).ok()?.parse().ok()
}

fn folder() -> PathBuf {
    let user = user().map(|id| id.to_string()).or_else(|| env::var("USER").ok()).unwrap_or_default();
    let base = env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    base.map_or_else(env::temp_dir, PathBuf::from).join(format!("osint-{user}"))
}

fn file(folder: &Path, port: u16) -> PathBuf {
    folder.join(format!("{port}.token"))
}

/// The user that this process runs as; `None` where the system does not show it in `/proc`.
fn user() -> Option<u32> {
    fs::metadata("/proc/self").ok().map(|meta| meta.uid())
}

/// Fails if others could have put files into the folder: it is a link, not ours, or open to others.
fn private(folder: &Path) -> io::Result<()> {
    let meta = fs::symlink_metadata(folder)?;
    let ours = user().is_none_or(|user| user == meta.uid());
    if meta.is_dir() && ours && meta.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(io::Error::other(format!("{} must be a folder that only this user can open (mode 700)", folder.display())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_is_long_and_hidden() {
        for bad in ["", "short", "0123456789abcde", "with a space in it, and long"] {
            assert!(bad.parse::<Token>().is_err(), "{bad}");
        }
        let token: Token = " 0123456789abcdef\n".parse().expect("long enough");
        assert_eq!(token.secret(), "0123456789abcdef");
        assert!(!format!("{token:?}").contains("0123"));
    }

    #[test]
    fn the_file_is_private_and_ends_with_the_server() {
        let file = TokenFile::create(1).expect("a folder for temporary files");
        let mode = fs::metadata(&file.path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(local(1), Some(file.token.clone()));
        let again = TokenFile::create(1).expect("over what is left");
        drop(file);
        assert_eq!(local(1), Some(again.token.clone()), "the newer one stays");
        drop(again);
        assert_eq!(local(1), None);
    }

    #[test]
    fn a_folder_that_others_can_open_is_not_trusted() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("ours");
        assert!(private(folder.path()).is_err());
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("ours");
        assert!(private(folder.path()).is_ok());
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).expect("a link");
        assert!(private(&link).is_err());
    }
}
