//! `/`: the dashboard. One page with its script and its style, embedded in the program. It reads `/events` and asks no other host.

use axum::{
    Router,
    http::header,
    response::{Html, IntoResponse},
    routing::get,
};

/// The routes of the page.
pub(super) fn router() -> Router {
    Router::new()
        .route("/", get(async || Html(include_str!("page.html"))))
        .route("/dashboard.css", get(async || typed("text/css; charset=utf-8", include_str!("dashboard.css"))))
        .route("/dashboard.js", get(async || typed("text/javascript; charset=utf-8", include_str!("dashboard.js"))))
}

fn typed(kind: &'static str, text: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, kind)], text)
}
