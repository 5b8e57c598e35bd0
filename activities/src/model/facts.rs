//! What sources say, in one vocabulary for all of them: a report reads facts, not thirty dialects.
//!
//! Every field is optional because every source is silent about something. Dates are the source's own text (ISO 8601, as
//! precise as the source is); a person's record carries only what identifies a role holder.

use serde::{Deserialize, Serialize};

/// The answer of one operation. Empty parts are left out of the JSON.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// Records of the company, or hits of a search.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub companies: Vec<Company>,
    /// Who acts for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub officers: Vec<Officer>,
    /// Who owns it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<Owner>,
    /// Accounting-consolidation parents, or why none is reported.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<Parent>,
    /// The VAT registration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vat: Option<VatCheck>,
    /// Annual accounts on file, newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<Accounts>,
    /// Announcements in a gazette and documents on file, newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// Its establishments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub establishments: Vec<Establishment>,
    /// Pages of the company's own website.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pages: Vec<Page>,
    /// Press and web articles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub articles: Vec<Article>,
    /// Where an address is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
    /// Whom a watch list was asked about, and whom it named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screening: Option<Screening>,
    /// Parts of the source itself, and whether they can answer at the moment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub availability: Vec<Availability>,
    /// Remarks of the source that limit the above.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Whether a company may act.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// In business.
    Active,
    /// Being wound up.
    Liquidation,
    /// Bankrupt or insolvent.
    Insolvent,
    /// Under a restructuring procedure.
    Restructuring,
    /// Deleted, merged away or dissolved.
    Ceased,
    /// The source does not say.
    #[default]
    Unknown,
}

/// A company as one source describes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Company {
    /// Registered name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Number in its home register.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Two-letter code of the home jurisdiction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// Legal entity identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lei: Option<String>,
    /// VAT number with its prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vat: Option<String>,
    /// European unique identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub euid: Option<String>,
    /// Whether it may act.
    pub standing: Standing,
    /// The source's own word for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Legal form, in the source's words or code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub legal_form: Option<String>,
    /// Registered address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
    /// Founded or first registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub founded: Option<String>,
    /// Dissolved or deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dissolved: Option<String>,
    /// Earlier names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub former_names: Vec<String>,
    /// Business activities, as code and label.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub activities: Vec<String>,
    /// Number of employees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub employees: Option<u64>,
    /// Website.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub website: Option<String>,
    /// Registrations the source reports, as `register: state`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub registrations: Vec<String>,
}

/// A postal address.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Address {
    /// Street, number and anything before the postal code; lines joined with a comma.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub street: Option<String>,
    /// Postal code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub postal_code: Option<String>,
    /// Town.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub city: Option<String>,
    /// Two-letter country code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
}

impl Address {
    /// The address on one line, without the country; `None` if nothing is known. A street that names the town
    /// already, as some registers write it, is the line.
    #[must_use]
    pub fn line(self) -> Option<String> {
        let Self { street, postal_code, city, .. } = self;
        if let (Some(street), Some(city)) = (&street, &city)
            && street.contains(city.as_str())
        {
            return Some(street.clone());
        }
        let town = [postal_code, city].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let parts: Vec<_> = street.into_iter().chain((!town.is_empty()).then_some(town)).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// A role in a company and who holds it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Officer {
    /// Name of the person or company that holds the role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Register number, if the holder is a company.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub company_id: Option<String>,
    /// The role, in the source's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Year of birth: enough to tell namesakes apart, less than the source publishes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub birth_year: Option<u16>,
    /// In the role since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// An owner and its share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Owner {
    /// Name of the person or company.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Register number, if the owner is a company.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub company_id: Option<String>,
    /// Country of the owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// Share as the source states it, such as `100 %` or `1/3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<String>,
    /// Owner since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// A parent in the sense of accounting consolidation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Parent {
    /// `direct` or `ultimate`.
    pub level: String,
    /// The parent, where one is reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub company: Option<Company>,
    /// The reason code for reporting none, such as `NON_CONSOLIDATING`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exception: Option<String>,
}

/// The state of a VAT registration. Only ever made from an answer: an outage leaves no `valid` behind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VatCheck {
    /// The number asked about, with its prefix.
    pub number: String,
    /// Whether it is registered for cross-border trade in the EU.
    pub valid: bool,
    /// Name on the registration; absent where the member state withholds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Address on the registration; absent where the member state withholds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// True if the number was derived from the register number and not given by the subject.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub derived: bool,
}

/// One set of annual accounts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Accounts {
    /// First day of the period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Last day of the period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Currency of the amounts, ISO 4217.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Turnover.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revenue: Option<f64>,
    /// Result of the year.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<f64>,
    /// Equity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equity: Option<f64>,
    /// Total assets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assets: Option<f64>,
    /// Date or kind of the filing, in the source's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filing: Option<String>,
}

/// What a court, a gazette or a register announced or put on file about a company.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Notice {
    /// Day of publication or filing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// What kind, in the source's words or code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What it says, as far as the finding needs it; never the names of persons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The court or gazette.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publisher: Option<String>,
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A part of a source, such as one member state of VIES, and whether it can answer. Says nothing about any company.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Availability {
    /// The part.
    pub part: String,
    /// Whether it can answer.
    pub available: bool,
}

/// A page of the company's own website.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Page {
    /// Where it is, after redirects.
    pub url: String,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it says it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it states of what is known about the company, such as `registration number`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<String>,
    /// Where it links to a legal notice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub legal_notices: Vec<String>,
}

/// A place of business that is registered by itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Establishment {
    /// Its own number in the register.
    pub id: String,
    /// Name on the register, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The source's own word for whether it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
    /// Open since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// A press or web article.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Article {
    /// Headline.
    pub title: String,
    /// Where it is.
    pub url: String,
    /// Excerpt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
    /// Relevance as the source scores it, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Publication date, in the source's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
}

/// A geocoded address.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Place {
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
    /// What is there, such as `building/office`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The address as the source writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Attribution that must be shown with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribution: Option<String>,
}

/// A watch-list screening that took place. No hits here means "asked, and no match"; an unscreened name has no
/// screening at all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Screening {
    /// The data set asked.
    pub dataset: String,
    /// The names that were asked about, as they were sent.
    pub names: Vec<String>,
    /// Version of the data, where the source states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Candidates, best first.
    pub hits: Vec<Hit>,
}

/// A watch-list entry that resembles the subject.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hit {
    /// The list's own id.
    pub id: String,
    /// Name on the list.
    pub name: String,
    /// Kind of entity, such as `Company`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Similarity, 0 to 1.
    pub score: f64,
    /// Whether the list's own threshold calls it a match.
    pub matched: bool,
    /// Why it is listed, such as `sanction`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<String>,
    /// The lists that name it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub datasets: Vec<String>,
}
