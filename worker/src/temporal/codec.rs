//! Encrypts everything that workflows and activities pass through the server.
//!
//! A Temporal server keeps the input and the result of every workflow and activity, and shows them in its UI. Here they name
//! companies and people. With a key, only holders of the key can read what the server stores:
//!
//! * Each payload is encrypted whole with AES-256-GCM under a fresh random nonce. Its metadata keep the *id* of the key, in
//!   the form that Temporal's own encryption samples use (`encoding: binary/encrypted`, `encryption-key-id`).
//! * Messages and stack traces of failures travel as payloads too, see [`Codec::converter`]. A failure's *type* stays
//!   readable: the server needs it to decide about retries.
//! * To rotate, put a new key in front: the first key encrypts, every key decrypts. Drop the old key when the server no
//!   longer retains anything encrypted with it. Random nonces are safe for about four billion payloads per key.
//!
//! A payload that is not encrypted is read as it is, so a worker with a new key can finish older workflows. Encryption
//! therefore hides what is on the server, but does not prove who wrote it.

use std::{collections::BTreeMap, fmt, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use futures::{FutureExt, future::BoxFuture};
use prost::Message;
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    rand::{SecureRandom, SystemRandom},
};
use temporalio_common::{
    data_converters::{
        DataConverter, DefaultFailureConverter, PayloadCodec, PayloadConversionError, PayloadConverter,
        SerializationContextData,
    },
    protos::temporal::api::common::v1::Payload,
};

use crate::error::CliError;

/// The variable with the keys: `ID:BASE64[,ID:BASE64…]`, each of 32 bytes.
pub const KEYS: &str = "OSINT_CODEC_KEY";

/// The variable with the path of a file that holds the same.
pub const KEYS_FILE: &str = "OSINT_CODEC_KEY_FILE";

const ENCODING: &str = "encoding";
const ENCRYPTED: &[u8] = b"binary/encrypted";
const KEY_ID: &str = "encryption-key-id";

/// Longest id of a key, in letters. Everyone with access to the server can read the id.
const MAX_ID: usize = 64;

/// The keys. Without keys, payloads are sent as they are, and reading an encrypted one fails with the missing key's id.
#[derive(Clone, Default)]
pub struct Codec {
    ring: Arc<Ring>,
}

#[derive(Default)]
struct Ring {
    keys: Vec<(String, LessSafeKey)>,
}

/// Why keys cannot be used. The text never contains a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyError(String);

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a payload cannot be encrypted or decrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodecError {
    /// It was encrypted with a key that is not here.
    UnknownKey {
        /// The id of the key it needs.
        needed: String,
        /// The ids of the keys that are here.
        present: Vec<String>,
    },
    /// It was cut, changed, or encrypted with another key of the same id.
    Tampered {
        /// The id of the key.
        key: String,
    },
    /// The system gives no random numbers.
    NoRandom,
    /// It is longer than AES-GCM can encrypt.
    TooLong {
        /// Its length in bytes.
        bytes: usize,
    },
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKey { needed, present } if present.is_empty() => {
                write!(f, "the payload is encrypted with key '{needed}' and no key is set: see {KEYS}")
            }
            Self::UnknownKey { needed, present } => {
                write!(f, "the payload is encrypted with key '{needed}', {KEYS} has only '{}'", present.join("', '"))
            }
            Self::Tampered { key } => write!(
                f,
                "the payload cannot be decrypted with key '{key}': it was changed, or another key of that id encrypted it"
            ),
            Self::NoRandom => f.write_str("the system gives no random numbers, so nothing can be encrypted"),
            Self::TooLong { bytes } => write!(f, "a payload of {bytes} bytes is too long to be encrypted"),
        }
    }
}

impl std::error::Error for CodecError {}

impl From<CodecError> for PayloadConversionError {
    fn from(error: CodecError) -> Self {
        Self::EncodingError(Box::new(error))
    }
}

