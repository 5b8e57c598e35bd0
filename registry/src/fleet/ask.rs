//! The two questions that a call may have to put to the store before it can go on. Each has a tenth of a second; without an
//! answer this process decides by itself.

use std::{
    pin::{Pin, pin},
    time::Duration,
};

use tokio::time::timeout;

use crate::{
    fleet::{link::Link, member, message::Message, share::ASK},
    shell::Core,
    snapshot::Stamp,
    store::{LeaseAnswer, Op, StoreError},
};

/// Our reading of the store's clock is off by no more than this.
const APART: Duration = Duration::from_secs(1);

/// Asks whether this process may probe, and enters the answer.
pub(crate) async fn probe(core: &Core, link: &Link) {
    let (Some(store), Some((mut lease, _))) = (link.fleet(), member::lease(core, link)) else { return };
    let asked = link.now();
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
    link.report(Op::Lease, &answer);
    match answer {
        Ok(LeaseAnswer::Granted) => {
            link.leased(&core.name);
            member::with_share(core, |share, _, _| share.granted(asked.after(lease.lasting)));
        }
        // Our reading of the store's clock is a little off: its own decides.
        Ok(LeaseAnswer::Taken(rest) | LeaseAnswer::Early(rest)) => {
            member::with_share(core, |share, _, now| share.taken(now.after(rest), now))
        }
        Ok(LeaseAnswer::Outdated(text)) => match text.as_deref().map(Message::decode) {
            Some(Some(Message::Record(record, text))) => {
                member::with_share(core, |share, _, _| share.ask_again());
                member::heard(core, link, &record, &text, link.store_clock());
            }
            // The store has lost the opening: it is our own affair.
            _ => member::with_share(core, |share, policy, now| share.alone(now.after(policy.lease))),
        },
        Err(_) => {
            link.set_up(false);
            member::with_share(core, |share, policy, now| share.alone(now.after(policy.lease)));
        }
    }
}

/// Asks for a token of the fleet's rate limit, and enters the answer.
pub(crate) async fn token(core: &Core, link: &Link) {
    let mut policy = None;
    core.operate(|books, _, _| {
        policy = books.quota.as_ref().map(|quota| quota.policy);
        (None, None)
    });
    let (Some(store), Some(policy)) = (link.fleet(), policy) else { return };
    let answer = limited(ASK, store.take(&core.name, &policy)).await;
    link.report(Op::Limit, &answer);
    if answer.is_err() {
        link.set_up(false);
    }
    core.operate(|books, now, _| {
        if let Some(quota) = &mut books.quota {
            match answer {
                Ok(Ok(())) => quota.granted(now),
                Ok(Err(wait)) => quota.refused(wait, now),
                Err(_) => quota.up = false,
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
