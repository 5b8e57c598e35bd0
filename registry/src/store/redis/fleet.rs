//! How a fleet shares state through Redis. Each function is one script.

use std::{pin::Pin, sync::atomic::Ordering, time::Duration};

use futures::StreamExt;
use redis::aio::PubSubStream;

use super::{BATCH, RedisStore, connection::store_error, millis, scripts::INDEX_MILLIS};
use crate::{
    clock::{Stamp, saturating_nanos},
    outcome::ServiceName,
    policy::RateLimitPolicy,
    store::{
        error::Answer,
        fleet_store::{FleetStore, Lease, LeaseAnswer, News, Put, PutAnswer, Subscription},
        message::{LeaseNote, Message},
    },
};

/// The most changes that one sync reads. The next sync reads the rest.
const CHANGES: usize = 20_000;

impl FleetStore for RedisStore {
    fn put<'a>(&'a self, puts: &'a [Put]) -> Answer<'a, Vec<PutAnswer>> {
        Box::pin(async move {
            let mut script = self.scripts.put.prepare_invoke();
            script.key(self.key("index", "")).arg(self.key("events", "")).arg(INDEX_MILLIS);
            for put in puts {
                script.key(self.record_key(&put.service));
                script
                    .arg(put.service.as_str())
                    .arg(put.expected.as_deref().unwrap_or(""))
                    .arg(&*put.text)
                    .arg(millis(put.keep));
            }
            let answers: Vec<(u8, String)> = self.ask(async |c| script.invoke_async(c).await).await?;
            let read = |(done, present): (u8, String)| match done {
                1 => PutAnswer::Done,
                _ => PutAnswer::Differs((!present.is_empty()).then_some(present)),
            };
            Ok(answers.into_iter().map(read).collect())
        })
    }

    fn lease<'a>(&'a self, request: &'a Lease) -> Answer<'a, LeaseAnswer> {
        Box::pin(async move {
            let mut script = self.scripts.lease.key(self.record_key(&request.service));
            script.key(self.lease_key(request)).arg(request.record.as_deref().unwrap_or("")).arg(&request.process);
            script.arg(request.due.as_micros()).arg(millis(request.lasting)).arg(self.key("events", ""));
            script.arg(Message::Lease(LeaseNote::of(request)).encode());
            let answer: (u8, i64, String) = self.ask(async |c| script.invoke_async(c).await).await?;
            Ok(match answer {
                (1, ..) => LeaseAnswer::Granted,
                (4, rest, _) => LeaseAnswer::Early(Duration::from_micros(rest.unsigned_abs())),
                // A negative time means a key without an end, which is foreign.
                (2, rest, _) => LeaseAnswer::Taken(u64::try_from(rest).map_or(request.lasting, Duration::from_millis)),
                (_, _, text) => LeaseAnswer::Outdated((!text.is_empty()).then_some(text)),
            })
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease) -> Answer<'a, bool> {
        Box::pin(async move {
            let mut script = self.scripts.renew.key(self.lease_key(lease));
            script.arg(&lease.process).arg(millis(lease.lasting)).arg(self.key("events", ""));
            script.arg(Message::Lease(LeaseNote::of(lease)).encode());
            self.ask(async |c| script.invoke_async(c).await).await
        })
    }

    fn take<'a>(&'a self, service: &'a ServiceName, limit: &'a RateLimitPolicy) -> Answer<'a, Result<(), Duration>> {
        Box::pin(async move {
            let spacing = (saturating_nanos(limit.per) / u64::from(limit.limit.get())).div_ceil(1000);
            let burst = spacing.saturating_mul(u64::from(limit.limit.get() - 1));
            let mut script = self.scripts.take.key(self.key("rate", service));
            script.arg(spacing).arg(burst);
            let wait: u64 = self.ask(async |c| script.invoke_async(c).await).await?;
            Ok(if wait == 0 { Ok(()) } else { Err(Duration::from_micros(wait)) })
        })
    }

    fn sync<'a>(&'a self, process: &'a str, since: Stamp) -> Answer<'a, News> {
        Box::pin(async move {
            // An empty store gets a name that no process has seen.
            let life = format!("{process}-{}", self.lives.fetch_add(1, Ordering::Relaxed));
            let mut script = self.scripts.sync.key(self.key("index", ""));
            script.key(self.key("processes", "")).key(self.key("life", "")).arg(process).arg(since.as_micros() / 1000);
            script.arg(life).arg(CHANGES);
            let (seconds, micros, processes, life, names): (u64, u64, u32, String, Vec<String>) =
                self.ask(async |c| script.invoke_async(c).await).await?;
            let mut changed = Vec::with_capacity(names.len());
            for names in names.chunks(BATCH) {
                let keys: Vec<_> = names.iter().map(|name| self.record_key(name)).collect();
                let texts = self.texts(&keys).await?;
                let present = names.iter().zip(texts).filter_map(|(name, text)| Some((name.as_str().into(), text?)));
                changed.extend(present);
            }
            Ok(News { now: Stamp::from_micros(seconds * 1_000_000 + micros), processes, life, changed })
        })
    }

    fn publish<'a>(&'a self, texts: &'a [String]) -> Answer<'a, ()> {
        Box::pin(async move {
            let channel = self.key("events", "");
            for texts in texts.chunks(BATCH) {
                let mut pipe = redis::pipe();
                for text in texts {
                    pipe.cmd("PUBLISH").arg(&channel).arg(text).ignore();
                }
                self.ask(async |c| pipe.query_async::<()>(c).await).await?;
            }
            Ok(())
        })
    }

    fn subscribe(&self) -> Answer<'_, Box<dyn Subscription>> {
        Box::pin(async {
            let mut connection = self.client.get_async_pubsub().await.map_err(|error| store_error(&error))?;
            connection.subscribe(self.key("events", "")).await.map_err(|error| store_error(&error))?;
            Ok(Box::new(Channel(connection.into_on_message())) as Box<dyn Subscription>)
        })
    }
}

impl RedisStore {
    fn lease_key(&self, lease: &Lease) -> String {
        self.key("lease", &format!("{}:{}", lease.service, lease.epoch.as_micros()))
    }
}

struct Channel(PubSubStream);

impl Subscription for Channel {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<String>> + Send + '_>> {
        Box::pin(async {
            loop {
                let message = self.0.next().await?;
                if let Ok(text) = message.get_payload() {
                    return Some(text);
                }
            }
        })
    }
}
