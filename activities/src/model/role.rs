//! Roles by the codes of a source. A list that mixes roles is split by them, and a code that is not known is no owner and no
//! director: it is another role, shown with its code.

/// The codes that a source is known to use, and the role that each means.
pub type RoleWords = [(&'static str, &'static str)];

/// The role of a code that its source is not known to use.
pub const OTHER_ROLE: &str = "other role";

/// The role that a code means: the source's own wording if it gives one, else the word of the table. For a code outside the
/// table it is [`OTHER_ROLE`] with the code and the source's wording.
#[must_use]
pub fn role(code: &str, wording: Option<&str>, words: &RoleWords) -> String {
    match (words.iter().find(|(known, _)| *known == code), wording) {
        (Some(_), Some(wording)) => wording.to_owned(),
        (Some((_, word)), None) => (*word).to_owned(),
        (None, Some(wording)) => format!("{OTHER_ROLE} ({code}: {wording})"),
        (None, None) => format!("{OTHER_ROLE} ({code})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_outside_the_table_is_another_role() {
        let words: &RoleWords = &[("DAGL", "managing director")];
        assert_eq!(role("DAGL", Some("Daglig leder"), words), "Daglig leder");
        assert_eq!(role("DAGL", None, words), "managing director");
        assert_eq!(role("XYZ", Some("Noe"), words), "other role (XYZ: Noe)");
        assert_eq!(role("XYZ", None, words), "other role (XYZ)");
    }
}
