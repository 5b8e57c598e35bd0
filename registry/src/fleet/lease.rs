//! The two questions that a call may ask the store before it goes on. Each waits a tenth of a second at most; without an answer
//! this process decides by itself.

use std::{
    pin::{Pin, pin},
    time::Duration,
};

use tokio::time::timeout;

use super::record_codec;
use crate::{
    breaker::inner::BreakerInner,
    clock::Stamp,
    state::fleet_view::ASK,
    store::{LeaseAnswer, Op, StoreError, handle::StoreHandle, message::Message},
};

/// Our reading of the store's clock is off by less than this.
const MAX_CLOCK_ERROR: Duration = Duration::from_secs(1);

/// Asks whether this process may probe, and enters the answer.
pub(crate) async fn probe(inner: &BreakerInner, handle: &StoreHandle) {
    let (Some(store), Some((mut lease, _))) = (handle.fleet(), record_codec::lease(inner, handle)) else {
        return;
    };
    let asked_at = handle.now();
    let answer = limited(ASK, async {
        match store.lease(&lease).await? {
            LeaseAnswer::Early(rest) if rest > MAX_CLOCK_ERROR => {
                // The store's clock was set back, and every process would wait that long. Our clock, which cannot be set, says
                // that the probe is due.
                lease.due = Stamp::default();
                store.lease(&lease).await
            }
            answer => Ok(answer),
        }
    })
    .await;
    handle.report(Op::Lease, &answer);
    match answer {
        Ok(LeaseAnswer::Granted) => {
            handle.leased(&inner.name);
            record_codec::with_fleet_view(inner, |fleet_view, _, _| fleet_view.granted(asked_at.after(lease.lasting)));
        }
        // Our reading of the store's clock is a little off: the store decides.
        Ok(LeaseAnswer::Taken(rest) | LeaseAnswer::Early(rest)) => {
            record_codec::with_fleet_view(inner, |fleet_view, _, now| fleet_view.taken(now.after(rest), now))
        }
        Ok(LeaseAnswer::Outdated(text)) => match text.as_deref().map(Message::decode) {
            Some(Some(Message::Record(record, text))) => {
                record_codec::with_fleet_view(inner, |fleet_view, _, _| fleet_view.ask_again());
                record_codec::receive(inner, handle, &record, &text, handle.store_clock());
            }
            // The store has lost the opening: this process probes by itself.
            _ => record_codec::with_fleet_view(inner, |fleet_view, policy, now| {
                fleet_view.alone(now.after(policy.lease))
            }),
        },
        Err(_) => {
            handle.set_up(false);
            record_codec::with_fleet_view(inner, |fleet_view, policy, now| fleet_view.alone(now.after(policy.lease)));
        }
    }
}

/// Asks for a token of the fleet's rate limit, and enters the answer.
pub(crate) async fn token(inner: &BreakerInner, handle: &StoreHandle) {
    let mut policy = None;
    inner.operate(|state, _, _| {
        policy = state.fleet_limit.as_ref().map(|fleet_limit| fleet_limit.policy);
        (None, None)
    });
    let (Some(store), Some(policy)) = (handle.fleet(), policy) else { return };
    let answer = limited(ASK, store.take(&inner.name, &policy)).await;
    handle.report(Op::Limit, &answer);
    if answer.is_err() {
        handle.set_up(false);
    }
    inner.operate(|state, now, _| {
        if let Some(fleet_limit) = &mut state.fleet_limit {
            match answer {
                Ok(Ok(())) => fleet_limit.granted(now),
                Ok(Err(wait)) => fleet_limit.refused(wait, now),
                Err(_) => fleet_limit.up = false,
            }
        }
        (None, None)
    });
}

/// The answer to `question`, or an error after `patience`.
pub(crate) async fn limited<T>(
    patience: Duration,
    question: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let question: Pin<&mut _> = pin!(question);
    timeout(patience, question).await.unwrap_or_else(|_| Err(StoreError::late(patience)))
}
