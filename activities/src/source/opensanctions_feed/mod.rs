//! OpenSanctions as files: the lists themselves, for the time when the API cannot be asked.
//!
//! The index of a data set names its edition, its age and the checksum of each file. The file of entities has gigabytes, so
//! it goes through a condenser that keeps what a screening of companies needs, and is believed when its checksum is right.
//! A copy that is one edition behind is brought up to date by the published changes. Our own comparison of names is plainer
//! than that of the API, and a feed that has stopped moving is a part of a screening: findings say both.

mod digest;

use circuit_registry::CallError;
use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::BoxFuture;
use jiff::Timestamp;

use self::digest::{Changes, Condenser, Likeness};
use crate::{
    editions::Edition,
    model::{Facts, Hit, Screening, Status, Subject},
    parse::date::day,
    parse::json::{self, Node, lacks},
    spec::{
        Answer, Base, Class, Countries, Fallback, Flow, Need, Operation, Probe, Request, Session, Source, SourceError,
        Take, on,
    },
};

/// The row.
pub static SOURCE: Source = Source {
    name: "opensanctions_feed",
    title: "OpenSanctions, watch lists as files",
    breaker: "opensanctions_feed",
    base: Base { env: "OPENSANCTIONS_FEED_BASE_URL", default: "https://data.opensanctions.org" },
    timeout: Duration::from_secs(15),
    rules: &[on(304).means(Class::Ok, "")], // asked whether there is a newer edition
    probe: Some(Probe::json(index_request)),
    limits: "none published; each edition is fetched once",
    terms: "CC BY-NC 4.0; commercial use needs a licence",
    operations: &[
        Operation {
            name: "opensanctions_feed.index",
            answers: "the edition of the sanctions lists that is in force",
            flow: Flow::Single { request: |_| Some(index_request()), parse: index },
            ..Operation::BLANK
        },
        Operation {
            name: "opensanctions_feed.screen",
            answers: "sanctions-list entries that resemble the company, by our own copy of the lists",
            countries: Countries::Any,
            needs: &[Need::Name],
            flow: Flow::Steps(screen),
            fallbacks: &[Fallback {
                via: "last_good_copy",
                proves: "the last good feed was searched instead",
                source: &SOURCE,
                flow: Flow::Steps(screen_by_kept),
            }],
            ..Operation::BLANK
        },
        Operation {
            name: "opensanctions_feed.delta",
            answers: "entries resembling the company that the newest edition added, changed or removed",
            countries: Countries::Any,
            needs: &[Need::Name],
            flow: Flow::Steps(delta),
            ..Operation::BLANK
        },
    ],
    ..Source::BLANK
};

const DATASET: &str = "sanctions";
const ENTITIES: &str = "entities.ftm.json";

/// Name of the copy.
const FILE: &str = "opensanctions_feed";

/// For how long the newest edition is taken for the newest.
const CHECK: Duration = Duration::from_secs(6 * 3600);

/// Editions come several times a day. One that is older than this has been left behind.
const STALE: Duration = Duration::from_secs(3 * 86_400);

/// At most this many editions are built from their changes; a copy that is further behind is fetched anew.
const STEPS: usize = 20;

/// A file of changes that is larger than this saves nothing.
const LARGEST_DELTA: u64 = 200_000_000;

/// An attempt has a minute.
const DOWNLOAD: Duration = Duration::from_secs(45);

/// An edition, as the index announces it.
#[derive(Debug, PartialEq)]
struct Announcement {
    version: String,
    updated: Timestamp,
    entities: Option<u64>,
    link: String,
    sha1: String,
    size: u64,
    changes: Option<String>,
}

fn index_request() -> Request {
    Request::get("/datasets/latest").segment(DATASET).segment("index.json")
}

fn announcement(body: &[u8]) -> Result<Announcement, SourceError> {
    let document = json::parse(body)?;
    let root = Node::root(&document);
    let named = |resource: &Node<'_>| resource.get("name").text().as_deref() == Some(ENTITIES);
    let file = root.require_list("resources")?.into_iter().find(named).ok_or_else(|| lacks(ENTITIES))?;
    Ok(Announcement {
        version: root.require_text("version")?,
        updated: root.get("updated_at").time().ok_or_else(|| lacks("updated_at"))?,
        entities: root.get("entity_count").count(),
        link: file.require_text("url")?,
        sha1: file.require_text("checksum")?.to_lowercase(),
        size: file.get("size").count().ok_or_else(|| lacks("size"))?,
        changes: root.get("delta_url").text(),
    })
}

