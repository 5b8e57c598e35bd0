//! Records in Redis: reading and writing them.

use std::collections::BTreeSet;

use super::{BATCH, RedisStore, millis, scripts::INDEX_MILLIS};
use crate::{
    clock::Stamp,
    outcome::ServiceName,
    store::{
        error::{Answer, StoreError, StoreErrorKind},
        fleet_store::FleetStore,
        interface::{Content, Loaded, Record, Store},
        record::Snapshot,
    },
};

impl Store for RedisStore {
    fn kind(&self) -> &'static str {
        "redis"
    }

    fn now(&self) -> Answer<'_, Option<Stamp>> {
        Box::pin(async {
            let time: (u64, u64) = self.ask(async |c| redis::cmd("TIME").query_async(c).await).await?;
            Ok(Some(Stamp::from_micros(time.0 * 1_000_000 + time.1)))
        })
    }

    fn load<'a>(&'a self, services: &'a [ServiceName]) -> Answer<'a, Vec<Loaded>> {
        Box::pin(async move {
            let indexed = self.indexed().await?;
            let mut names = indexed.clone();
            names.extend(services.iter().map(|name| name.as_str().to_owned()));
            let names: Vec<String> = names.into_iter().collect();
            let mut loaded = Vec::new();
            for names in names.chunks(BATCH) {
                self.load_batch(names, &indexed, &mut loaded).await?;
            }
            Ok(loaded)
        })
    }

    fn save<'a>(&'a self, records: &'a [Record]) -> Answer<'a, ()> {
        Box::pin(async move {
            let index = self.key("index", "");
            for records in records.chunks(BATCH) {
                let mut pipe = redis::pipe();
                for record in records {
                    let (key, service) = (self.record_key(&record.service), record.service.as_str());
                    match &record.text {
                        Some(text) => {
                            let changed = Snapshot::decode(text, None).map_or(0, |s| s.epoch.as_micros()) / 1000;
                            pipe.cmd("SET").arg(key).arg(text).arg("PX").arg(millis(record.keep)).ignore();
                            pipe.cmd("ZADD").arg(&index).arg(changed).arg(service).ignore();
                        }
                        None => {
                            pipe.cmd("DEL").arg(key).ignore();
                            pipe.cmd("ZREM").arg(&index).arg(service).ignore();
                        }
                    }
                }
                pipe.cmd("PEXPIRE").arg(&index).arg(INDEX_MILLIS).ignore();
                self.ask(async |c| pipe.query_async::<()>(c).await).await?;
            }
            Ok(())
        })
    }

    fn fleet(&self) -> Option<&dyn FleetStore> {
        Some(self)
    }
}

impl RedisStore {
    /// The services in the index.
    async fn indexed(&self) -> Result<BTreeSet<String>, StoreError> {
        let index = self.key("index", "");
        let indexed = self.ask(async |c| redis::cmd("ZRANGE").arg(&index).arg(0).arg(-1).query_async(c).await).await;
        match indexed {
            // The key holds a foreign value: the configured services are found without it.
            Err(error) if error.kind() == StoreErrorKind::Other => Ok(BTreeSet::new()),
            result => result,
        }
    }

    async fn load_batch(
        &self,
        names: &[String],
        indexed: &BTreeSet<String>,
        loaded: &mut Vec<Loaded>,
    ) -> Result<(), StoreError> {
        let keys: Vec<_> = names.iter().map(|name| self.record_key(name)).collect();
        let texts = self.texts(&keys).await?;
        // A value that is no string reads as missing.
        let absent = names.iter().zip(&texts).filter(|(_, text)| text.is_none()).map(|(name, _)| name);
        let absent: Vec<&String> = absent.collect();
        let types = self.types(&absent).await?;
        let wrong = absent.into_iter().zip(types).filter_map(|(name, kind)| {
            let content = match kind.as_str() {
                "none" if indexed.contains(name) => Content::Missing,
                "none" => return None,
                _ => Content::WrongType(kind),
            };
            Some(Loaded::new(Some(name.as_str().into()), content))
        });
        loaded.extend(wrong);
        loaded.extend(
            names
                .iter()
                .zip(texts)
                .filter_map(|(name, text)| Some(Loaded::new(Some(name.as_str().into()), Content::Text(text?)))),
        );
        Ok(())
    }

    /// The values of `keys`. A value that is not UTF-8 becomes a text that no record matches.
    pub(super) async fn texts(&self, keys: &[String]) -> Result<Vec<Option<String>>, StoreError> {
        let texts: Vec<Option<Vec<u8>>> = self.ask(async |c| redis::cmd("MGET").arg(keys).query_async(c).await).await?;
        Ok(texts.into_iter().map(|text| Some(String::from_utf8_lossy(&text?).into_owned())).collect())
    }

    async fn types(&self, names: &[&String]) -> Result<Vec<String>, StoreError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        for name in names {
            pipe.cmd("TYPE").arg(self.record_key(name));
        }
        self.ask(async |c| pipe.query_async(c).await).await
    }
}
