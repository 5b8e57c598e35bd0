//! The state word: most callers need to read nothing else, and take no lock.
//!
//! The whole state of a breaker lives behind a mutex. The holder of the mutex publishes a digest here before letting go: the
//! generation, and which of the common cases hold. While nothing is wrong a call reads this word twice — once to
//! be admitted, once to see that its success changes nothing — and writes only its own thread's counters. An open breaker
//! publishes its deadline beside the word, so a rejection needs no lock either.
//!
//! Writers are serialised by the breaker's mutex. The deadline is stored before the word that announces it, and a reader looks
//! at the word again after reading the deadline: if it is still the same, the deadline belongs to it. The generation
//! in the word never repeats, so "the same word" means "the same opening".

use crate::{
    breaker::sync::{AtomicU64, Ordering},
    clock::Tick,
    state::Digest,
};

const ADMITS: u64 = 1;
const PRISTINE: u64 = 1 << 1;
const REJECTS: u64 = 1 << 2;
const TIMED: u64 = 1 << 3;
const GENERATION_SHIFT: u32 = 8;

/// A reading of the fast path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StateWord(u64);

impl StateWord {
    pub(crate) const fn new(generation: u64) -> Self {
        Self(generation << GENERATION_SHIFT)
    }

    /// The word that says what `digest` says; its deadline is published beside it.
    pub(crate) const fn of(digest: &Digest) -> Self {
        let mut word = Self::new(digest.generation);
        if digest.timed {
            word = word.timed();
        }
        if digest.admits {
            word = word.admitting();
        }
        if digest.pristine {
            word = word.pristine();
        }
        if digest.rejects_until.is_some() {
            word = word.rejecting();
        }
        word
    }

    /// A call may start without asking further.
    pub(crate) const fn admitting(self) -> Self {
        Self(self.0 | ADMITS)
    }

    /// A success changes nothing.
    pub(crate) const fn pristine(self) -> Self {
        Self(self.0 | PRISTINE)
    }

    /// Calls are rejected until the published deadline.
    pub(crate) const fn rejecting(self) -> Self {
        Self(self.0 | REJECTS)
    }

    /// Calls measure how long they take.
    pub(crate) const fn timed(self) -> Self {
        Self(self.0 | TIMED)
    }

    pub(crate) const fn admits(self) -> bool {
        self.0 & ADMITS != 0
    }

    pub(crate) const fn is_pristine(self) -> bool {
        self.0 & PRISTINE != 0
    }

    /// A success changes nothing, and calls are not timed.
    pub(crate) const fn lets_success_pass(self) -> bool {
        self.0 & (PRISTINE | TIMED) == PRISTINE
    }

    pub(crate) const fn rejects(self) -> bool {
        self.0 & REJECTS != 0
    }

    pub(crate) const fn is_timed(self) -> bool {
        self.0 & TIMED != 0
    }

    pub(crate) const fn generation(self) -> u64 {
        self.0 >> GENERATION_SHIFT
    }
}

/// The published digest of one breaker.
#[derive(Debug)]
pub(crate) struct FastPath {
    word: AtomicU64,
    deadline: AtomicU64,
}

impl FastPath {
    pub(crate) fn new(word: StateWord) -> Self {
        Self { word: AtomicU64::new(word.0), deadline: AtomicU64::new(0) }
    }

    #[inline]
    pub(crate) fn read(&self) -> StateWord {
        StateWord(self.word.load(Ordering::Acquire))
    }

    /// Whether a success of `generation` changes nothing.
    #[inline]
    pub(crate) fn is_pristine(&self, generation: u64) -> bool {
        let word = self.read();
        word.is_pristine() && word.generation() == generation
    }

    /// The deadline of the opening that `word` announced; `None` if the fast path has moved on since.
    #[inline]
    pub(crate) fn deadline_of(&self, word: StateWord) -> Option<Tick> {
        let deadline = self.deadline.load(Ordering::Acquire);
        // A deadline of a later opening was stored after a word of a later generation; having acquired the one, this load
        // sees the other.
        (self.word.load(Ordering::Relaxed) == word.0).then_some(Tick::from_bits(deadline))
    }

    /// Publishes; only under the breaker's mutex.
    pub(crate) fn publish(&self, word: StateWord, deadline: Option<Tick>) {
        if self.word.load(Ordering::Relaxed) == word.0 {
            return; // nothing new: leave the cache line to its readers
        }
        if let Some(deadline) = deadline {
            self.deadline.store(deadline.to_bits(), Ordering::Release);
        }
        self.word.store(word.0, Ordering::Release);
    }
}

#[cfg(all(test, circuit_loom))]
mod loom_tests {
    use loom::{sync::Arc, thread};

    use super::*;

    // Loom compares an access with the last one to the same cell only, and the writer's own look at the word hides its store
    // from the reader's. So the threads say themselves where others may go on.

    /// A reader that rejects never pairs one opening's word with another's deadline.
    #[test]
    fn a_rejection_reads_its_own_openings_deadline() {
        loom::model(|| {
            let fast_path = Arc::new(FastPath::new(StateWord::new(0).admitting()));
            let writer = {
                let fast_path = fast_path.clone();
                thread::spawn(move || {
                    fast_path.publish(StateWord::new(1).rejecting(), Some(Tick::from_nanos(100)));
                    thread::yield_now();
                    fast_path.publish(StateWord::new(2), None);
                    fast_path.publish(StateWord::new(3).rejecting(), Some(Tick::from_nanos(300)));
                })
            };
            for _ in 0..2 {
                thread::yield_now();
                let word = fast_path.read();
                thread::yield_now();
                if word.rejects()
                    && let Some(deadline) = fast_path.deadline_of(word)
                {
                    assert_eq!(deadline.as_nanos(), word.generation() * 100);
                }
            }
            writer.join().unwrap();
        });
    }

    /// The word of an opening that is over goes with its own deadline or with none, never with the next one's.
    #[test]
    fn a_late_reader_does_not_take_the_next_deadline() {
        loom::model(|| {
            let fast_path = Arc::new(FastPath::new(StateWord::new(0)));
            let word = StateWord::new(1).rejecting();
            fast_path.publish(word, Some(Tick::from_nanos(100)));
            let reader = {
                let fast_path = fast_path.clone();
                thread::spawn(move || {
                    thread::yield_now();
                    assert!(fast_path.deadline_of(word).is_none_or(|deadline| deadline.as_nanos() == 100));
                })
            };
            fast_path.publish(StateWord::new(2), None);
            fast_path.publish(StateWord::new(3).rejecting(), Some(Tick::from_nanos(300)));
            reader.join().unwrap();
        });
    }
}
