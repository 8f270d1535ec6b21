//! A process under load, killed at random moments: whatever it was told, and told us, still holds.
//!
//! The child is this test binary itself, running [`child`] alone. It prints what its clients are about to do and what they
//! were answered; the parent believes nothing else. Rounds follow one another in one folder, some seconds apart by the
//! clock of the frontier, so that leases of killed clients expire.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use trapline_core::{Request, Timestamp};
use trapline_frontier::{
    Admission, Answer, Frontier, LeaseId, Outcome, Settings, Settlement, Store, UrlState,
};
use trapline_sim::Random;
use trapline_stores::{DiskOptions, DiskStore, Durability};

const KILLS: u64 = 50;
const CLIENTS: u64 = 4;
const ROUND_SECS: u64 = 10;
const LEASE_SECS: u64 = 25;
const FOLDER: &str = "TRAPLINE_KILL_FOLDER";
const ROUND: &str = "TRAPLINE_KILL_ROUND";
const OPTIONS: DiskOptions = DiskOptions {
    durability: Durability::Batch,
    segment_bytes: 256 << 10,
    snapshot_bytes: 200 << 10,
    min_free_disk: 0,
    background: true,
};

fn time(round: u64) -> Timestamp {
    Timestamp::from_millis(round * ROUND_SECS * 1000)
}

fn open(folder: &Path, round: u64) -> Frontier {
    let store = DiskStore::open(folder, &OPTIONS).unwrap_or_else(|error| panic!("round {round}: {error}"));
    let settings = Settings {
        lease: Duration::from_secs(LEASE_SECS),
        delay: Duration::ZERO,
        concurrency: 2,
        max_deliveries: 0,
        ..Settings::default()
    };
    let store: Arc<dyn Store> = Arc::new(store);
    let opened = Frontier::builder("kill").settings(settings).open_shared(store, time(round));
    pollster::block_on(opened).expect("the crawl opens")
}

/// The child: several clients on one store, each telling what it does. Does nothing unless it was started by
/// [`killed_at_random_moments_nothing_acknowledged_is_lost`].
#[test]
fn child() {
    let (Ok(folder), Ok(round)) = (std::env::var(FOLDER), std::env::var(ROUND)) else { return };
    let round: u64 = round.parse().expect("a number");
    let frontier = open(Path::new(&folder), round);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let frontier = frontier.clone();
            scope.spawn(move || work(&frontier, round, client));
        }
    });
}

fn say(lines: &str) {
    // Whole lines at once: clients do not mix theirs. The parent is gone if this fails.
    if std::io::stdout().lock().write_all(lines.as_bytes()).is_err() {
        std::process::exit(1);
    }
}

/// A client's work: bounded, should nobody kill it.
fn work(frontier: &Frontier, round: u64, client: u64) {
    let now = time(round);
    for turn in 0..3000 {
        let urls: Vec<_> = (0..5)
            .map(|n| format!("http://{}.example/{round}/{client}/{turn}/{n}", (turn + n) % 7))
            .collect();
        let answers = pollster::block_on(frontier.admit(now, urls.iter().map(Request::get))).expect("admit");
        let added = urls.iter().zip(answers).filter(|(_, answer)| *answer == Admission::Added);
        say(&added.map(|(url, _)| format!("@ added {url}\n")).collect::<String>());
        let leases = pollster::block_on(frontier.claim(now, 4)).expect("claim").leases;
        say(&leases
            .iter()
            .map(|lease| format!("@ leased {} {}\n", lease.id.0, lease.request.url))
            .collect::<String>());
        // One of them is left to expire.
        let done: Vec<_> = leases.iter().skip(usize::from(turn % 3 == 0)).collect();
        say(&done.iter().map(|lease| format!("@ settling {}\n", lease.id.0)).collect::<String>());
        let settle = |lease: &&trapline_frontier::Lease| {
            let mut settlement = Settlement::new(lease.id, Outcome::done());
            let link = Request::get(format!("{}/link", lease.request.url));
            settlement.links = frontier.prepare(link).into_iter().take(usize::from(turn % 2 == 0)).collect();
            settlement
        };
        let settled =
            pollster::block_on(frontier.settle(now, done.iter().map(settle).collect())).expect("settle");
        for (lease, settled) in done.iter().zip(settled) {
            assert_eq!(settled.answer, Answer::Done, "a lease of our own");
            let link = settled.links.first().map_or(String::new(), |_| format!("{}/link", lease.request.url));
            say(&format!("@ settled {} {link}\n", lease.id.0));
        }
    }
}

