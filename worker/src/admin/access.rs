//! Who may read and who may change something.
//!
//! | request | needs |
//! |---|---|
//! | any | `Host` is an IP address or `localhost`, or the request has the token: no DNS rebinding |
//! | with `Origin` | the origin is this server: no page of another site can send a request from an operator's browser |
//! | `/live`, `/ready`, the dashboard's page without its data | no token |
//! | other reads | the token, unless the request comes from this machine |
//! | writes | the token, always |
//!
//! The token is that of `OSINT_ADMIN_TOKEN`. On its own machine the worker also accepts a random token that it writes to a
//! file that only its own user can read; see [`token`](super::token). Tokens are compared in constant time.

use std::net::{IpAddr, SocketAddr};

use axum::{
    Json,
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use ring::digest::{SHA256, digest};
use serde_json::json;
use tokio::time::timeout;

use super::{REQUEST, token::Token};

/// Paths that anyone may read: they hold no names and no data of breakers.
const OPEN: [&str; 5] = ["/live", "/ready", "/", "/dashboard.css", "/dashboard.js"];

/// The headers of every answer. The dashboard runs only its own script, talks only to this server, and is in no frame.
const HEADERS: [(&str, &str); 5] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// The tokens that this server accepts.
#[derive(Debug, Clone, Default)]
pub(super) struct Access {
    /// The operator's own, accepted from everywhere.
    pub(super) configured: Option<Token>,
    /// The one in the file on this machine, accepted from this machine.
    pub(super) local: Option<Token>,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Refusal(StatusCode, &'static str);

const ABSOLUTE: Refusal = Refusal(StatusCode::BAD_REQUEST, "this server is no proxy: the target must be a path");
const NO_HOST: Refusal = Refusal(StatusCode::BAD_REQUEST, "the request needs exactly one Host header");
const FOREIGN_HOST: Refusal =
    Refusal(StatusCode::FORBIDDEN, "Host must be an IP address or localhost; another name needs the token");
const FOREIGN_ORIGIN: Refusal = Refusal(StatusCode::FORBIDDEN, "Origin must be this server's own");
const WRONG: Refusal = Refusal(StatusCode::UNAUTHORIZED, "this token is not valid here");
const READ: Refusal = Refusal(
    StatusCode::UNAUTHORIZED,
    "from another machine, this needs the worker's OSINT_ADMIN_TOKEN: 'Authorization: Bearer TOKEN'",
);
const WRITE: Refusal = Refusal(
    StatusCode::UNAUTHORIZED,
    "to change something needs a token: OSINT_ADMIN_TOKEN, or on the worker's own machine, as its own user, the one that \
     `osint breakers token` prints",
);

/// Lets a request pass to its page or refuses it, and limits its time.
pub(super) async fn guard(
    State(access): State<Access>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match access.check(peer.ip(), &request) {
        Err(Refusal(status, message)) => {
            let mut response = (status, Json(json!({ "error": message }))).into_response();
            if status == StatusCode::UNAUTHORIZED {
                response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            response
        }
        Ok(()) => match timeout(REQUEST, next.run(request)).await {
            Ok(response) => response,
            Err(_) => {
                (StatusCode::REQUEST_TIMEOUT, Json(json!({ "error": "the request took too long" }))).into_response()
            }
        },
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

impl Access {
    fn check<B>(&self, peer: IpAddr, request: &axum::http::Request<B>) -> Result<(), Refusal> {
        if request.uri().scheme().is_some() || request.uri().authority().is_some() {
            return Err(ABSOLUTE);
        }
        let here = peer.to_canonical().is_loopback();
        let host = only(request.headers(), header::HOST).ok_or(NO_HOST)?;
        let holds = match request.headers().get(header::AUTHORIZATION) {
            None => false,
            Some(given) if self.accepts(given, here) => true,
            Some(_) => return Err(WRONG),
        };
        if !holds && !names_an_address(host) {
            return Err(FOREIGN_HOST);
        }
        if request.headers().contains_key(header::ORIGIN) {
            let origin = only(request.headers(), header::ORIGIN).ok_or(FOREIGN_ORIGIN)?;
            let own = ["http://", "https://"].iter().filter_map(|scheme| origin.strip_prefix(scheme));
            if own.filter(|name| *name == host).count() == 0 {
                return Err(FOREIGN_ORIGIN);
            }
        }
        let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        match (reads, holds) {
            (_, true) => Ok(()),
            (false, false) => Err(WRITE),
            (true, false) if here || OPEN.contains(&request.uri().path()) => Ok(()),
            (true, false) => Err(READ),
        }
    }

    fn accepts(&self, given: &HeaderValue, here: bool) -> bool {
        let Some(given) = given.as_bytes().strip_prefix(b"Bearer ") else { return false };
        let local = self.local.as_ref().filter(|_| here);
        [self.configured.as_ref(), local].into_iter().flatten().fold(false, |any, token| any | same(token, given))
    }
}

/// Compares hashes, so that the time says nothing about the token.
fn same(token: &Token, given: &[u8]) -> bool {
    let (token, given) = (digest(&SHA256, token.secret().as_bytes()), digest(&SHA256, given));
    token.as_ref().iter().zip(given.as_ref()).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// The value of a header that occurs once.
fn only(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// A web page can send a browser here under the page's own host name, but not under an IP address.
fn names_an_address(host: &str) -> bool {
    if host.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok() {
        return true;
    }
    let name = host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(host, |(name, _)| name);
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    name.eq_ignore_ascii_case("localhost") || bare.is_some_and(|name| name.parse::<std::net::Ipv6Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use axum::http::{Request, request::Builder};

    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn access() -> Access {
        let token = |text: &str| Some(text.parse().expect("long enough"));
        Access { configured: token(TOKEN), local: token("local-local-local") }
    }

    fn check(peer: &str, build: impl FnOnce(Builder) -> Builder) -> Result<(), Refusal> {
        let request = build(Request::builder().uri("/breakers")).body(()).expect("a request");
        access().check(peer.parse().expect("an address"), &request)
    }

    const HERE: &str = "127.0.0.1";
    const THERE: &str = "192.0.2.7";

    #[test]
    fn reads_from_another_machine_need_the_token() {
        let host = |request: Builder| request.header("host", "192.0.2.1:9464");
        assert_eq!(check(HERE, host), Ok(()));
        assert_eq!(check("::ffff:127.0.0.1", host), Ok(()));
        assert_eq!(check(THERE, host), Err(READ));
        for open in OPEN {
            assert_eq!(check(THERE, |request| host(request).uri(open)), Ok(()), "{open}");
        }
        let with = |token: &'static str| move |request| host(request).header("authorization", token);
        assert_eq!(check(THERE, with("Bearer 0123456789abcdef")), Ok(()));
        assert_eq!(check(THERE, with("Bearer 0123456789abcdeX")), Err(WRONG));
        assert_eq!(check(THERE, with("Bearer local-local-local")), Err(WRONG), "it is for this machine");
        assert_eq!(check(HERE, with("Bearer local-local-local")), Ok(()));
        assert_eq!(check(HERE, with("Basic 0123456789abcdef")), Err(WRONG));
    }

    #[test]
    fn writes_need_the_token_everywhere() {
        let write = |request: Builder| request.method("POST").header("host", "localhost:9464");
        assert_eq!(check(HERE, write), Err(WRITE));
        assert_eq!(check(THERE, write), Err(WRITE));
        assert_eq!(check(HERE, |request| write(request).header("authorization", "Bearer local-local-local")), Ok(()));
        let none = Access::default();
        let request = write(Request::builder()).header("authorization", "Bearer ").body(()).expect("a request");
        assert_eq!(none.check(HERE.parse().expect("an address"), &request), Err(WRONG), "no token, no writes");
    }

    #[test]
    fn hosts_and_origins_of_other_sites_are_refused() {
        for host in ["127.0.0.1", "127.0.0.1:9464", "[::1]:9464", "[::1]", "localhost", "LOCALHOST:1", "10.0.0.7:80"] {
            assert_eq!(check(HERE, |request| request.header("host", host)), Ok(()), "{host}");
        }
        for host in
            ["evil.example", "evil.example:9464", "localhost.evil.example", "127.0.0.1.evil.example", "", "[::1"]
        {
            assert_eq!(check(HERE, |request| request.header("host", host)), Err(FOREIGN_HOST), "{host}");
        }
        let named =
            |request: Builder| request.header("host", "worker:9464").header("authorization", "Bearer 0123456789abcdef");
        assert_eq!(check(THERE, named), Ok(()), "a name, with the token");
        assert_eq!(check(HERE, |request| request), Err(NO_HOST));
        assert_eq!(check(HERE, |request| request.header("host", "a").header("host", "b")), Err(NO_HOST));
        let from = |origin: &'static str| {
            move |request: Builder| request.header("host", "127.0.0.1:1").header("origin", origin)
        };
        assert_eq!(check(HERE, from("http://127.0.0.1:1")), Ok(()));
        for origin in ["http://127.0.0.1:2", "https://evil.example", "null", ""] {
            assert_eq!(check(HERE, from(origin)), Err(FOREIGN_ORIGIN), "{origin}");
        }
    }

    #[test]
    fn absolute_targets_are_refused() {
        let target = |request: Builder| request.uri("http://169.254.169.254/latest").header("host", "127.0.0.1");
        assert_eq!(check(HERE, target), Err(ABSOLUTE));
    }
}
