//! What the keeper does for those who cannot do it themselves: a caller without a runtime asks through it, and a probe that takes
//! longer than its lease keeps it.

use std::{future::pending, time::Duration};

use tokio::time::sleep;

use crate::{
    fleet::{
        ask::{self, limited},
        keeper::{Keeper, PATIENCE},
        link::Link,
        member,
    },
    outcome::ServiceName,
    store::{FleetStore, Op},
};

/// Leases are looked after this often.
const RENEW: Duration = Duration::from_millis(200);

impl Keeper {
    /// Asks for callers that cannot wait themselves, and renews leases while their probes are out.
    pub(super) async fn help(&self, link: &Link) {
        let Some(store) = link.fleet() else { return pending().await };
        let probes = async {
            loop {
                link.probes.filled.notified().await;
                for core in link.probes.take_all().iter().filter_map(|name| self.registry.existing(name)) {
                    ask::probe(&core, link).await;
                }
            }
        };
        let tokens = async {
            loop {
                link.tokens.filled.notified().await;
                for core in link.tokens.take_all().iter().filter_map(|name| self.registry.existing(name)) {
                    ask::token(&core, link).await;
                }
            }
        };
        let renewals = async {
            loop {
                sleep(RENEW).await;
                for name in link.leases() {
                    self.renew(link, store, &name).await;
                }
            }
        };
        let ((), (), ()) = tokio::join!(probes, tokens, renewals);
    }

    /// Renews the lease of a probe that is still out.
    async fn renew(&self, link: &Link, store: &dyn FleetStore, name: &ServiceName) {
        let lease = self.registry.existing(name).and_then(|core| Some((member::lease(&core, link)?, core)));
        let Some(((lease, true), core)) = lease else { return link.lease_over(name) };
        let since = link.now();
        let renewed = limited(PATIENCE, store.renew(&lease)).await;
        link.report(Op::Lease, &renewed);
        match renewed {
            Ok(true) => {
                let until = since.after(lease.lasting);
                member::with_share(&core, |share, _, now| {
                    if share.mine(now).is_some() {
                        share.granted(until);
                    }
                });
            }
            Ok(false) => link.lease_over(name),
            Err(_) => {} // it ends by itself
        }
    }
}
