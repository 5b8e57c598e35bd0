//! Text of strangers, made harmless. Names, reasons and titles come from sources and users; they may hold terminal escapes,
//! line breaks, or marks that turn the reading direction. Every page passes them through [`neutral`] before its own escapes.

/// What replaces a character that could act on the reader's screen.
const REPLACEMENT: char = '\u{fffd}';

/// True for a character that changes how the text around it is shown, or that nobody sees.
#[must_use]
pub const fn is_hostile(c: char) -> bool {
    matches!(
        c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' // controls, the escape of terminals among them
        | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' // soft hyphen, direction marks, zero width
        | '\u{2028}'..='\u{202e}' // line and paragraph separators, direction embeddings
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' // direction isolates, invisible operators
        | '\u{e0000}'..='\u{e007f}' // tags
    )
}

/// The text on one line, with single spaces, and with a visible mark in the place of each hostile character.
#[must_use]
pub fn neutral(text: &str) -> String {
    let breaks = |c: char| c.is_whitespace() || matches!(c, '\u{2028}' | '\u{2029}');
    let words = text.split(breaks).filter(|word| !word.is_empty());
    let clean = words.map(|word| word.chars().map(|c| if is_hostile(c) { REPLACEMENT } else { c }).collect::<String>());
    clean.collect::<Vec<_>>().join(" ")
}

/// The same, at most `most` characters long.
#[must_use]
pub fn clipped(text: &str, most: usize) -> String {
    let text = neutral(text);
    if text.chars().count() <= most {
        return text;
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// JSON text with its hostile characters as `\u` escapes: the same document, safe on a terminal. Line breaks between the
/// values stay.
#[must_use]
pub fn escaped_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && is_hostile(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// Names that tests put everywhere: each is an attack on one of the formats.
#[cfg(test)]
pub(crate) const HOSTILE: [&str; 7] = [
    "\u{1b}[2J\u{1b}[31mEvil\u{9b}1m AS",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "| a | b |\n# heading [x](javascript:alert(1)) `code` **bold**",
    "\u{202e}SA live\u{202c}\u{2066}x\u{2069}",
    "line\r\none\u{2028}two\u{0}",
    "=cmd|' /C calc'!A0",
    "\"]}'&lt;--></style></svg>",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_becomes_one_harmless_line() {
        for name in HOSTILE {
            let text = neutral(name);
            assert!(!text.chars().any(is_hostile), "{text:?}");
            assert!(!text.contains("  "));
        }
        assert_eq!(neutral(" Müller \n& Søn\t A/S "), "Müller & Søn A/S");
        assert_eq!(neutral("a\u{1b}[31mb"), "a\u{fffd}[31mb");
    }

    #[test]
    fn long_text_is_clipped_by_characters() {
        assert_eq!(clipped("äöü äöü", 20), "äöü äöü");
        assert_eq!(clipped("äöü äöü", 5), "äöü…");
    }

    #[test]
    fn escaped_json_is_the_same_document() {
        let value = serde_json::json!({ "names": HOSTILE, "tag": "\u{e0041}" });
        let text = escaped_json(&serde_json::to_string_pretty(&value).expect("serialisable"));
        assert!(!text.chars().any(|c| c != '\n' && is_hostile(c)));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), value);
    }
}
