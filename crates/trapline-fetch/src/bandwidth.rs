//! A cap on how many bytes a second all fetches together take.
//!
//! A bucket that fills at a steady rate and holds at most a second of it. It is kept as one moment: the one at which all
//! bytes taken so far would have come at that rate.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(crate) struct Bandwidth {
    bytes_per_s: u64,
    paid_until: Mutex<Option<Instant>>,
}

impl Bandwidth {
    pub(crate) fn new(bytes_per_s: u64) -> Self {
        Self { bytes_per_s: bytes_per_s.max(1), paid_until: Mutex::new(None) }
    }

    /// Takes bytes that have come, and says until when to wait before more are read.
    pub(crate) fn take(&self, bytes: usize, now: Instant) -> Option<Instant> {
        let cost = Duration::from_secs_f64(bytes as f64 / self.bytes_per_s as f64);
        let mut paid_until = self.paid_until.lock().unwrap_or_else(PoisonError::into_inner);
        // A second may be saved up.
        let saved = now.checked_sub(Duration::from_secs(1)).unwrap_or(now);
        let until = paid_until.map_or(saved, |until| until.max(saved)) + cost;
        *paid_until = Some(until);
        (until > now).then_some(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_free_and_then_bytes_cost_time() {
        let bandwidth = Bandwidth::new(1000);
        let start = Instant::now() + Duration::from_secs(10);
        assert_eq!(bandwidth.take(600, start), None);
        assert_eq!(bandwidth.take(400, start), None);
        assert_eq!(bandwidth.take(500, start), Some(start + Duration::from_millis(500)));
        assert_eq!(bandwidth.take(500, start), Some(start + Duration::from_millis(1000)));
        let later = start + Duration::from_secs(60);
        assert_eq!(bandwidth.take(1000, later), None);
        assert_eq!(bandwidth.take(100, later), Some(later + Duration::from_millis(100)));
    }
}
