//! What a process takes over from the one before it, or from its fleet, before its first call.

use crate::{
    fleet::{
        lease::limited,
        record_codec,
        store_handle::{StoreClock, StoreHandle},
        store_sync::{PATIENCE_ALL, StoreSync},
    },
    outcome::ServiceName,
    store::{
        Content, Loaded, Op,
        record::{Snapshot, fingerprint},
    },
};

impl StoreSync {
    /// Enters everything that the store remembers. What cannot be used is logged, and costs its own breaker only.
    pub(super) async fn load(&self, store_handle: &StoreHandle) {
        let names: Vec<ServiceName> = self.registry.config().service_names().map(ServiceName::from).collect();
        let loaded = limited(PATIENCE_ALL, async {
            let clock = store_handle.read_clock().await?;
            Ok((clock, store_handle.store.load(&names).await?))
        })
        .await;
        store_handle.report(Op::Load, &loaded);
        let store = store_handle.store.kind();
        let Ok((clock, records)) = loaded else {
            return tracing::warn!(store, "breakers could not be restored: all start closed");
        };
        let (mut restored, mut too_many, total) = (0_usize, 0_usize, records.len());
        for Loaded { service, content } in records {
            let problem = match (&service, content) {
                (service, Content::Text(text)) => match Snapshot::decode(&text, service.as_deref()) {
                    Ok(record) => {
                        if self.restore_one(&record, &text, clock) {
                            // Beyond the bound of names made on first use a breaker is forgotten as soon as nobody holds it.
                            let kept = self.registry.existing(&record.service).is_some();
                            *(if kept { &mut restored } else { &mut too_many }) += 1;
                        }
                        continue;
                    }
                    Err(unreadable) => unreadable.to_string(),
                },
                (_, Content::WrongType(kind)) => format!("it is a {kind} and not a text"),
                (_, Content::Missing) => "it is gone".to_owned(),
            };
            let service = service.as_deref().unwrap_or("?");
            tracing::warn!(store, service, problem, "a breaker's record cannot be used: it starts closed");
        }
        if too_many > 0 {
            tracing::warn!(
                store,
                too_many,
                "more breakers are remembered than `names.max_dynamic` allows: they start closed"
            );
        }
        tracing::info!(store, records = total, restored, "breakers restored");
    }

    fn restore_one(&self, record: &Snapshot, text: &str, clock: StoreClock) -> bool {
        if record.is_open() && record.policy != fingerprint(&self.registry.policy_of(&record.service)) {
            let service = record.service.as_str();
            tracing::info!(
                service,
                "a breaker's record was made under another policy: it stays open as long as this one allows"
            );
        }
        if record.is_blank() && self.registry.existing(&record.service).is_none() {
            return false;
        }
        record_codec::restore(&self.registry.inner(&record.service), record, text, clock)
    }

    /// Says so if the configuration wants to share and the store cannot, or the other way round.
    pub(super) fn say_whether_shared(&self, store_handle: &StoreHandle) {
        let (store, state) = (store_handle.store.kind(), self.registry.config().shares_state());
        match store_handle.fleet() {
            None if state => {
                tracing::warn!(store, "`fleet: share` needs a Redis store: this process goes by its own state")
            }
            // All is well if it is the only one.
            None if self.registry.shares() => {
                tracing::info!(store, "rate limits with `scope: fleet` count this process alone: several need Redis");
            }
            Some(_) if !state => {
                tracing::info!(store, "breakers are remembered and not shared: `fleet: share` would share them");
            }
            _ => {}
        }
    }
}
