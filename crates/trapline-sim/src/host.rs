//! A host of a generated web: its name, its pages, how fast it answers and when it is down.

use std::time::Duration;

use trapline_core::Timestamp;

use crate::random::Random;
use crate::shape::Shape;

const NAMES: [&str; 24] = [
    "otter", "marten", "beaver", "lynx", "hare", "heron", "plover", "finch", "raven", "trout", "perch",
    "pike", "alder", "birch", "cedar", "spruce", "moss", "fern", "heath", "brook", "tarn", "ridge", "snow",
    "trail",
];

/// One host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    index: u32,
    /// The number of its home page, counting through the pages of all hosts.
    pub(crate) first: u32,
    pages: u32,
    latency_ms: u64,
    outages: Option<Outages>,
    /// From then on it is down for good.
    dies: Option<Timestamp>,
    has_trap: bool,
}

/// A host that is down for a while, once in every period. When in the period is drawn for each, so that nobody can keep
/// coming back at the wrong time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outages {
    seed: u64,
    every_ms: u64,
    lasts_ms: u64,
}

impl Host {
    pub(crate) fn generate(seed: u64, index: u32, first: u32, pages: u32) -> Self {
        const HOST: u64 = 1;
        let mut random = Random::of(&[seed, HOST, u64::from(index)]);
        let slow = random.chance(1, 12);
        let latency_ms = if slow { random.range(1_500..5_000) } else { random.range(40..400) };
        let outages = random.chance(1, 6).then(|| {
            let every_ms = random.range(180_000..900_000);
            let lasts_ms = random.range(20_000..120_000);
            Outages { seed: random.draw(), every_ms, lasts_ms }
        });
        Self { index, first, pages, latency_ms, outages, dies: None, has_trap: false }
    }

    /// The same host in a wilder web: it may die, and it may have a trap.
    pub(crate) fn wild(self, seed: u64) -> Self {
        const WILD: u64 = 5;
        let mut random = Random::of(&[seed, WILD, u64::from(self.index)]);
        let dies = random.chance(1, 8).then(|| Timestamp::from_millis(random.range(1_000..300_000)));
        Self { dies, has_trap: random.chance(1, 5), ..self }
    }

    pub(crate) fn has_trap(&self) -> bool {
        self.has_trap
    }

    /// Its name, which also says which host it is.
    pub fn name(&self) -> String {
        format!("{}{}.example", NAMES[self.index as usize % NAMES.len()], self.index)
    }

    /// The index of the host that has this name, if one has.
    pub(crate) fn index_of(name: &str) -> Option<u32> {
        let label = name.strip_suffix(".example")?;
        let digits = label.trim_start_matches(|letter: char| letter.is_ascii_lowercase());
        digits.parse().ok()
    }

    /// How many pages it has.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape::new(self.pages)
    }

    /// How long it takes to answer, this time: around its usual time, and now and then five times as long. Always
    /// less than 40 seconds, so that a lease of a minute outlasts it.
    pub(crate) fn latency(&self, random: &mut Random) -> Duration {
        let usual = self.latency_ms * random.range(50..150) / 100;
        Duration::from_millis(if random.chance(1, 50) { usual * 5 } else { usual })
    }

    /// Whether it is down. Every outage ends, unless the host has died.
    pub(crate) fn is_down(&self, at: Timestamp) -> bool {
        if self.dies.is_some_and(|dies| at >= dies) {
            return true;
        }
        let Some(Outages { seed, every_ms, lasts_ms }) = self.outages else { return false };
        let (period, into) = (at.as_millis() / every_ms, at.as_millis() % every_ms);
        let begins = Random::of(&[seed, period]).range(0..every_ms - lasts_ms);
        (begins..begins + lasts_ms).contains(&into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> impl Iterator<Item = Host> {
        (0..500).map(|index| Host::generate(7, index, index, 1))
    }

    #[test]
    fn names_say_which_host() {
        for host in hosts() {
            assert_eq!(Host::index_of(&host.name()), Some(host.index), "{}", host.name());
        }
        for name in
            ["", "otter.example", "otter0.test", "otter0", "OTTER0.example", "otter99999999999.example"]
        {
            assert_eq!(Host::index_of(name), None, "{name}");
        }
    }

    #[test]
    fn some_hosts_go_down_and_all_come_back() {
        let down = |host: &Host, second: u64| host.is_down(Timestamp::from_millis(second * 1_000));
        let mut flaky = 0;
        for host in hosts() {
            // For as long as the longest period, looked at every second.
            let seconds_down = (0..900).filter(|second| down(&host, *second)).count();
            assert!(seconds_down < 700, "{} is down for {seconds_down}s", host.name());
            flaky += usize::from(seconds_down > 0);
        }
        assert!((50..120).contains(&flaky), "{flaky} of 500");
    }

    #[test]
    fn no_answer_outlasts_a_lease() {
        let mut random = Random::new(3);
        for host in hosts() {
            assert!((0..200).all(|_| host.latency(&mut random) < Duration::from_secs(40)));
        }
    }
}
