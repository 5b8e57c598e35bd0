//! Legal forms: which spellings are one form, and which forms are of one class.
//!
//! The rows follow the lists of ISO 20275 and of the `rigour` library, which a test asks as an oracle. A company has one form,
//! but lists write it in several languages; two forms of one class (`Ltd`, `GmbH`, `OOO`) are translations of each other more
//! often than not.

use std::{collections::HashMap, sync::LazyLock};

use super::fold::{Umlauts, words};

/// Forms that translate each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Class {
    /// A company with limited liability that is not open to the public.
    Limited,
    /// A company with shares.
    Stock,
    /// A partnership in which somebody has limited liability.
    LimitedPartnership,
    /// A partnership in which nobody has.
    Partnership,
    /// A partnership in which everybody has.
    LimitedLiabilityPartnership,
    /// One merchant.
    Sole,
    /// An association or a foundation.
    Association,
    /// A co-operative.
    Cooperative,
    /// A company of the state.
    State,
}

/// A legal form.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// Short name.
    pub(super) name: &'static str,
    /// What it is like.
    pub(super) class: Class,
    /// How it is written, apart from case, accents and dots.
    pub(super) spellings: &'static [&'static str],
}

const fn form(name: &'static str, class: Class, spellings: &'static [&'static str]) -> Form {
    Form { name, class, spellings }
}

#[rustfmt::skip] // one form, one row
pub(super) static FORMS: &[Form] = &[
    form("ltd", Class::Limited, &["Ltd", "Limited", "Co Ltd", "Co., Limited", "Company Limited", "Pty Ltd", "Pte Ltd", "Pvt Ltd", "Private Limited", "Limitada", "Ltda", "Lda"]),
    form("llc", Class::Limited, &["LLC", "L.L.C.", "Limited Liability Company"]),
    form("inc", Class::Limited, &["Inc", "Incorporated"]),
    form("gmbh", Class::Limited, &["GmbH", "G.m.b.H.", "Ges.m.b.H.", "Gesellschaft mit beschränkter Haftung", "gGmbH"]),
    form("ug", Class::Limited, &["UG", "UG (haftungsbeschränkt)", "Unternehmergesellschaft"]),
    form("sarl", Class::Limited, &["SARL", "S.A.R.L.", "Sàrl", "Société à responsabilité limitée"]),
    form("eurl", Class::Limited, &["EURL"]),
    form("sas", Class::Limited, &["SAS", "S.A.S.", "Société par actions simplifiée", "SASU"]),
    form("bv", Class::Limited, &["BV", "B.V.", "Besloten Vennootschap"]),
    form("bvba", Class::Limited, &["BVBA", "Besloten Vennootschap met beperkte aansprakelijkheid", "SPRL", "Société privée à responsabilité limitée"]),
    form("srl", Class::Limited, &["SRL", "S.R.L.", "Società a responsabilità limitata"]),
    form("sl", Class::Limited, &["S.L.", "SL", "Sociedad Limitada", "S.L.U."]),
    form("aps", Class::Limited, &["ApS", "Anpartsselskab", "IVS"]),
    form("oy", Class::Limited, &["Oy", "Osakeyhtiö"]),
    form("ou", Class::Limited, &["OÜ", "Osaühing"]),
    form("sia", Class::Limited, &["SIA"]),
    form("uab", Class::Limited, &["UAB"]),
    form("sro", Class::Limited, &["s.r.o.", "s. r. o.", "spol. s r.o.", "spol. s r. o.", "společnost s ručením omezeným", "spoločnosť s ručením obmedzeným"]),
    form("spzoo", Class::Limited, &["sp. z o.o.", "Sp. z o. o.", "Spółka z ograniczoną odpowiedzialnością"]),
    form("kft", Class::Limited, &["Kft"]),
    form("doo", Class::Limited, &["d.o.o."]),
    form("ood", Class::Limited, &["OOD", "EOOD"]),
    form("ooo", Class::Limited, &["ООО", "OOO", "Общество с ограниченной ответственностью", "Obshchestvo s ogranichennoy otvetstvennostyu", "ТОВ", "TOV"]),
    form("plc", Class::Stock, &["PLC", "P.L.C.", "Public Limited Company"]),
    form("corp", Class::Stock, &["Corp", "Corporation"]),
    form("ag", Class::Stock, &["AG", "Aktiengesellschaft"]),
    form("se", Class::Stock, &["SE", "Societas Europaea"]),
    form("sa", Class::Stock, &["SA", "S.A.", "S. A.", "Société Anonyme", "Spółka Akcyjna", "Sociedad Anónima"]),
    form("nv", Class::Stock, &["NV", "N.V.", "Naamloze Vennootschap"]),
    form("spa", Class::Stock, &["S.p.A.", "SpA", "Società per azioni"]),
    form("as", Class::Stock, &["AS", "A/S", "Aktieselskab", "Aksjeselskap", "Aktsiaselts", "a.s.", "a. s.", "akciová společnost", "akciová spoločnosť", "akc. spol."]),
    form("asa", Class::Stock, &["ASA", "Allmennaksjeselskap"]),
    form("ab", Class::Stock, &["AB", "Aktiebolag"]),
    form("oyj", Class::Stock, &["Oyj", "Julkinen osakeyhtiö"]),
    form("dd", Class::Stock, &["d.d."]),
    form("ad", Class::Stock, &["AD", "a.d."]),
    form("zrt", Class::Stock, &["Zrt", "Nyrt"]),
    form("jsc", Class::Stock, &["JSC", "Joint Stock Company", "АО", "AO", "Акционерное общество"]),
    form("pjsc", Class::Stock, &["PJSC", "Public Joint Stock Company", "ПАО", "PAO", "Публичное акционерное общество"]),
    form("ojsc", Class::Stock, &["OJSC", "Open Joint Stock Company", "ОАО", "OAO"]),
    form("cjsc", Class::Stock, &["CJSC", "Closed Joint Stock Company", "ЗАО", "ZAO"]),
    form("gmbhcokg", Class::LimitedPartnership, &["GmbH & Co. KG", "GmbH und Co. KG", "GmbH Co KG"]),
    form("kg", Class::LimitedPartnership, &["KG", "Kommanditgesellschaft"]),
    form("kgaa", Class::LimitedPartnership, &["KGaA"]),
    form("ks", Class::LimitedPartnership, &["K/S", "k.s."]),
    form("cv", Class::LimitedPartnership, &["CV", "C.V."]),
    form("ohg", Class::Partnership, &["OHG", "Offene Handelsgesellschaft"]),
    form("snc", Class::Partnership, &["SNC", "Société en nom collectif", "v.o.s.", "VOF", "I/S"]),
    form("llp", Class::LimitedLiabilityPartnership, &["LLP", "Limited Liability Partnership", "ТОО", "TOO"]),
    form("ek", Class::Sole, &["e.K.", "ИП"]),
    form("ev", Class::Association, &["e.V.", "eingetragener Verein"]),
    form("asbl", Class::Association, &["ASBL", "VZW", "o.p.s.", "z.s."]),
    form("foundation", Class::Association, &["Stiftung", "Stichting", "Foundation"]),
    form("eg", Class::Cooperative, &["eG"]),
    form("gie", Class::Cooperative, &["GIE"]),
    form("fgup", Class::State, &["ФГУП", "FGUP", "š.p.", "s.p."]),
];

/// Words that the law or a register adds to a name while the company is wound up.
static STANDINGS: &[&str] = &[
    "in liquidation",
    "in Liquidation",
    "i. L.",
    "en liquidation",
    "in liquidazione",
    "v likvidácii",
    "v likvidaci",
    "v konkurze",
    "in receivership",
    "in administration",
    "under avvikling",
    "konkursbo",
];

/// What stands at the end or the beginning of a name and is no part of it, by its words.
static ADDITIONS: LazyLock<HashMap<Vec<String>, Option<&'static Form>>> = LazyLock::new(|| {
    let read = |text: &str| [Umlauts::Dropped, Umlauts::Spelt].map(|umlauts| words(text, umlauts));
    let forms =
        FORMS.iter().flat_map(|form| form.spellings.iter().flat_map(move |s| read(s)).map(move |w| (w, Some(form))));
    let standings = STANDINGS.iter().flat_map(|text| read(text)).map(|words| (words, None));
    forms.chain(standings).collect()
});

/// The most words of an addition.
static LONGEST: LazyLock<usize> = LazyLock::new(|| ADDITIONS.keys().map(Vec::len).max().unwrap_or(0));

/// Takes the legal forms off a name, from its end and then from its beginning. A name that is nothing else stays whole.
pub(super) fn split(mut words: Vec<String>) -> (Vec<String>, Vec<&'static Form>) {
    let mut found = Vec::new();
    loop {
        let most = (*LONGEST).min(words.len().saturating_sub(1));
        let behind = |n: &usize| words.len() - n;
        let last = (1..=most).rev().find_map(|n| Some((n, ADDITIONS.get(words.get(behind(&n)..)?)?)));
        if let Some((n, form)) = last {
            words.truncate(words.len() - n);
            found.extend(*form);
            continue;
        }
        let first = (1..=most).rev().find_map(|n| Some((n, ADDITIONS.get(words.get(..n)?)?)));
        let Some((n, form)) = first else { return (words, found) };
        words.drain(..n);
        found.extend(*form);
    }
}
