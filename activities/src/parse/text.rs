//! Texts that several people write differently, in a form in which they can be compared.

/// The words of a text in lower case: runs of letters and digits.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The letters and digits of a text in lower case, without anything between them.
#[must_use]
pub fn squeezed(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_letters_and_digits_does_not_count() {
        assert_eq!(words("Nordøst-Frakt A/S, 2. etg."), ["nordøst", "frakt", "a", "s", "2", "etg"]);
        assert_eq!(squeezed(" HRB 6684/München"), "hrb6684münchen");
        assert!(words(" - ").is_empty() && squeezed("./").is_empty());
    }
}
