//! A request, still without address, credentials or identity: those belong to the client.

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use encoding_rs::{Encoding, UTF_8};
use reqwest::{Method, Url};
use secrecy::SecretString;
use serde_json::Value;

use super::SourceError;

/// The most that is read of an answer, unless the request expects more.
const LIMIT: usize = 8_000_000;

/// What to ask. Paths are relative to a base address of the source.
#[derive(Debug, Clone)]
pub struct Request {
    pub(crate) method: Method,
    pub(crate) link: Option<String>,
    path: Vec<String>,
    query: Vec<(&'static str, String)>,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) accept: &'static str,
    pub(crate) body: Option<(&'static str, Vec<u8>)>,
    pub(crate) token: Option<SecretString>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) limit: usize,
    pub(crate) sink: Option<Sink>,
    encoding: &'static Encoding,
}

/// Takes a body as it comes, where it is too large to be held.
pub trait Take: Send {
    /// The next bytes.
    ///
    /// # Errors
    /// If the bytes cannot become a body; the rest is not read.
    fn take(&mut self, chunk: &[u8]) -> Result<(), SourceError>;
}

/// Where a body goes.
#[derive(Clone)]
pub(crate) struct Sink(Arc<Mutex<dyn Take>>);

impl Sink {
    pub(crate) fn take(&self, chunk: &[u8]) -> Result<(), SourceError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(chunk)
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sink")
    }
}

impl Request {
    fn new(method: Method, path: &str) -> Self {
        Self {
            method,
            link: None,
            path: path.split('/').filter(|segment| !segment.is_empty()).map(str::to_owned).collect(),
            query: Vec::new(),
            headers: Vec::new(),
            accept: "application/json",
            body: None,
            token: None,
            timeout: None,
            limit: LIMIT,
            sink: None,
            encoding: UTF_8,
        }
    }

    /// `GET` below the base. The path is a literal; what comes from a subject goes through [`Request::segment`].
    #[must_use]
    pub fn get(path: &'static str) -> Self {
        Self::new(Method::GET, path)
    }

    /// `GET` of an address that an answer has named. Unless it is one of the source's own, it must lead to the public
    /// internet, and no credentials go there.
    #[must_use]
    pub fn follow(link: impl Into<String>) -> Self {
        Self { link: Some(link.into()), ..Self::new(Method::GET, "") }
    }

    /// `POST` of a JSON document.
    #[must_use]
    pub fn post(path: &'static str, document: &Value) -> Self {
        Self::new(Method::POST, path).body("application/json", document.to_string())
    }

    /// `POST` of XML.
    #[must_use]
    pub fn post_xml(path: &'static str, document: String) -> Self {
        let request = Self::new(Method::POST, path).body("text/xml; charset=utf-8", document);
        request.accept("text/xml, application/xml")
    }

    /// One more segment of the path, whatever characters it contains.
    #[must_use]
    pub fn segment(mut self, segment: impl Into<String>) -> Self {
        self.path.push(segment.into());
        self
    }

    /// One more parameter of the query.
    #[must_use]
    pub fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    /// One more header. Not for credentials.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The media type that is wanted; JSON by default.
    #[must_use]
    pub const fn accept(mut self, media_type: &'static str) -> Self {
        self.accept = media_type;
        self
    }

    /// A token from an earlier answer, in the place of the source's own credentials.
    #[must_use]
    pub fn token(mut self, token: SecretString) -> Self {
        self.token = Some(token);
        self
    }

    /// Waits another time than the source's.
    #[must_use]
    pub const fn within(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Reads up to this many bytes.
    #[must_use]
    pub const fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Hands the body of a success to this, piece by piece; the answer then has none.
    #[must_use]
    pub fn into_sink(mut self, sink: Arc<Mutex<dyn Take>>) -> Self {
        self.sink = Some(Sink(sink));
        self
    }

    /// Writes the query in that encoding, for sites that read it in the encoding of their pages.
    #[must_use]
    pub const fn encoded(mut self, encoding: &'static Encoding) -> Self {
        self.encoding = encoding;
        self
    }

    fn body(mut self, content_type: &'static str, body: String) -> Self {
        self.body = Some((content_type, body.into_bytes()));
        self
    }

    /// Method and path, for people: `GET /suggest?query=a`.
    #[must_use]
    pub fn target(&self) -> String {
        let query: Vec<_> = self.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let separator = if query.is_empty() { "" } else { "?" };
        format!("{} /{}{separator}{}", self.method, self.path.join("/"), query.join("&"))
    }

    /// The whole address, or `None` if the base cannot have paths.
    pub(crate) fn url(&self, base: &str) -> Option<Url> {
        let mut url = Url::parse(base).ok()?;
        // `.` and `..` would climb out of the base; no register has such a number.
        url.path_segments_mut()
            .ok()?
            .pop_if_empty()
            .extend(self.path.iter().filter(|s| !matches!(s.as_str(), "." | "..")));
        if !self.query.is_empty() {
            let bytes: &dyn Fn(&str) -> Cow<'_, [u8]> = &|text| self.encoding.encode(text).0;
            url.query_pairs_mut().encoding_override(Some(bytes)).extend_pairs(&self.query);
        }
        Some(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_subject_contains_stays_inside_its_place() {
        let request = Request::get("/firm/x").segment("A/S ?#%..é").query("q", "a&b=c d");
        let url = request.url("http://127.0.0.1:9/base/").expect("an address");
        assert_eq!(url.as_str(), "http://127.0.0.1:9/base/firm/x/A%2FS%20%3F%23%25..%C3%A9?q=a%26b%3Dc+d");
        assert_eq!(Request::get("/x").segment("..").url("http://h/base").expect("an address").path(), "/base/x");
        assert!(Request::get("/x").url("mailto:someone").is_none());
        let eastern = Request::get("/x").query("OBMENO", "Škoda & syn").encoded(encoding_rs::WINDOWS_1250);
        assert_eq!(eastern.url("http://h").expect("an address").query(), Some("OBMENO=%8Akoda+%26+syn"));
    }
}
