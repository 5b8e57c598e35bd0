//! What the sync task does for those who cannot do it themselves: a caller without a runtime asks through it, and a probe that takes
//! longer than its lease keeps it.

use std::{future::pending, time::Duration};

use tokio::time::sleep;

use crate::{
    fleet::{
        lease::{self, limited},
        record_codec,
        store_handle::StoreHandle,
        store_sync::{PATIENCE, StoreSync},
    },
    outcome::ServiceName,
    store::{FleetStore, Op},
};

/// Leases are looked after this often.
const RENEW: Duration = Duration::from_millis(200);

impl StoreSync {
    /// Asks for callers that cannot wait themselves, and renews leases while their probes are out.
    pub(super) async fn help(&self, store_handle: &StoreHandle) {
        let Some(store) = store_handle.fleet() else { return pending().await };
        let probes = async {
            loop {
                store_handle.probes.filled.notified().await;
                for inner in store_handle.probes.take_all().iter().filter_map(|name| self.registry.existing(name)) {
                    lease::probe(&inner, store_handle).await;
                }
            }
        };
        let tokens = async {
            loop {
                store_handle.tokens.filled.notified().await;
                for inner in store_handle.tokens.take_all().iter().filter_map(|name| self.registry.existing(name)) {
                    lease::token(&inner, store_handle).await;
                }
            }
        };
        let renewals = async {
            loop {
                sleep(RENEW).await;
                for name in store_handle.leases() {
                    self.renew(store_handle, store, &name).await;
                }
            }
        };
        let ((), (), ()) = tokio::join!(probes, tokens, renewals);
    }

    /// Renews the lease of a probe that is still out.
    async fn renew(&self, store_handle: &StoreHandle, store: &dyn FleetStore, name: &ServiceName) {
        let lease =
            self.registry.existing(name).and_then(|inner| Some((record_codec::lease(&inner, store_handle)?, inner)));
        let Some(((lease, true), inner)) = lease else { return store_handle.lease_over(name) };
        let since = store_handle.now();
        let renewed = limited(PATIENCE, store.renew(&lease)).await;
        store_handle.report(Op::Lease, &renewed);
        match renewed {
            Ok(true) => {
                let until = since.after(lease.lasting);
                record_codec::with_fleet_view(&inner, |fleet_view, _, now| {
                    if fleet_view.mine(now).is_some() {
                        fleet_view.granted(until);
                    }
                });
            }
            Ok(false) => store_handle.lease_over(name),
            Err(_) => {} // it ends by itself
        }
    }
}