impl Codec {
    /// The keys that the environment names, which may be none.
    ///
    /// # Errors
    /// When they cannot be used. The text names the variable and never a key.
    pub fn from_env() -> Result<Self, CliError> {
        Self::read(|name| std::env::var(name).ok())
    }

    /// As [`Codec::from_env`], with `lookup` in place of the environment.
    ///
    /// # Errors
    /// As [`Codec::from_env`].
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, CliError> {
        let value = |name| lookup(name).filter(|value| !value.trim().is_empty());
        let hint = "32 random bytes with a name: `echo \"2026-01:$(openssl rand -base64 32)\"`";
        let refused = |name: &str, why: &dyn fmt::Display| CliError::user(format!("{name}: {why}")).hint(hint);
        match (value(KEYS), value(KEYS_FILE)) {
            (None, None) => Ok(Self::default()),
            (Some(_), Some(_)) => {
                Err(CliError::user(format!("{KEYS} and {KEYS_FILE} are both set")).hint("unset one of them"))
            }
            (Some(keys), None) => keys.parse().map_err(|error| refused(KEYS, &error)),
            (None, Some(file)) => match std::fs::read_to_string(&file) {
                Ok(keys) => keys.parse().map_err(|error| refused(KEYS_FILE, &error)),
                Err(error) => Err(CliError::user(format!("{KEYS_FILE}: cannot read {file}: {error}"))),
            },
        }
    }

    /// The ids of the keys; the first encrypts.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.ring.keys.iter().map(|(id, _)| id.as_str())
    }

    /// A client's data converter with this codec. With a key, it encrypts the texts of failures too.
    #[must_use]
    pub fn converter(&self) -> DataConverter {
        let failures = DefaultFailureConverter::new(!self.ring.keys.is_empty());
        DataConverter::new(PayloadConverter::default(), failures, self.clone())
    }
}

impl Ring {
    fn encrypt(&self, payload: Payload) -> Result<Payload, CodecError> {
        let Some((id, key)) = self.keys.first() else { return Ok(payload) };
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| CodecError::NoRandom)?;
        let mut sealed = payload.encode_to_vec();
        let bytes = sealed.len();
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(id.as_bytes()), &mut sealed)
            .map_err(|_| CodecError::TooLong { bytes })?;
        let metadata = [(ENCODING, ENCRYPTED), (KEY_ID, id.as_bytes())];
        let metadata = metadata.map(|(name, value)| (name.to_owned(), value.to_vec())).into();
        Ok(Payload { metadata, data: [nonce.as_slice(), &sealed].concat(), ..Payload::default() })
    }

    fn decrypt(&self, payload: Payload) -> Result<Payload, CodecError> {
        if payload.metadata.get(ENCODING).is_none_or(|encoding| encoding != ENCRYPTED) {
            return Ok(payload);
        }
        let id = payload.metadata.get(KEY_ID).map(|id| String::from_utf8_lossy(id).into_owned()).unwrap_or_default();
        let Some((_, key)) = self.keys.iter().find(|(known, _)| *known == id) else {
            let present = self.keys.iter().map(|(id, _)| id.clone()).collect();
            return Err(CodecError::UnknownKey { needed: id, present });
        };
        let tampered = || CodecError::Tampered { key: id.clone() };
        let (nonce, sealed) = payload.data.split_first_chunk::<NONCE_LEN>().ok_or_else(tampered)?;
        let mut plain = sealed.to_vec();
        let plain = key
            .open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(id.as_bytes()), &mut plain)
            .map_err(|_| tampered())?;
        Payload::decode(&*plain).map_err(|_| tampered())
    }
}

