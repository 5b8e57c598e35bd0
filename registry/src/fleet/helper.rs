//! Work for callers that cannot do it: a caller without a runtime asks the store through this part, and a probe that outlasts
//! its lease keeps it.

use std::{future::pending, time::Duration};

use tokio::time::sleep;

use super::{
    lease::{self, limited},
    record_codec,
    store_sync::{PATIENCE, SyncTask},
};
use crate::{
    outcome::ServiceName,
    store::{FleetStore, Op},
};

/// How often held leases are checked.
const RENEW: Duration = Duration::from_millis(200);

impl SyncTask {
    /// Asks for callers that cannot wait, and renews leases while their probes run.
    pub(super) async fn help(&self) {
        let Some(store) = self.handle.fleet() else { return pending().await };
        let probes = async {
            loop {
                self.handle.probes.filled.notified().await;
                for inner in self.handle.probes.take_all().iter().filter_map(|name| self.breakers.existing(name)) {
                    lease::probe(&inner, &self.handle).await;
                }
            }
        };
        let tokens = async {
            loop {
                self.handle.tokens.filled.notified().await;
                for inner in self.handle.tokens.take_all().iter().filter_map(|name| self.breakers.existing(name)) {
                    lease::token(&inner, &self.handle).await;
                }
            }
        };
        let renewals = async {
            loop {
                sleep(RENEW).await;
                for name in self.handle.leases() {
                    self.renew(store, &name).await;
                }
            }
        };
        let ((), (), ()) = tokio::join!(probes, tokens, renewals);
    }

    /// Renews the lease of a probe that still runs.
    async fn renew(&self, store: &dyn FleetStore, name: &ServiceName) {
        let lease =
            self.breakers.existing(name).and_then(|inner| Some((record_codec::lease(&inner, &self.handle)?, inner)));
        let Some(((lease, true), inner)) = lease else { return self.handle.lease_over(name) };
        let since = self.handle.now();
        let renewed = limited(PATIENCE, store.renew(&lease)).await;
        self.handle.report(Op::Lease, &renewed);
        match renewed {
            Ok(true) => {
                let until = since.after(lease.lasting);
                record_codec::with_fleet_view(&inner, |fleet_view, _, now| {
                    if fleet_view.mine(now).is_some() {
                        fleet_view.granted(until);
                    }
                });
            }
            Ok(false) => self.handle.lease_over(name),
            Err(_) => {} // it ends by itself
        }
    }
}
