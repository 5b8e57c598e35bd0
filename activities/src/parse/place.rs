//! Walking a document by names, for JSON and XML alike.

/// A place in a document, or the absence of one. A step from an absent place leads to an absent place.
#[derive(Debug)]
pub struct Place<'a, T>(pub(super) Option<&'a T>);

/// A value that has other values under names.
pub trait Child {
    /// The first value of that name directly inside; `None` if there is none or it is null.
    fn child(&self, name: &str) -> Option<&Self>;
}

impl<T> Clone for Place<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Place<'_, T> {}

impl<T> Place<'_, T> {
    /// True if there is something.
    #[must_use]
    pub const fn exists(self) -> bool {
        self.0.is_some()
    }
}

impl<T: Child> Place<'_, T> {
    /// The first value of that name directly inside.
    #[must_use]
    pub fn get(self, name: &str) -> Self {
        Self(self.0.and_then(|value| value.child(name)))
    }

    /// The value at the end of a path such as `entity.legalName.name` or `Body.Fault.faultstring`.
    #[must_use]
    pub fn at(self, path: &str) -> Self {
        path.split('.').fold(self, Self::get)
    }
}
