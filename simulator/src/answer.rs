//! What an upstream sends back: a status, headers and a body, before any fault touches it.

use std::borrow::Cow;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use futures::stream;
use serde_json::Value;

/// The page of a load balancer that has lost its back end.
pub(crate) const HTML_GATEWAY: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/html/gateway.html"));
/// The page a firewall shows to clients it takes for robots.
pub(crate) const HTML_CHALLENGE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/html/challenge.html"));
/// The page of a planned outage.
pub(crate) const HTML_MAINTENANCE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/html/maintenance.html"));
/// The page of a web server for an unknown path.
pub(crate) const HTML_MOVED: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/html/moved.html"));
/// 64 MiB of spaces behind gzip's 65 kB.
static GZIP_BOMB: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/bomb.gz"));

/// The body of an [`Answer`].
#[derive(Debug, Clone)]
enum Payload {
    Whole(Cow<'static, [u8]>),
    /// `first`, then `chunk` as many times as `times` says, then `last`: large bodies that are never whole in memory.
    Repeated {
        first: &'static str,
        chunk: Bytes,
        times: u64,
        last: &'static str,
    },
}

/// An answer, before it becomes an HTTP response.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    payload: Payload,
    callback: Option<Box<(String, Value)>>,
}

impl Answer {
    /// Status 200 with JSON.
    pub(crate) fn ok(value: Value) -> Answer {
        Answer::json(200, value)
    }

    /// JSON with a status.
    pub(crate) fn json(status: u16, value: Value) -> Answer {
        Answer::bytes(status, "application/json", Cow::Owned(value.to_string().into_bytes()))
    }

    /// HTML in UTF-8 with a status.
    pub(crate) fn html(status: u16, body: &str) -> Answer {
        Answer::text(status, "text/html; charset=utf-8", body)
    }

    /// A SOAP 1.1 envelope around this content.
    pub(crate) fn soap(status: u16, content: &str) -> Answer {
        let namespace = "http://schemas.xmlsoap.org/soap/envelope/";
        let open = format!(r#"<?xml version="1.0" encoding="UTF-8"?><env:Envelope xmlns:env="{namespace}">"#);
        let body = format!("{open}<env:Header/><env:Body>{content}</env:Body></env:Envelope>");
        Answer::text(status, "text/xml; charset=utf-8", &body)
    }

    /// Any text with its content type.
    pub(crate) fn text(status: u16, content_type: &str, body: &str) -> Answer {
        Answer::bytes(status, content_type, Cow::Owned(body.as_bytes().to_vec()))
    }

    /// Any bytes with their content type.
    pub(crate) fn bytes(status: u16, content_type: &str, body: Cow<'static, [u8]>) -> Answer {
        let headers = vec![("content-type", content_type.to_owned())];
        Answer { status, headers, payload: Payload::Whole(body), callback: None }
    }

    /// `chunk` repeated, streamed and never whole in memory.
    pub(crate) fn repeated(content_type: &str, chunk: Vec<u8>, times: u64) -> Answer {
        let payload = Payload::Repeated { first: "", chunk: chunk.into(), times, last: "" };
        Answer { status: 200, headers: vec![("content-type", content_type.to_owned())], payload, callback: None }
    }

    /// A JSON array of strings of this many MiB.
    pub(crate) fn huge(mebibytes: u64) -> Answer {
        let chunk = format!("\"{}\",", "x".repeat(65_533)).into_bytes();
        let payload = Payload::Repeated { first: "[", chunk: chunk.into(), times: mebibytes * 16, last: "\"\"]" };
        let headers = vec![("content-type", "application/json".to_owned())];
        Answer { status: 200, headers, payload, callback: None }
    }

    /// A compressed body a thousand times its size.
    pub(crate) fn gzip_bomb() -> Answer {
        Answer::bytes(200, "application/json", Cow::Borrowed(GZIP_BOMB)).header("content-encoding", "gzip")
    }

    /// Adds a header; `content-type` replaces the one that is there.
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Answer {
        self.headers.retain(|(existing, _)| *existing != name);
        self.headers.push((name, value.to_owned()));
        self
    }

    /// With an `ETag` of its body, or 304 and no body for a client that knows this `ETag` already.
    pub(crate) fn with_etag(self, known: Option<&str>) -> Answer {
        let etag = format!("\"{}\"", &crate::digest::sha256(self.body())[..16]);
        if known == Some(etag.as_str()) {
            return Answer::text(304, "text/plain", "").header("etag", &etag);
        }
        self.header("etag", &etag)
    }

    /// With a callback: after the answer, the document is also posted to this URL.
    pub(crate) fn with_callback(mut self, url: String, document: Value) -> Answer {
        self.callback = Some(Box::new((url, document)));
        self
    }

    /// Takes the callback: the URL, and the document to post there after the answer.
    pub(crate) fn take_callback(&mut self) -> Option<(String, Value)> {
        self.callback.take().map(|callback| *callback)
    }

    /// The status code.
    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// The body; empty if it is streamed.
    pub(crate) fn body(&self) -> &[u8] {
        match &self.payload {
            Payload::Whole(bytes) => bytes,
            Payload::Repeated { .. } => &[],
        }
    }

    /// The same answer with another body.
    pub(crate) fn with_body(mut self, body: Vec<u8>) -> Answer {
        self.payload = Payload::Whole(Cow::Owned(body));
        self
    }

    /// Replaces the upstream's public origin by the simulator's, so that links in answers lead back here.
    pub(crate) fn with_local_links(self, hosts: &[(&str, String)]) -> Answer {
        let is_text = self.headers.iter().any(|(name, value)| {
            *name == "content-type" && ["json", "html", "xml", "text"].iter().any(|kind| value.contains(kind))
        });
        if self.headers.iter().any(|(name, _)| *name == "content-encoding") || !is_text {
            return self;
        }
        let Ok(text) = std::str::from_utf8(self.body()) else { return self };
        if !hosts.iter().any(|(host, _)| text.contains(host)) {
            return self;
        }
        let text = hosts.iter().fold(text.to_owned(), |text, (host, origin)| text.replace(host, origin));
        self.with_body(text.into_bytes())
    }

    /// The response, with the body as it is.
    pub(crate) fn into_response(self) -> Response<Body> {
        let (status, headers) = (self.status, self.headers);
        let body = match self.payload {
            Payload::Whole(bytes) => Body::from(bytes.into_owned()),
            Payload::Repeated { first, chunk, times, last } => {
                let total = first.len() as u64 + chunk.len() as u64 * times + last.len() as u64;
                let pieces = std::iter::once(Bytes::from(first))
                    .chain((0..times).map(move |_| chunk.clone()))
                    .chain(std::iter::once(Bytes::from(last)))
                    .filter(|piece| !piece.is_empty());
                let stream = stream::iter(pieces.map(Ok::<_, std::convert::Infallible>));
                return response(status, headers, Body::from_stream(stream), Some(total));
            }
        };
        response(status, headers, body, None)
    }

    /// The response with another body, but with the content length of the whole one.
    pub(crate) fn into_response_with(self, body: Body) -> Response<Body> {
        let length = self.body().len() as u64;
        response(self.status, self.headers, body, Some(length))
    }
}

fn response(status: u16, headers: Vec<(&'static str, String)>, body: Body, length: Option<u64>) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    if let Some(length) = length {
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}
