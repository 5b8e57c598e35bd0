//! XML, as far as upstreams need it: one element of a request, and text for an answer.

/// The text of the first element of this local name, whatever its prefix.
pub(crate) fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let opens = |(at, _): &(usize, &str)| {
        let before = xml[..*at].rsplit('<').next().unwrap_or_default();
        let (tag, after) = (before.trim_end_matches(':'), &xml[*at + name.len()..]);
        (before.is_empty() || before.ends_with(':') && tag.chars().all(char::is_alphanumeric))
            && after.starts_with(['>', ' '])
    };
    let (at, _) = xml.match_indices(name).find(opens)?;
    let text = xml[at..].split_once('>')?.1;
    text.split_once('<').map(|(text, _)| text.trim())
}

/// Text as it must be written inside an XML element.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_under_any_prefix() {
        let xml = "<e:Envelope><a:check><a:countryCode x='1'> DE </a:countryCode><code>7</code></a:check></e:Envelope>";
        assert_eq!(
            (element(xml, "countryCode"), element(xml, "code"), element(xml, "other")),
            (Some("DE"), Some("7"), None)
        );
    }
}