fn index(body: &[u8]) -> Result<Answer, SourceError> {
    let announced = announcement(body)?;
    let count = announced.entities.map(|count| format!(", {count} entities")).unwrap_or_default();
    let notes = vec![format!("{DATASET}, version {}{count}", announced.version)];
    Ok(aged(Facts { notes, ..Facts::default() }, announced.updated))
}

/// An answer as of an edition. One that is old is not the whole answer.
fn aged(facts: Facts, updated: Timestamp) -> Answer {
    let answer = Answer::from(facts).dated(Some(updated));
    let age = Duration::try_from(Timestamp::now().duration_since(updated)).unwrap_or_default();
    if age <= STALE {
        return answer;
    }
    let reason = format!("has had no new edition since {}: newer entries are missing", day(updated));
    Answer { status: Status::Partial, reason: Some(reason), ..answer }
}

/// Hands a file to a reader and returns its result.
async fn read<R: Take + 'static, T: Send>(
    session: &Session<'_>,
    link: &str,
    reader: R,
    finish: impl Fn(&mut R) -> Result<T, SourceError> + Send + Sync,
) -> Result<T, CallError<SourceError>> {
    let reader = Arc::new(Mutex::new(reader));
    let request = Request::follow(link).accept("application/json, text/plain, */*").within(DOWNLOAD);
    let request = request.into_sink(reader.clone());
    session.ask(request, |_| finish(&mut reader.lock().unwrap_or_else(PoisonError::into_inner))).await
}

/// The copy of the newest edition. One session fetches, the others wait for it.
async fn newest(session: &Session<'_>) -> Result<Edition, CallError<SourceError>> {
    let mut slot = session.editions().slot(FILE).await;
    if let Some(edition) = slot.edition().filter(|_| slot.checked_within(CHECK, Timestamp::now())) {
        return Ok(edition.clone());
    }
    let newest = session.ask_since(index_request(), slot.etag(), |reply| announcement(&reply.body)).await?;
    let Some((announced, etag)) = newest else {
        slot.confirm(Timestamp::now());
        return slot.last().map_err(CallError::Upstream);
    };
    if let Some(edition) = slot.edition().filter(|edition| edition.version == announced.version).cloned() {
        let edition = Edition { date: announced.updated, ..edition };
        slot.replace(edition.clone(), Timestamp::now()).await;
        slot.confirmed_as(etag);
        return Ok(edition);
    }
    let updated = match slot.edition() {
        Some(edition) => caught_up(session, edition, &announced).await?,
        None => None,
    };
    let bytes = match updated {
        Some(bytes) => bytes,
        None => read(session, &announced.link, Condenser::new(announced.size), |c| c.finish(&announced.sha1)).await?,
    };
    let edition = Edition { version: announced.version, date: announced.updated, bytes: bytes.into() };
    slot.replace(edition.clone(), Timestamp::now()).await;
    slot.confirmed_as(etag);
    Ok(edition)
}

/// The copy with the changes since, if they lead without a gap from its version to the newest.
async fn caught_up(
    session: &Session<'_>,
    edition: &Edition,
    announced: &Announcement,
) -> Result<Option<Vec<u8>>, CallError<SourceError>> {
    let Some(link) = &announced.changes else { return Ok(None) };
    let versions = session.ask(Request::follow(link.as_str()), |reply| versions(&reply.body)).await?;
    let since = (Bound::Excluded(edition.version.clone()), Bound::Included(announced.version.clone()));
    let known = |version| versions.contains_key(version);
    if edition.version >= announced.version || !known(&edition.version) || !known(&announced.version) {
        return Ok(None);
    }
    let steps: Vec<_> = versions.range(since).map(|(_, link)| link).collect();
    if steps.len() > STEPS {
        return Ok(None);
    }
    let mut bytes = edition.bytes.to_vec();
    for link in steps {
        let changes = read(session, link, Changes::new(LARGEST_DELTA), Changes::finish).await?;
        bytes = digest::apply(&bytes, changes).map_err(CallError::Upstream)?;
    }
    Ok(Some(bytes))
}

/// The files of changes, by the version that each leads to. Versions begin with their time, so their order is that of time.
fn versions(body: &[u8]) -> Result<BTreeMap<String, String>, SourceError> {
    let document = json::parse(body)?;
    let versions = Node::root(&document).require("versions")?;
    if !versions.is_object() {
        return Err(lacks("versions"));
    }
    // To pass over a version that cannot be read would be to pass over its changes.
    let pair =
        |(version, link): (&str, Node<'_>)| Ok((version.to_owned(), link.text().ok_or_else(|| lacks("versions"))?));
    versions.members().map(pair).collect()
}

fn screen<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let edition = newest(session).await?;
        searched(session.subject(), edition).await
    })
}

