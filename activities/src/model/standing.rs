//! What a source's own words mean. A word that is not in the source's table means nothing to us.

use super::Standing;

impl Standing {
    /// What a word means by the table of the words that its source is known to use. Case and surrounding space do not count.
    /// Any other word is [`Standing::Unknown`]: show it in [`Company::status`](super::Company::status).
    #[must_use]
    pub fn of(word: &str, words: &[(&str, Self)]) -> Self {
        let word = word.trim().to_lowercase();
        words.iter().find(|(known, _)| known.to_lowercase() == word).map_or(Self::Unknown, |(_, standing)| *standing)
    }

    /// What two statements of one source mean together: the graver one. That something is unknown is graver than that all
    /// is well, and less grave than anything that is known to be wrong.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        if other.gravity() > self.gravity() { other } else { self }
    }

    const fn gravity(self) -> u8 {
        match self {
            Self::Active => 0,
            Self::Unknown => 1,
            Self::Restructuring => 2,
            Self::Liquidation => 3,
            Self::Insolvent => 4,
            Self::Ceased => 5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_words_mean_something() {
        let words = [("Active", Standing::Active), ("Stopped", Standing::Ceased)];
        assert_eq!(Standing::of(" ACTIVE ", &words), Standing::Active);
        assert_eq!(Standing::of("stopped", &words), Standing::Ceased);
        assert_eq!(Standing::of("Active since 2001", &words), Standing::Unknown);
        assert_eq!(Standing::of("", &words), Standing::Unknown);
    }

    #[test]
    fn the_graver_statement_counts() {
        assert_eq!(Standing::Active.and(Standing::Unknown), Standing::Unknown);
        assert_eq!(Standing::Insolvent.and(Standing::Active), Standing::Insolvent);
        assert_eq!(Standing::Unknown.and(Standing::Liquidation), Standing::Liquidation);
    }
}
