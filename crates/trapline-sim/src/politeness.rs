//! Whether a crawl was polite, measured at the hosts. What the frontier believes does not count here.

use std::time::Duration;

use trapline_core::Timestamp;

/// How a crawl treated its hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Politeness {
    /// The shortest time from the end of a fetch to the start of the next on the same host; None if no host was
    /// asked twice.
    pub gap_min: Option<Duration>,
    /// Fetches that began while their host was being asked already, or before the wait was over that was due to it.
    pub violations: u64,
    /// The most fetches that any host saw at once.
    pub concurrency_max: u32,
}

/// Watches every fetch of a crawl.
pub(crate) struct PolitenessMeter {
    hosts: Vec<Watched>,
    found: Politeness,
}

#[derive(Clone, Default)]
struct Watched {
    in_flight: u32,
    ended: Option<Timestamp>,
    not_before: Timestamp,
}

impl PolitenessMeter {
    pub(crate) fn new(hosts: usize) -> Self {
        Self { hosts: vec![Watched::default(); hosts], found: Politeness::default() }
    }

    /// A fetch of a host's page begins.
    pub(crate) fn begin(&mut self, host: u32, now: Timestamp) {
        let watched = &mut self.hosts[host as usize];
        if watched.in_flight > 0 || now < watched.not_before {
            self.found.violations += 1;
        }
        if let Some(ended) = watched.ended {
            let gap = now.since(ended);
            self.found.gap_min = Some(self.found.gap_min.map_or(gap, |least| least.min(gap)));
        }
        watched.in_flight += 1;
        self.found.concurrency_max = self.found.concurrency_max.max(watched.in_flight);
    }

    /// It ends, and the host is to be left alone for so long.
    pub(crate) fn end(&mut self, host: u32, now: Timestamp, wait: Duration) {
        let watched = &mut self.hosts[host as usize];
        watched.in_flight -= 1;
        watched.ended = Some(now);
        watched.not_before = watched.not_before.max(now + wait);
    }

    pub(crate) fn found(&self) -> Politeness {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(1);

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn a_fetch_after_the_wait_is_polite() {
        let mut meter = PolitenessMeter::new(2);
        meter.begin(0, at(0));
        meter.begin(1, at(10));
        meter.end(0, at(300), WAIT);
        meter.begin(0, at(1_300));
        assert_eq!(meter.found(), Politeness { gap_min: Some(WAIT), violations: 0, concurrency_max: 1 });
    }

    #[test]
    fn a_fetch_within_the_wait_is_a_violation() {
        let mut meter = PolitenessMeter::new(1);
        meter.begin(0, at(0));
        meter.end(0, at(300), WAIT);
        meter.begin(0, at(1_299));
        let gap_min = Some(Duration::from_millis(999));
        assert_eq!(meter.found(), Politeness { gap_min, violations: 1, concurrency_max: 1 });
    }

    #[test]
    fn two_fetches_at_once_are_a_violation() {
        let mut meter = PolitenessMeter::new(1);
        meter.begin(0, at(0));
        meter.begin(0, at(5));
        assert_eq!(meter.found(), Politeness { gap_min: None, violations: 1, concurrency_max: 2 });
    }
}
