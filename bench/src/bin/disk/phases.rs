//! What every subject goes through, each function in a process of its own.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;

use trapline_bench::stream::{Offers, url};
use trapline_core::{Candidate, IdentityKey, Preparer, Request};

use crate::SEED;
use crate::figures::{Figures, Gauge};
use crate::subject::{Manner, Subject};

/// URLs a batch, each of which is synced.
pub const BATCH: u64 = 1000;

/// Numbers of URLs that are in no stream.
const APART: u64 = 1 << 40;

/// How large everything is, from the number of different URLs and of their hosts.
#[derive(Clone, Copy)]
pub struct Scale {
    pub urls: u64,
    pub hosts: u64,
}

impl Scale {
    pub const FULL: Self = Self { urls: 5_000_000, hosts: 100_000 };
    pub const SMALL: Self = Self { urls: 100_000, hosts: 20_000 };

    /// As many hosts as there usually are with so many URLs.
    pub fn of(urls: u64) -> Self {
        Self { urls, hosts: 0 }.with_hosts(urls / 50)
    }

    pub fn with_hosts(self, hosts: u64) -> Self {
        Self { hosts: (hosts / (10 * BATCH) * 10 * BATCH).max(20 * BATCH), ..self }
    }

    /// Half of them are of URLs offered before.
    pub fn offers(self) -> u64 {
        2 * self.urls
    }

    /// Queues that are served in turn.
    pub fn active(self) -> u64 {
        self.hosts / 10
    }

    pub fn cycles(self) -> u64 {
        self.urls * 2 / 5
    }

    /// Offers, and as many cycles.
    pub fn mixed(self) -> u64 {
        self.urls / 10
    }

    /// URLs in the queue whose head is looked at; half of them are taken before.
    pub fn queue(self) -> u64 {
        self.hosts
    }

    /// Virtual time goes on by so many milliseconds with each batch that is claimed: by the time the active ones
    /// have all had their turn, the first has rested.
    fn step(self) -> u64 {
        Manner::CRAWL.delay * BATCH / self.active()
    }
}

/// Offers of URLs, half of them known.
pub fn offers<S: Subject>(folder: &Path, scale: Scale) -> S {
    let mut subject = S::open(folder, Manner::CRAWL);
    let preparer = preparer();
    let mut stream = Offers::new(SEED, scale.offers(), scale.hosts);
    let mut gauge = Gauge::begin();
    let mut progress = Progress::new("offers", scale.offers());
    let (mut added, mut now) = (0, 0);
    loop {
        let batch = gauge.aside(|| prepare(&preparer, stream.batch(BATCH as usize)));
        if batch.is_empty() {
            break;
        }
        progress.add(batch.len() as u64);
        now += 1;
        added += gauge.batch(|| subject.admit(now, batch));
    }
    assert_eq!(added, scale.urls, "exactly the new ones are added");
    tell(&gauge.end("offers", scale.offers(), folder, String::new()));
    subject
}

/// Offers, and goes on until it is killed: it tells how many URLs it was promised are kept.
pub fn offers_until_killed<S: Subject>(folder: &Path, scale: Scale) {
    let mut subject = offers::<S>(folder, scale);
    let preparer = preparer();
    let now = scale.offers();
    let mut known = scale.urls;
    for batch in 0..100_000 {
        let first = APART + batch * BATCH;
        let urls = (first..first + BATCH).map(|number| url(number % scale.hosts, number)).collect();
        known += subject.admit(now, prepare(&preparer, urls));
        say(&format!("acknowledged {known}"));
    }
}