/// By the copy there is.
fn screen_by_kept<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let edition = session.editions().slot(FILE).await.last().map_err(CallError::Upstream)?;
        by_copy(session, edition).await
    })
}

/// As the fallback for the API: by the copy there is, and only without one by the newest.
pub(super) fn screen_by_copy<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let kept = session.editions().slot(FILE).await.edition().cloned();
        let edition = match kept {
            Some(edition) => edition,
            None => newest(session).await?,
        };
        by_copy(session, edition).await
    })
}

async fn by_copy(session: &Session<'_>, edition: Edition) -> Result<Answer, CallError<SourceError>> {
    let hours = Timestamp::now().duration_since(edition.date).as_hours().max(0);
    let reason = format!("version {} of {}, {hours} hours old", edition.version, day(edition.date));
    let answer = searched(session.subject(), edition).await?;
    Ok(Answer { status: Status::Cached, reason: Some(reason), ..answer })
}

/// Looking through the copy takes a while, so it does not hold up those who wait for answers.
async fn searched(subject: &Subject, edition: Edition) -> Result<Answer, CallError<SourceError>> {
    let likeness = likeness(subject)?;
    let (bytes, date, version) = (edition.bytes, edition.date, edition.version);
    let work = tokio::task::spawn_blocking(move || digest::search(&bytes, &likeness));
    let hits = work.await.unwrap_or_else(|_| Err(SourceError::bad_shape("left a copy that cannot be read")));
    let notes = vec!["names were compared word by word, without transliteration; sanctions lists only".to_owned()];
    let screening = screening(subject, DATASET.to_owned(), version, hits.map_err(CallError::Upstream)?);
    Ok(aged(Facts { notes, ..screening }, date))
}

fn likeness(subject: &Subject) -> Result<Likeness, CallError<SourceError>> {
    let reason = "cannot be searched for a name without letters or digits";
    Likeness::of(subject).ok_or_else(|| CallError::Upstream(SourceError::business(reason)))
}

fn screening(subject: &Subject, dataset: String, version: String, hits: Vec<Hit>) -> Facts {
    let names = subject.name.clone().into_iter().collect();
    let screening = Screening { dataset, names, version: Some(version), hits };
    Facts { screening: Some(screening), ..Facts::default() }
}

fn delta<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let subject = session.subject();
        let likeness = likeness(subject)?;
        let announced = session.ask(index_request(), |reply| announcement(&reply.body)).await?;
        let Some(link) = &announced.changes else {
            return Err(CallError::Upstream(lacks("delta_url")));
        };
        let versions = session.ask(Request::follow(link.as_str()), |reply| versions(&reply.body)).await?;
        let (version, link) = versions
            .into_iter()
            .next_back()
            .ok_or_else(|| CallError::Upstream(SourceError::not_found("lists no changes")))?;
        let changes = read(session, &link, Changes::new(LARGEST_DELTA), Changes::finish).await?;
        let removed = changes.iter().filter(|change| change.is_removal()).count();
        let notes = vec![format!("{} entries added or changed, {removed} removed", changes.len() - removed)];
        let facts = screening(subject, format!("{DATASET}, changes"), version, digest::among(&changes, &likeness));
        Ok(aged(Facts { notes, ..facts }, announced.updated))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    const INDEX: &[u8] = include_bytes!("../../../../simulator/fixtures/opensanctions_feed/default.json");

    #[test]
    fn an_index_names_the_edition_and_its_file() {
        let announced = announcement(INDEX).expect("an edition");
        assert_eq!((announced.version.as_str(), announced.size), ("20261129125702-sim", 1536));
        assert!(announced.link.ends_with("/default/entities.ftm.json") && announced.changes.is_some());
        assert_survives_corruption("opensanctions_feed.index", index, INDEX);
    }

    #[test]
    fn an_edition_that_has_not_moved_is_a_part_of_the_answer() {
        let old = Timestamp::now().checked_sub(STALE * 2).expect("a time");
        let aged_answer = aged(Facts::default(), old);
        assert_eq!((aged_answer.status, aged_answer.as_of), (Status::Partial, Some(old)));
        assert_eq!(aged(Facts::default(), Timestamp::now()).status, Status::Complete);
    }

    #[test]
    fn versions_lead_to_files_of_changes() {
        let found = versions(br#"{"versions":{"2-b":"https://x/2","1-a":"https://x/1"}}"#).expect("versions");
        assert_eq!(found.into_keys().collect::<Vec<_>>(), ["1-a", "2-b"]);
        for body in [&b"{}"[..], br#"{"versions":[]}"#, br#"{"versions":7}"#, br#"{"versions":{"1-a":null}}"#] {
            assert_eq!(versions(body).expect_err("no versions").class, Class::BadShape);
        }
    }
}