/// Kills a child and waits for it, whatever happens to the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the parent was told, over all rounds.
#[derive(Default)]
struct Told {
    added: BTreeSet<String>,
    /// URL and deadline of every lease.
    leases: BTreeMap<u64, (String, Timestamp)>,
    /// Leases of which a settlement was begun, and those of which it was answered.
    settling: BTreeSet<u64>,
    settled: BTreeSet<u64>,
}

impl Told {
    fn hear(&mut self, line: &str, round: u64) {
        let words: Vec<_> = line.split(' ').collect();
        let id = |word: &str| word.parse::<u64>().expect("a lease's number");
        match words[..] {
            ["@", "added", url] => drop(self.added.insert(url.to_owned())),
            ["@", "leased", lease, url] => {
                let lease = id(lease);
                let now = time(round);
                for (other, (_, deadline)) in self.leases.iter().filter(|(_, (leased, _))| leased == url) {
                    let may_be_over = self.settling.contains(other) || *deadline <= now;
                    assert!(may_be_over, "round {round}: {url} leased as {lease} while {other} is live");
                }
                let deadline = now + Duration::from_secs(LEASE_SECS);
                let earlier = self.leases.insert(lease, (url.to_owned(), deadline));
                assert_eq!(earlier, None, "round {round}: lease {lease} was granted twice");
                assert!(!self.settled_urls(url), "round {round}: {url} was leased although it is done");
            }
            ["@", "settling", lease] => drop(self.settling.insert(id(lease))),
            ["@", "settled", lease, link] => {
                self.settled.insert(id(lease));
                if !link.is_empty() {
                    self.added.insert(link.to_owned());
                }
            }
            _ => {}
        }
    }

    fn settled_urls(&self, url: &str) -> bool {
        self.settled.iter().any(|lease| self.leases.get(lease).is_some_and(|(settled, _)| settled == url))
    }

    /// Holds what was told against what is there.
    fn check(&self, frontier: &Frontier, round: u64) {
        let now = time(round);
        let state = |url: &str| pollster::block_on(frontier.url(now, url)).expect("it is answered").state;
        for url in &self.added {
            assert_ne!(state(url), UrlState::Unknown, "round {round}: {url} is lost");
        }
        for lease in &self.settled {
            let (url, _) = &self.leases[lease];
            assert_eq!(state(url), UrlState::Done, "round {round}: {url} is not done any more");
        }
        let open = self.leases.iter().filter(|(lease, _)| !self.settling.contains(lease));
        for (lease, (url, deadline)) in open {
            if *deadline > now {
                assert_eq!(state(url), UrlState::Leased, "round {round}: lease {lease} of {url} is lost");
            }
        }
        // An old lease changes nothing: settled before, or past its deadline.
        let old = |(lease, (_, deadline)): &(&u64, &(String, Timestamp))| {
            self.settled.contains(lease) || *deadline <= now
        };
        let old: Vec<_> = self.leases.iter().filter(old).map(|(lease, _)| *lease).collect();
        let settle = |lease: &u64| Settlement::new(LeaseId(*lease), Outcome::Release);
        let answers =
            pollster::block_on(frontier.settle(now, old.iter().map(settle).collect())).expect("settle");
        for (lease, settled) in old.iter().zip(answers) {
            assert_eq!(settled.answer, Answer::Stale, "round {round}: the old lease {lease} was accepted");
        }
    }
}

#[test]
fn killed_at_random_moments_nothing_acknowledged_is_lost() {
    let folder = crate::folder::TestFolder::new();
    let mut told = Told::default();
    let mut random = Random::of(&[2026]);
    for round in 0..KILLS {
        let child = Command::new(std::env::current_exe().expect("this binary has a name"))
            .args(["--exact", "kill::child", "--nocapture", "--test-threads", "1"])
            .env(FOLDER, folder.path())
            .env(ROUND, round.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("this binary runs");
        let mut child = Killed(child);
        let out = child.0.stdout.take().expect("it is piped");
        // Killed after so many lines; some before the first, while it opens.
        let patience = if random.chance(1, 8) { 0 } else { random.range(1..150) };
        let mut lines = 0;
        let mut reader = BufReader::new(out);
        let mut line = String::new();
        let mut is_killed = false;
        loop {
            if lines >= patience && !is_killed {
                child.0.kill().expect("it can be killed");
                is_killed = true;
            }
            line.clear();
            let read = reader.read_line(&mut line).expect("lines of text");
            // What has no end was being written when the child died.
            let Some(whole) = line.strip_suffix('\n').filter(|_| read > 0) else { break };
            lines += u64::from(whole.starts_with('@'));
            told.hear(whole, round);
        }
        assert!(is_killed, "round {round}: the child ended by itself");
        drop(child);
        told.check(&open(folder.path(), round), round);
    }
    assert!(
        told.added.len() > 1000 && told.settled.len() > 300,
        "{} {}",
        told.added.len(),
        told.settled.len()
    );
}
