//! The type of a source's row: who the source is, what it can answer, and how a flow asks it.
//!
//! Every file in `source/` fills in a [`Source`] with its [`Operation`]s, [`Rule`]s and flows. This module imports no source.
//! A flow asks through a [`Session`]; [`flow::Guarded`](crate::flow::Guarded) stands behind it and sends the requests.

mod answer;
mod flow;
mod login;
mod operation;
mod reply;
mod request;
mod rule;
mod session;
mod settings;
mod source;
mod stay;

pub use crate::error::{Class, Scope, SourceError};
pub use answer::Answer;
pub use flow::{Fallback, Flow, Parse, Steps};
pub use login::{LogIn, Tokens};
pub use operation::{Applies, Countries, Entry, Need, Operation};
pub use reply::Reply;
pub use request::{Request, Take};
pub use rule::{BodyMatch, Rule, on};
pub use session::{Exchange, Read, Session};
pub use settings::{CACHE, CONTACT, Settings, SettingsError};
pub use source::{Auth, Base, Credential, Probe, Source};
pub use stay::Stay;
