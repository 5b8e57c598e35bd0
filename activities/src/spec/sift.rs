//! Lists in which one record cannot be read. It does not sink the others, and it is not passed over in silence.

use super::SourceError;

/// The records of a list that could be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Sifted<T> {
    /// Those, in the order of the list.
    pub read: Vec<T>,
    /// How many there were in all.
    pub listed: usize,
    /// What to note about the others; `None` if there are none.
    pub note: Option<String>,
}

/// Reads each record of a list by itself. `what` names the records, as in "hits".
///
/// # Errors
/// If the list has records and none of them can be read: its shape is another one, and the error of the first says why.
pub fn sift<I, T>(
    what: &str,
    list: impl IntoIterator<Item = I>,
    mut read: impl FnMut(I) -> Result<T, SourceError>,
) -> Result<Sifted<T>, SourceError> {
    let (mut good, mut listed, mut first) = (Vec::new(), 0, None);
    for record in list {
        listed += 1;
        match read(record) {
            Ok(record) => good.push(record),
            Err(error) => first = first.or(Some(error)),
        }
    }
    match first {
        Some(error) if good.is_empty() => Err(error),
        first => {
            let note = first.map(|error| {
                format!("{} of {listed} {what} left out: the source {}", listed - good.len(), error.reason)
            });
            Ok(Sifted { read: good, listed, note })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn even(number: u8) -> Result<u8, SourceError> {
        if number.is_multiple_of(2) { Ok(number) } else { Err(SourceError::bad_shape("gave an odd number")) }
    }

    #[test]
    fn one_bad_record_is_noted_and_the_others_stay() {
        let sifted = sift("numbers", [2, 3, 4], even).expect("two are readable");
        assert_eq!((sifted.read, sifted.listed), (vec![2, 4], 3));
        assert_eq!(sifted.note.as_deref(), Some("1 of 3 numbers left out: the source gave an odd number"));
        assert_eq!(sift("numbers", [2], even).expect("all").note, None);
        assert_eq!(sift("numbers", [], even).expect("an empty list is no error").listed, 0);
    }

    #[test]
    fn a_list_without_a_readable_record_has_another_shape() {
        assert!(sift("numbers", [1, 3], even).is_err());
    }
}
