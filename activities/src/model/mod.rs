//! What an investigation is about, what it asks, and what it gets back.
//!
//! Everything here is plain data that crosses the workflow boundary: it serialises, it has no behaviour that depends on
//! time or on the process, and a workflow may use everything here.

mod country;
mod facts;
mod finding;
mod subject;

pub use country::{Country, UnknownCountry};
pub use facts::{
    Accounts, Address, Article, Availability, Company, Establishment, Facts, Hit, Notice, Officer, Owner, Page, Parent,
    Place, Screening, Standing, VatCheck,
};
pub use finding::{FailureDetails, Finding, Job, Query, Status};
pub use subject::{Subject, SubjectError};