/// Opens what was left by one that was killed, then claims and settles, then does both and offers.
pub fn work<S: Subject>(folder: &Path, scale: Scale, acknowledged: u64) {
    let mut gauge = Gauge::begin();
    let mut subject = gauge.batch(|| S::open(folder, Manner::CRAWL));
    let found = subject.counts(0);
    assert!(found.known >= acknowledged, "{} known, {acknowledged} acknowledged", found.known);
    assert!(found.known <= acknowledged + BATCH, "{} known, {acknowledged} acknowledged", found.known);
    tell(&gauge.end("reopening", 1, folder, format!("{} known", found.known)));

    let mut crawl = Crawl { subject: &mut subject, now: 2 * scale.offers(), step: scale.step() };
    // What is opened fills its caches first.
    crawl.cycles(
        scale.cycles() / 20,
        &mut Gauge::begin(),
        &mut Progress::new("warming", scale.cycles() / 20),
    );

    let mut gauge = Gauge::begin();
    let mut progress = Progress::new("cycles", scale.cycles());
    let (cycles, claims) = crawl.cycles(scale.cycles(), &mut gauge, &mut progress);
    let active = crawl.subject.counts(crawl.now).active;
    let note = format!("{active} active queues, {} URLs a claim", cycles / claims);
    tell(&gauge.end("cycles", cycles, folder, note));

    let preparer = preparer();
    let mut stream = Offers::after(scale.urls, SEED + 1, scale.mixed(), scale.hosts);
    let mut gauge = Gauge::begin();
    let mut progress = Progress::new("mixed", 2 * scale.mixed());
    let (mut operations, mut added) = (0, 0);
    loop {
        let batch = gauge.aside(|| prepare(&preparer, stream.batch(BATCH as usize)));
        if batch.is_empty() {
            break;
        }
        let offers = batch.len() as u64;
        let now = crawl.now;
        added += gauge.batch(|| crawl.subject.admit(now, batch));
        operations += offers + crawl.cycles(offers, &mut gauge, &mut progress).0;
        progress.add(offers);
    }
    assert_eq!(added, scale.mixed() / 2, "exactly the new ones are added");
    tell(&gauge.end("mixed", operations, folder, String::new()));
}

struct Crawl<'a, S> {
    subject: &'a mut S,
    now: u64,
    step: u64,
}

impl<S: Subject> Crawl<'_, S> {
    /// Claims and settles until so many are done: how many that were, in how many claims.
    fn cycles(&mut self, wanted: u64, gauge: &mut Gauge, progress: &mut Progress) -> (u64, u64) {
        let (mut cycles, mut claims, mut in_vain) = (0, 0, 0);
        while cycles < wanted {
            self.now += self.step;
            let now = self.now;
            let want = BATCH.min(wanted - cycles) as usize;
            let leases = gauge.batch(|| self.subject.claim(now, want, None));
            let leased = leases.len() as u64;
            in_vain = if leased == 0 { in_vain + 1 } else { 0 };
            assert!(in_vain < 100, "there is nothing left to claim");
            let settled = gauge.batch(|| self.subject.settle(now, leases));
            assert_eq!(settled, leased, "no lease is stale");
            cycles += leased;
            claims += 1;
            progress.add(leased);
        }
        (cycles, claims)
    }
}

/// How long the first URL of a queue takes: of a fresh one, and of one from which half was taken. Nothing is synced, so
/// that something but the disk is seen.
pub fn head<S: Subject>(folder: &Path, scale: Scale) {
    const LOOKS: u64 = 1000;
    let mut subject = S::open(folder, Manner::HEAD);
    let preparer = preparer();
    let [fresh, taken] = ["fresh.example", "taken.example"];
    for first in (0..scale.queue()).step_by(BATCH as usize) {
        for host in [fresh, taken] {
            let urls = (first..first + BATCH).map(|number| format!("https://{host}/section/page-{number}"));
            let batch = prepare(&preparer, urls.collect());
            assert_eq!(subject.admit(0, batch), BATCH);
        }
    }
    for _ in (0..scale.queue() / 2).step_by(BATCH as usize) {
        let leases = subject.claim(0, BATCH as usize, Some(taken));
        assert_eq!(leases.len() as u64, BATCH);
        subject.settle(0, leases);
    }
    let mut gauges = [Gauge::begin(), Gauge::begin()];
    for _ in 0..LOOKS {
        for (gauge, key) in gauges.iter_mut().zip([fresh, taken]) {
            let lease = gauge.batch(|| subject.claim(0, 1, Some(key)));
            assert_eq!(lease.len(), 1);
            subject.settle(0, lease);
        }
    }
    for (gauge, phase) in gauges.into_iter().zip(["head-fresh", "head-taken"]) {
        tell(&gauge.end(phase, LOOKS, folder, String::new()));
    }
}

