//! Pace per address: hosts may be many and their server one.
//!
//! The frontier keeps the pace of queues, which are hosts or domains. This keeps the pace of what is behind them, as far as
//! one process can see.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::deadline::FAR;

/// How one address is asked, whatever the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPaceOptions {
    /// How many requests to an address may be under way at a time; 0 for any number. Defaults to 0.
    pub concurrency_max: usize,
    /// How long after a request to an address the next one may begin; 0 for no pause. Defaults to 0.
    pub gap_min: Duration,
    /// How long a request may wait for its turn before it fails as `address_busy`. Its other time limits stand still
    /// meanwhile. Defaults to 60 s.
    pub wait_max: Duration,
}

impl Default for AddressPaceOptions {
    fn default() -> Self {
        Self { concurrency_max: 0, gap_min: Duration::ZERO, wait_max: Duration::from_secs(60) }
    }
}

/// Addresses that are remembered before old ones are looked for.
const ADDRESSES_BEFORE_CLEANUP: usize = 4096;

pub(crate) struct AddressPace {
    options: AddressPaceOptions,
    addresses: Mutex<Addresses>,
}

#[derive(Default)]
struct Addresses {
    known: HashMap<IpAddr, Turn>,
    cleanup_at: usize,
}

struct Turn {
    /// When the next request may begin.
    next: Instant,
    room: Option<Arc<Semaphore>>,
}

/// A turn that was taken; the next may begin when it is dropped.
pub(crate) struct Taken {
    _room: Option<OwnedSemaphorePermit>,
}

/// The address was busy for too long.
#[derive(Debug)]
pub(crate) struct Busy;

impl AddressPace {
    /// None if there is no pace to keep.
    pub(crate) fn new(options: AddressPaceOptions) -> Option<Self> {
        let idle = options.concurrency_max == 0 && options.gap_min.is_zero();
        let options = AddressPaceOptions {
            gap_min: options.gap_min.min(FAR),
            wait_max: options.wait_max.min(FAR),
            ..options
        };
        (!idle).then(|| Self { options, addresses: Mutex::default() })
    }

    /// Waits for a turn.
    pub(crate) async fn turn(&self, address: IpAddr) -> Result<Taken, Busy> {
        let latest = Instant::now() + self.options.wait_max;
        let room = self.with_turn(address, |turn| turn.room.clone());
        let room = match room {
            None => None,
            Some(room) => {
                let deadline = tokio::time::Instant::from_std(latest);
                match tokio::time::timeout_at(deadline, room.acquire_owned()).await {
                    Ok(Ok(permit)) => Some(permit),
                    _ => return Err(Busy),
                }
            }
        };
        let now = Instant::now();
        let gap = self.options.gap_min;
        let at = self.with_turn(address, |turn| {
            let at = turn.next.max(now);
            // Who would have to wait too long takes no turn from others.
            (at <= latest).then(|| {
                turn.next = at + gap;
                at
            })
        });
        match at {
            None => Err(Busy),
            Some(at) if at > now => {
                tokio::time::sleep_until(at.into()).await;
                Ok(Taken { _room: room })
            }
            Some(_) => Ok(Taken { _room: room }),
        }
    }

    fn with_turn<T>(&self, address: IpAddr, act: impl FnOnce(&mut Turn) -> T) -> T {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, most) = (Instant::now(), self.options.concurrency_max);
        if addresses.known.len() >= addresses.cleanup_at.max(ADDRESSES_BEFORE_CLEANUP) {
            addresses.known.retain(|_, turn| {
                let busy = turn.room.as_ref().is_some_and(|room| room.available_permits() < most);
                busy || turn.next > now || turn.room.as_ref().is_some_and(|room| Arc::strong_count(room) > 1)
            });
            // So that not every new address looks at all the others.
            addresses.cleanup_at = addresses.known.len() * 2;
        }
        let turn = addresses
            .known
            .entry(address)
            .or_insert_with(|| Turn { next: now, room: (most > 0).then(|| Arc::new(Semaphore::new(most))) });
        act(turn)
    }
}
