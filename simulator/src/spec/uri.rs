//! Paths and query strings, decoded.

/// Splits a path into decoded segments.
pub(crate) fn segments(path: &str) -> Vec<String> {
    path.split('/').filter(|segment| !segment.is_empty()).map(decode).collect()
}

/// Splits a query string into decoded pairs.
pub(crate) fn pairs(query: &str) -> Vec<(String, String)> {
    let split = |pair: &str| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(&key.replace('+', " ")), decode(&value.replace('+', " ")))
    };
    query.split('&').filter(|pair| !pair.is_empty()).map(split).collect()
}

fn decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let hex = if byte == b'%' { tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok()) } else { None };
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(decoded) => {
                out.push(decoded);
                rest = &tail[2..];
            }
            None => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_decode_plus_percent_and_broken_escapes() {
        assert_eq!(
            pairs("q=a+b%26c&filter%5Bx%5D=%zz&flag"),
            [("q".into(), "a b&c".into()), ("filter[x]".into(), "%zz".into()), ("flag".into(), String::new())]
        );
    }
}