/// What the disk alone takes: as many bytes as a batch of offers has, written to a file that is allocated, and synced.
pub fn floor(folder: &Path) {
    use std::os::unix::fs::FileExt as _;
    const BYTES: usize = 100_000;
    const TIMES: u64 = 500;
    std::fs::create_dir_all(folder).expect("a folder can be made");
    let file = std::fs::File::create(folder.join("floor")).expect("a file can be made");
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, BYTES as u64 * TIMES)
        .expect("there is room");
    file.sync_all().expect("it can be synced");
    let bytes = vec![7; BYTES];
    let mut gauge = Gauge::begin();
    for time in 0..TIMES {
        gauge.batch(|| {
            file.write_all_at(&bytes, time * BYTES as u64).expect("it can be written");
            file.sync_data().expect("it can be synced");
        });
    }
    tell(&gauge.end("floor", TIMES, folder, String::new()));
}

fn preparer() -> Preparer {
    Preparer::new(IdentityKey::from_seed(SEED))
}

fn prepare(preparer: &Preparer, urls: Vec<String>) -> Vec<Candidate> {
    let prepare = |url| preparer.prepare(Request::get(url)).expect("the stream has only good URLs");
    urls.into_iter().map(prepare).collect()
}

fn tell(figures: &Figures) {
    say(&figures.write());
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Who asked may be gone.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// How far a phase is, for whoever watches.
struct Progress {
    phase: &'static str,
    total: u64,
    done: u64,
    shown: Option<std::time::Instant>,
}

impl Progress {
    fn new(phase: &'static str, total: u64) -> Self {
        let shown = std::io::stderr().is_terminal().then(std::time::Instant::now);
        Self { phase, total, done: 0, shown }
    }

    fn add(&mut self, done: u64) {
        self.done += done;
        if let Some(shown) = self.shown.as_mut().filter(|shown| shown.elapsed() > Duration::from_secs(1)) {
            *shown = std::time::Instant::now();
            eprint!("\r    {} {} %   \r", self.phase, self.done * 100 / self.total.max(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::on_fjall::OnFjall;
    use crate::on_redb::OnRedb;
    use crate::ours::Ours;
    use crate::subject::Counts;

    /// All of them do the same work: that is what makes them comparable.
    fn does_the_work<S: Subject>(name: &str) {
        let folder = std::env::temp_dir().join(format!("trapline-bench-{name}-{}", std::process::id()));
        let candidates =
            |urls: &[&str]| prepare(&preparer(), urls.iter().map(|url| format!("https://{url}")).collect());
        let mut subject = S::open(&folder, Manner::CRAWL);
        let batch = candidates(&["a.example/1", "a.example/2", "b.example/1", "a.example/1", "c.example/1"]);
        assert_eq!(subject.admit(1, batch), 4, "one is there twice");
        assert_eq!(subject.admit(2, candidates(&["b.example/1", "b.example/2"])), 1);
        let first = subject.claim(10, 2, None);
        assert_eq!(first.len(), 2, "no more than wanted");
        let second = subject.claim(10, 10, None);
        assert_eq!(second.len(), 1, "one URL of a queue at a time");
        assert!(second.iter().all(|lease| !first.contains(lease)), "every lease has its own number");
        assert_eq!(subject.counts(10), Counts { known: 5, leased: 3, active: 3 });
        assert_eq!(subject.settle(20, first.clone()), 2);
        assert_eq!(subject.settle(20, first.clone()), 0, "stale");
        assert_eq!(subject.claim(1019, 10, None).len(), 0, "queues rest for a second");
        drop(subject);

        let mut subject = S::open(&folder, Manner::CRAWL);
        assert_eq!(subject.counts(1019).known, 5);
        assert_eq!(subject.counts(1019).leased, 1, "leases outlive the process");
        assert_eq!(subject.settle(1019, first), 0, "stale for ever");
        assert_eq!(subject.settle(1019, second), 1);
        assert_eq!(subject.admit(1019, candidates(&["a.example/1", "c.example/2"])), 1, "done is known");
        assert_eq!(subject.claim(1020, 10, None).len(), 2, "two have rested");
        drop(subject);
        std::fs::remove_dir_all(&folder).expect("the folder is ours");
    }

    #[test]
    fn ours_does_the_work() {
        does_the_work::<Ours>("ours");
    }

    #[test]
    fn fjall_does_the_work() {
        does_the_work::<OnFjall>("fjall");
    }

    #[test]
    fn redb_does_the_work() {
        does_the_work::<OnRedb>("redb");
    }
}
