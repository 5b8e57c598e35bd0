//! Restores breakers from the store before the first call.

use super::{
    lease::limited,
    record_codec,
    store_sync::{PATIENCE_ALL, SyncTask},
};
use crate::{
    outcome::ServiceName,
    store::{
        Content, Loaded, Op, StoreClock,
        record::{Snapshot, fingerprint},
    },
};

impl SyncTask {
    /// Enters every record of the store. A record that cannot be used is logged, and only its own breaker starts closed.
    pub(super) async fn load(&self) {
        let names: Vec<ServiceName> = self.breakers.config().service_names().map(ServiceName::from).collect();
        let loaded = limited(PATIENCE_ALL, async {
            let clock = self.handle.read_clock().await?;
            Ok((clock, self.handle.store.load(&names).await?))
        })
        .await;
        self.handle.report(Op::Load, &loaded);
        let store = self.handle.store.kind();
        let Ok((clock, records)) = loaded else {
            return tracing::warn!(store, "breakers could not be restored: all start closed");
        };
        let (mut restored, mut too_many, total) = (0_usize, 0_usize, records.len());
        for Loaded { service, content } in records {
            match read(service.as_ref(), content) {
                Ok((record, text)) => {
                    if self.restore_one(&record, &text, clock) {
                        // Beyond `names.max_dynamic` the registry forgets a breaker as soon as its last handle is dropped.
                        let kept = self.breakers.existing(&record.service).is_some();
                        *(if kept { &mut restored } else { &mut too_many }) += 1;
                    }
                }
                Err(problem) => {
                    let service = service.as_deref().unwrap_or("?");
                    tracing::warn!(store, service, problem, "a breaker's record cannot be used: it starts closed");
                }
            }
        }
        if too_many > 0 {
            tracing::warn!(
                store,
                too_many,
                "the store has more breakers than `names.max_dynamic` allows: the rest start closed"
            );
        }
        tracing::info!(store, records = total, restored, "breakers restored");
    }

    fn restore_one(&self, record: &Snapshot, text: &str, clock: StoreClock) -> bool {
        let same_policy = record.policy == fingerprint(&self.breakers.policy_of(&record.service));
        if record.is_open() && !same_policy {
            let service = record.service.as_str();
            tracing::warn!(service, "a breaker's record was made under another policy: it starts closed");
        }
        if record.is_blank() && self.breakers.existing(&record.service).is_none() {
            return false;
        }
        record_codec::restore(&self.breakers.inner(&record.service), record, text, same_policy, clock)
    }

    /// Logs a configuration that shares breakers with a store that cannot, or the other way round.
    pub(super) fn log_whether_shared(&self) {
        let (store, state) = (self.handle.store.kind(), self.breakers.config().shares_state());
        match self.handle.fleet() {
            None if state => {
                tracing::warn!(store, "`fleet: share` needs a Redis store: this process goes by its own state")
            }
            // That is right for a single process.
            None if self.breakers.shares() => {
                tracing::info!(store, "rate limits with `scope: fleet` count this process alone: several need Redis");
            }
            Some(_) if !state => {
                tracing::info!(store, "breakers are stored but not shared: `fleet: share` would share them");
            }
            _ => {}
        }
    }
}

/// The record in `content`, or why it cannot be used.
fn read(service: Option<&ServiceName>, content: Content) -> Result<(Snapshot, String), String> {
    match content {
        Content::Text(text) => match Snapshot::decode(&text, service.map(ServiceName::as_str)) {
            Ok(record) => Ok((record, text)),
            Err(unreadable) => Err(unreadable.to_string()),
        },
        Content::WrongType(kind) => Err(format!("it is a {kind} and not a text")),
        Content::Missing => Err("it is gone".to_owned()),
    }
}