impl PayloadCodec for Codec {
    fn encode(
        &self,
        _context: &SerializationContextData,
        payloads: Vec<Payload>,
    ) -> BoxFuture<'static, Result<Vec<Payload>, PayloadConversionError>> {
        let ring = self.ring.clone();
        async move { Ok(payloads.into_iter().map(|payload| ring.encrypt(payload)).collect::<Result<_, _>>()?) }.boxed()
    }

    fn decode(
        &self,
        _context: &SerializationContextData,
        payloads: Vec<Payload>,
    ) -> BoxFuture<'static, Result<Vec<Payload>, PayloadConversionError>> {
        let ring = self.ring.clone();
        async move { Ok(payloads.into_iter().map(|payload| ring.decrypt(payload)).collect::<Result<_, _>>()?) }.boxed()
    }
}

impl std::str::FromStr for Codec {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let mut keys = BTreeMap::new();
        let mut order = Vec::new();
        for (nth, entry) in (1..).zip(text.trim().split(',')) {
            let bad = |what: &str| KeyError(format!("key {nth}: {what}"));
            let (id, key) = entry.trim().split_once(':').ok_or_else(|| bad("expected ID:BASE64"))?;
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if id.is_empty() || id.len() > MAX_ID || !id.chars().all(plain) {
                return Err(bad("an id has 1 to 64 letters, digits, '-', '_' or '.'"));
            }
            let bytes = BASE64_STANDARD.decode(key.trim()).map_err(|_| bad("what follows the id is not Base64"))?;
            let key = UnboundKey::new(&AES_256_GCM, &bytes)
                .map_err(|_| bad(&format!("expected 32 bytes, found {}", bytes.len())))?;
            if keys.insert(id.to_owned(), LessSafeKey::new(key)).is_some() {
                return Err(bad("another key has the same id"));
            }
            order.push(id.to_owned());
        }
        let keys = order.into_iter().filter_map(|id| keys.remove(&id).map(|key| (id, key))).collect();
        Ok(Self { ring: Arc::new(Ring { keys }) })
    }
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Codec").field(&self.ids().collect::<Vec<_>>()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 32 bytes, all of them `byte`.
    fn key(id: &str, byte: u8) -> String {
        format!("{id}:{}", BASE64_STANDARD.encode([byte; 32]))
    }

    fn codec(keys: &str) -> Codec {
        keys.parse().expect("valid keys")
    }

    fn payload() -> Payload {
        let metadata = [(ENCODING.to_owned(), b"json/plain".to_vec())].into();
        Payload { metadata, data: br#"{"name":"Jane Doe"}"#.to_vec(), ..Payload::default() }
    }

    async fn encode(codec: &Codec) -> Payload {
        let payloads = codec.encode(&SerializationContextData::None, vec![payload()]).await;
        payloads.expect("encrypted").remove(0)
    }

    async fn decode(codec: &Codec, payload: Payload) -> Result<Payload, String> {
        let payloads = codec.decode(&SerializationContextData::None, vec![payload]).await;
        payloads.map(|mut payloads| payloads.remove(0)).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_payload_is_unreadable_and_decrypts_unchanged() {
        let codec = codec(&key("a", 1));
        let (once, twice) = (encode(&codec).await, encode(&codec).await);
        assert!(!once.data.windows(4).any(|bytes| bytes == b"Jane" || bytes == b"json"), "{once:?}");
        assert_ne!(once.data, twice.data, "the same nonce twice");
        assert_eq!(once.metadata[KEY_ID], b"a");
        assert_eq!(decode(&codec, once).await, Ok(payload()));
    }

    #[tokio::test]
    async fn the_first_key_encrypts_and_every_key_decrypts() {
        let (old, new) = (key("old", 1), key("new", 2));
        let rotated = codec(&format!("{new},{old}"));
        assert_eq!(rotated.ids().collect::<Vec<_>>(), ["new", "old"]);
        assert_eq!(decode(&rotated, encode(&codec(&old)).await).await, Ok(payload()));
        assert_eq!(decode(&codec(&new), encode(&rotated).await).await, Ok(payload()));
    }

    #[tokio::test]
    async fn a_key_that_is_missing_is_named() {
        let sealed = encode(&codec(&key("2026-01", 1))).await;
        let without = decode(&Codec::default(), sealed.clone()).await.expect_err("no key");
        assert!(without.contains("'2026-01'") && without.contains(KEYS), "{without}");
        let other = decode(&codec(&key("2026-02", 1)), sealed).await.expect_err("another key");
        assert!(other.contains("'2026-01'") && other.contains("'2026-02'"), "{other}");
    }

    #[tokio::test]
    async fn a_changed_payload_is_refused() {
        let codec = codec(&format!("{},{}", key("a", 1), key("b", 1)));
        let sealed = encode(&codec).await;
        for at in 0..sealed.data.len() {
            let mut changed = sealed.clone();
            changed.data[at] ^= 1;
            assert!(decode(&codec, changed).await.expect_err("changed").contains("key 'a'"));
        }
        for length in 0..sealed.data.len() {
            let mut cut = sealed.clone();
            cut.data.truncate(length);
            assert!(decode(&codec, cut).await.is_err(), "cut to {length} bytes");
        }
        // The id is authenticated as well: `b` is the same key under another name.
        let mut renamed = sealed;
        renamed.metadata.insert(KEY_ID.to_owned(), b"b".to_vec());
        assert!(decode(&codec, renamed).await.is_err());
    }

    #[tokio::test]
    async fn plain_payloads_are_read_and_no_key_encrypts_nothing() {
        assert_eq!(decode(&codec(&key("a", 1)), payload()).await, Ok(payload()));
        assert_eq!(encode(&Codec::default()).await, payload());
    }

    #[test]
    fn unusable_keys_are_refused_and_never_shown() {
        let secret = BASE64_STANDARD.encode([7; 16]);
        for (text, expected) in [
            ("", "ID:BASE64"),
            (secret.trim_end_matches('='), "ID:BASE64"),
            (&format!("a:{secret}"), "found 16"),
            (&format!("a b:{secret}"), "letters"),
            (&format!("{},b:{secret}!", key("a", 1)), "key 2: what follows"),
            (&format!("{},{}", key("a", 1), key("a", 2)), "same id"),
        ] {
            let error = text.parse::<Codec>().expect_err(text).to_string();
            assert!(error.contains(expected) && !error.contains(secret.trim_end_matches('=')), "{text}: {error}");
        }
    }

    #[test]
    fn keys_come_from_a_variable_or_a_file() {
        let file = std::env::temp_dir().join(format!("codec-{}", std::process::id()));
        std::fs::write(&file, format!("{}\n", key("filed", 1))).expect("a file");
        let path = file.display().to_string();
        let read = |pairs: &[(&str, &str)]| {
            let pairs: BTreeMap<_, _> =
                pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            Codec::read(|name| pairs.get(name).cloned()).map(|codec| codec.ids().map(str::to_owned).collect::<Vec<_>>())
        };
        assert_eq!(read(&[]).expect("no key"), Vec::<String>::new());
        assert_eq!(read(&[(KEYS, " ")]).expect("no key"), Vec::<String>::new());
        assert_eq!(read(&[(KEYS, &key("set", 1))]).expect("a key"), ["set"]);
        assert_eq!(read(&[(KEYS_FILE, &path)]).expect("a file"), ["filed"]);
        for (pairs, named) in [
            (vec![(KEYS, "x"), (KEYS_FILE, path.as_str())], KEYS_FILE),
            (vec![(KEYS, "a:b")], KEYS),
            (vec![(KEYS_FILE, "/nowhere/at/all")], KEYS_FILE),
        ] {
            let error = read(&pairs).expect_err(named);
            assert_eq!(error.code(), 2);
            assert!(error.to_string().contains(named), "{error}");
        }
        std::fs::remove_file(file).expect("gone");
    }

    #[test]
    fn no_key_is_ever_shown() {
        assert_eq!(format!("{:?}", codec(&key("a", 1))), r#"Codec(["a"])"#);
    }
}
