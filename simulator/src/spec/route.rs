//! One operation of an upstream: a method and a path, and what answers.

use super::call::Call;
use crate::answer::Answer;

/// One operation of an upstream.
#[derive(Debug)]
pub(crate) struct Route {
    /// The name under which its calls are counted.
    pub(crate) operation: &'static str,
    pub(crate) method: &'static str,
    /// The path below the base: literal segments, `{}` for one captured, `{*}` for all that remain.
    pub(crate) path: &'static str,
    pub(crate) answer: fn(&Call) -> Answer,
}

/// A `GET` route.
pub(crate) const fn get(operation: &'static str, path: &'static str, answer: fn(&Call) -> Answer) -> Route {
    Route { operation, method: "GET", path, answer }
}

/// A `POST` route.
pub(crate) const fn post(operation: &'static str, path: &'static str, answer: fn(&Call) -> Answer) -> Route {
    Route { operation, method: "POST", path, answer }
}

impl Route {
    /// What the path captures, if the route matches.
    pub(crate) fn captures(&self, method: &str, segments: &[String]) -> Option<Vec<String>> {
        if self.method != method {
            return None;
        }
        let mut captured = Vec::new();
        let mut given = segments.iter();
        for expected in self.path.split('/').filter(|segment| !segment.is_empty()) {
            match expected {
                "{*}" => {
                    captured.push(given.by_ref().map(String::as_str).collect::<Vec<_>>().join("/"));
                }
                "{}" => captured.push(given.next()?.clone()),
                literal => {
                    if given.next()? != literal {
                        return None;
                    }
                }
            }
        }
        given.next().is_none().then_some(captured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::segments;

    #[test]
    fn a_route_captures_the_segments_in_its_braces() {
        let route = get("op", "/a/{}/b/{*}", |_| Answer::text(200, "text/plain", ""));
        assert_eq!(route.captures("GET", &segments("/a/x%20y/b/c/d")), Some(vec!["x y".into(), "c/d".into()]));
        assert_eq!(route.captures("GET", &segments("/a/x/c/d")), None);
        assert_eq!(route.captures("POST", &segments("/a/x/b/c")), None);
        assert_eq!(get("op", "/a", |_| Answer::text(200, "text/plain", "")).captures("GET", &segments("/a/b")), None);
    }
}
