//! The two questions that a call may have to put to the store before it can go on. Each has a tenth of a second; without an
//! answer this process decides by itself.

use std::{
    pin::{Pin, pin},
    time::Duration,
};

use tokio::time::timeout;

use crate::{
    breaker::inner::BreakerInner,
    clock::Stamp,
    fleet::{message::Message, record_codec, store_handle::StoreHandle},
    state::fleet_view::ASK,
    store::{LeaseAnswer, Op, StoreError},
};

/// Our reading of the store's clock is off by no more than this.
const APART: Duration = Duration::from_secs(1);

/// Asks whether this process may probe, and enters the answer.
pub(crate) async fn probe(inner: &BreakerInner, store_handle: &StoreHandle) {
    let (Some(store), Some((mut lease, _))) = (store_handle.fleet(), record_codec::lease(inner, store_handle)) else {
        return;
    };
    let asked = store_handle.now();
    let answer = limited(ASK, async {
        match store.lease(&lease).await? {
            LeaseAnswer::Early(rest) if rest > APART => {
                // Its clock was set back, and would keep everyone waiting for as much: ours, which cannot be set, says that it is due.
                lease.due = Stamp::default();
                store.lease(&lease).await
            }
            answer => Ok(answer),
        }
    })
    .await;
    store_handle.report(Op::Lease, &answer);
    match answer {
        Ok(LeaseAnswer::Granted) => {
            store_handle.leased(&inner.name);
            record_codec::with_fleet_view(inner, |fleet_view, _, _| fleet_view.granted(asked.after(lease.lasting)));
        }
        // Our reading of the store's clock is a little off: its own decides.
        Ok(LeaseAnswer::Taken(rest) | LeaseAnswer::Early(rest)) => {
            record_codec::with_fleet_view(inner, |fleet_view, _, now| fleet_view.taken(now.after(rest), now))
        }
        Ok(LeaseAnswer::Outdated(text)) => match text.as_deref().map(Message::decode) {
            Some(Some(Message::Record(record, text))) => {
                record_codec::with_fleet_view(inner, |fleet_view, _, _| fleet_view.ask_again());
                record_codec::received(inner, store_handle, &record, &text, store_handle.store_clock());
            }
            // The store has lost the opening: it is our own affair.
            _ => record_codec::with_fleet_view(inner, |fleet_view, policy, now| {
                fleet_view.alone(now.after(policy.lease))
            }),
        },
        Err(_) => {
            store_handle.set_up(false);
            record_codec::with_fleet_view(inner, |fleet_view, policy, now| fleet_view.alone(now.after(policy.lease)));
        }
    }
}

/// Asks for a token of the fleet's rate limit, and enters the answer.
pub(crate) async fn token(inner: &BreakerInner, store_handle: &StoreHandle) {
    let mut policy = None;
    inner.operate(|state, _, _| {
        policy = state.fleet_limit.as_ref().map(|fleet_limit| fleet_limit.policy);
        (None, None)
    });
    let (Some(store), Some(policy)) = (store_handle.fleet(), policy) else { return };
    let answer = limited(ASK, store.take(&inner.name, &policy)).await;
    store_handle.report(Op::Limit, &answer);
    if answer.is_err() {
        store_handle.set_up(false);
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

/// `question`, given up after `patience`.
pub(crate) async fn limited<T>(
    patience: Duration,
    question: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let question: Pin<&mut _> = pin!(question);
    timeout(patience, question).await.unwrap_or_else(|_| Err(StoreError::late(patience)))
}
