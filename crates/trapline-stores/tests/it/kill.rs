//! Processes under load, killed at random moments: whatever they were told, and told us, still holds.
//!
//! The children are this test binary itself, running [`child`] alone: two at a time, one of which owns the folder and serves
//! the other, with four clients each. They say what they are about to do and what they were answered, all into one pipe, so
//! that nothing is heard before what it follows from; the parent believes nothing else. In each round both are killed, the
//! second often while it takes over. Rounds follow one another in one folder, ten seconds apart by the clock of the frontier.
//!
//! `TRAPLINE_KILLS=2000 cargo test --release -p trapline-stores --test it kill -- --nocapture` kills more often than usual.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, PipeReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use trapline_core::{Request, Timestamp};
use trapline_frontier::{
    Admission, Answer, ErrorKind, Frontier, Lease, LeaseId, Outcome, Query, Rows, Scan, Settings, Settlement,
    Store, StoreError, UrlState,
};
use trapline_sim::Random;
use trapline_stores::disk::verify;
use trapline_stores::{DiskOptions, DiskStore, Durability, SharedStore};

const KILLS: u64 = 200;
/// Two children with so many each.
const CLIENTS: u64 = 4;
const ROUND_SECS: u64 = 10;
/// Leases and delays end in the third round after the one in which they begin.
const LEASE_SECS: u64 = 25;
const DELAY_SECS: u64 = 25;
const ENDS_AFTER: u64 = 3;
const BUDGET: u64 = 8;
/// All rounds are looked at again after so many.
const FULL_CHECK: u64 = 25;

const KILLS_VARIABLE: &str = "TRAPLINE_KILLS";
const FOLDER: &str = "TRAPLINE_KILL_FOLDER";
const ROUND: &str = "TRAPLINE_KILL_ROUND";
const CHILD: &str = "TRAPLINE_KILL_CHILD";

/// Small, so that segments are begun, snapshots taken and entries put on disk and brought back all the time.
const OPTIONS: DiskOptions = DiskOptions {
    durability: Durability::Batch,
    segment_bytes: 128 << 10,
    snapshot_bytes: 150 << 10,
    min_free_disk: 0,
    max_memory: Some(100 << 10),
    background: true,
};

fn time(round: u64) -> Timestamp {
    Timestamp::from_millis(round * ROUND_SECS * 1000)
}

fn open(store: Arc<dyn Store>, round: u64) -> Result<Frontier, StoreError> {
    let settings = Settings {
        lease: Duration::from_secs(LEASE_SECS),
        delay: Duration::from_secs(DELAY_SECS),
        concurrency: 1,
        queue_budget: Some(BUDGET),
        max_deliveries: 0,
        ..Settings::default()
    };
    pollster::block_on(Frontier::builder("kill").settings(settings).open_shared(store, time(round)))
}

/// The URLs of a batch, which is named by its round, child, client and turn: some on hosts of its own, and one on a host that
/// gets more than may be spent on it.
fn urls(batch: &str) -> [String; 5] {
    let numbers: Vec<u64> = batch.split('-').map(|number| number.parse().expect("a number")).collect();
    let (round, turn) = (numbers[0], numbers[3]);
    [
        format!("http://{batch}.a.example/1"),
        format!("http://{batch}.a.example/2"),
        format!("http://{batch}.b.example/1"),
        format!("http://{batch}.c.example/1"),
        format!("http://{}-{}.hot.example/{batch}", round / 40, turn % 8),
    ]
}

/// The link that a page has, if it has one.
fn link(url: &str) -> Option<String> {
    let has_one = url.bytes().map(u32::from).sum::<u32>().is_multiple_of(2) && !url.ends_with("/link/link");
    has_one.then(|| format!("{url}/link"))
}

/// A child: several clients on one store, each telling what it does. Does nothing unless it was started by
/// [`killed_at_random_moments_nothing_acknowledged_is_lost`].
#[test]
fn child() {
    let variable = |name| std::env::var(name).ok();
    let (Some(folder), Some(round), Some(child)) = (variable(FOLDER), variable(ROUND), variable(CHILD))
    else {
        return;
    };
    let round: u64 = round.parse().expect("a number");
    say(&format!("@ opening {child}\n"));
    let (store, frontier) = loop {
        // The owner may be killed while it is being joined.
        let opened = SharedStore::open(&folder, OPTIONS).and_then(|store| {
            let store = Arc::new(store);
            open(Arc::clone(&store) as Arc<dyn Store>, round).map(|frontier| (store, frontier))
        });
        match opened {
            Ok(opened) => break opened,
            Err(error) => excuse(&error),
        }
    };
    let stats = pollster::block_on(frontier.stats(time(round)));
    let recovered = stats.ok().and_then(|stats| stats.recovered).filter(|_| store.is_owner());
    say(&match recovered {
        Some(found) => {
            format!("@ opened {child} {} {}\n", u8::from(found.snapshot.is_some()), found.bytes_cut)
        }
        None => format!("@ joined {child}\n"),
    });
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (frontier, child) = (frontier.clone(), &child);
            scope.spawn(move || {
                for turn in 0..5000 {
                    if let Err(error) =
                        take_turn(&frontier, round, &format!("{round}-{child}-{client}-{turn}"))
                    {
                        excuse(&error);
                    }
                }
            });
        }
    });
}

/// One write, which the pipe keeps together: clients do not mix their lines. The parent is gone if it fails.
fn say(lines: &str) {
    assert!(lines.len() <= 4096, "as much as a pipe keeps together");
    if std::io::stdout().lock().write_all(lines.as_bytes()).is_err() {
        std::process::exit(1);
    }
}

/// An owner that was killed excuses what failed. Nothing else does.
fn excuse(error: &StoreError) {
    if error.kind() != ErrorKind::Unavailable {
        say(&format!("@ error {error}\n"));
    }
}

/// Admits a batch, claims, and settles what was claimed.
fn take_turn(frontier: &Frontier, round: u64, batch: &str) -> Result<(), StoreError> {
    let now = time(round);
    let requests = urls(batch).map(|url| {
        let mut request = Request::get(url);
        // Some records are long enough to be torn.
        request.opaque = vec![0; if batch.ends_with("-9") { 9_000 } else { 0 }];
        request
    });
    say(&format!("@ admitting {batch}\n"));
    let answers = pollster::block_on(frontier.admit(now, requests))?;
    let is_new = answers.iter().all(|answer| *answer == Admission::Added);
    say(&if is_new { format!("@ added {batch}\n") } else { format!("@ error {batch}: {answers:?}\n") });
    let leases = pollster::block_on(frontier.claim(now, 4))?.leases;
    let told = |lease: &Lease| format!("@ leased {} {} {}\n", lease.id.0, lease.key, lease.request.url);
    say(&leases.iter().map(told).collect::<String>());
    // Some are left to expire.
    let done: Vec<_> = leases.iter().filter(|lease| !lease.id.0.is_multiple_of(5)).collect();
    say(&done.iter().map(|lease| format!("@ settling {}\n", lease.id.0)).collect::<String>());
    let settle = |lease: &&Lease| {
        let mut settlement = Settlement::new(lease.id, Outcome::done());
        let link = link(&lease.request.url).map(Request::get);
        settlement.links = link.and_then(|link| frontier.prepare(link).ok()).into_iter().collect();
        settlement
    };
    let settled = pollster::block_on(frontier.settle(now, done.iter().map(settle).collect()))?;
    let told = |(lease, settled): (&&Lease, &trapline_frontier::Settled)| match settled.answer {
        Answer::Done => format!("@ settled {}\n", lease.id.0),
        other => format!("@ error a lease of our own was answered {other:?}\n"),
    };
    say(&done.iter().zip(&settled).map(told).collect::<String>());
    Ok(())
}

/// A child that does not outlive the test, whatever happens to that.
struct Killed(Child);

impl Killed {
    fn kill(&mut self) {
        // It may have been killed before.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Lets a moment pass that nobody can foresee.
#[expect(clippy::disallowed_methods, reason = "there is no event to wait for: the moment is to be any")]
fn linger(random: &mut Random) {
    std::thread::sleep(Duration::from_micros(random.range(0..4000)));
}

/// How far a child has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Started,
    Opening,
    Open,
}

/// A lease that was told.
struct Granted {
    url: String,
    queue: String,
    round: u64,
    /// A settlement was begun; it was answered.
    is_settling: bool,
    is_settled: bool,
}

/// What the parent was told, over all rounds.
#[derive(Default)]
struct Told {
    /// All batches that were begun, by round; and whether they were answered.
    batches: BTreeMap<(u64, String), bool>,
    leases: BTreeMap<u64, Granted>,
    /// The leases of each queue.
    queues: BTreeMap<String, Vec<u64>>,
    kills: u64,
    in_recovery: u64,
    openings: u64,
    from_snapshot: u64,
    torn: u64,
}

impl Told {
    fn hear(&mut self, line: &str, round: u64) {
        let words: Vec<_> = line.split(' ').collect();
        let id = |word: &str| word.parse::<u64>().expect("a lease's number");
        match words[..] {
            ["admitting", batch] => drop(self.batches.insert((round, batch.to_owned()), false)),
            ["added", batch] => drop(self.batches.insert((round, batch.to_owned()), true)),
            ["leased", lease, queue, url] => self.hear_lease(id(lease), queue, url, round),
            ["settling", lease] => self.lease(id(lease)).is_settling = true,
            ["settled", lease] => self.lease(id(lease)).is_settled = true,
            ["opening" | "joined", _] => {}
            ["opened", _, snapshot, cut] => {
                self.openings += 1;
                self.from_snapshot += u64::from(snapshot == "1");
                self.torn += u64::from(cut != "0");
            }
            _ => panic!("round {round}: {line}"),
        }
    }

    fn lease(&mut self, lease: u64) -> &mut Granted {
        self.leases.get_mut(&lease).expect("it was told when it was granted")
    }

    fn hear_lease(&mut self, lease: u64, queue: &str, url: &str, round: u64) {
        let of_queue = self.queues.entry(queue.to_owned()).or_default();
        for (other, granted) in of_queue.iter().map(|other| (other, &self.leases[other])) {
            let may_be_over = granted.is_settling || granted.round + ENDS_AFTER <= round;
            assert!(
                may_be_over,
                "round {round}: {url} leased as {lease} while lease {other} of {queue} is live"
            );
            let waits = granted.is_settled && granted.round + ENDS_AFTER > round;
            assert!(
                !waits,
                "round {round}: {url} leased as {lease}, too soon after lease {other} of {queue}"
            );
            let is_done = granted.is_settled && granted.url == url;
            assert!(!is_done, "round {round}: {url} leased as {lease} although it is done");
        }
        of_queue.push(lease);
        assert!(of_queue.len() as u64 <= BUDGET, "round {round}: {queue} has spent more than its budget");
        let granted = Granted {
            url: url.to_owned(),
            queue: queue.to_owned(),
            round,
            is_settling: false,
            is_settled: false,
        };
        let earlier = self.leases.insert(lease, granted);
        assert!(earlier.is_none(), "round {round}: lease {lease} was granted twice");
    }

    /// Holds what was told from a round on against what is there.
    fn check(&self, frontier: &Frontier, (from, round): (u64, u64)) {
        let now = time(round);
        let state = |url: &str| pollster::block_on(frontier.url(now, url)).expect("it is answered").state;
        for ((_, batch), is_answered) in self.batches.range((from, String::new())..) {
            let known = urls(batch).iter().filter(|url| state(url) != UrlState::Unknown).count();
            let as_told = known == 5 || known == 0 && !is_answered;
            assert!(
                as_told,
                "round {round}: of batch {batch} (answered: {is_answered}) {known} URLs are there"
            );
        }
        let recent = |granted: &&Granted| granted.round + ENDS_AFTER > from;
        for granted in self.leases.values().filter(recent) {
            let Granted { url, queue, .. } = granted;
            let found = state(url);
            if granted.is_settled {
                assert_eq!(found, UrlState::Done, "round {round}: {url} is not done any more");
            }
            let is_live = !granted.is_settling && granted.round + ENDS_AFTER > round;
            if is_live {
                assert_eq!(found, UrlState::Leased, "round {round}: the lease of {url} is lost");
            }
            // A page and its links are one step.
            if let Some(link) = link(url) {
                let is_there = state(&link) != UrlState::Unknown;
                assert_eq!(
                    is_there,
                    found == UrlState::Done,
                    "round {round}: {url} is {found:?}, its link not"
                );
            }
            let report = pollster::block_on(frontier.queue(now, queue)).expect("it is answered");
            let spent = report.expect("its queue is there").spent;
            let told = self.queues[queue].len() as u64;
            assert!(
                told <= spent && spent <= BUDGET,
                "round {round}: {queue} has spent {spent}, told {told}"
            );
        }
        // An old lease changes nothing: settled before, or past its deadline.
        let is_old = |granted: &Granted| granted.is_settled || granted.round + ENDS_AFTER <= round;
        let old = self.leases.iter().filter(|(_, granted)| recent(granted) && is_old(granted));
        let old: Vec<_> = old.map(|(lease, _)| Settlement::new(LeaseId(*lease), Outcome::Release)).collect();
        for old in old.chunks(1000) {
            let answers = pollster::block_on(frontier.settle(now, old.to_vec())).expect("it is answered");
            for (lease, settled) in old.iter().zip(answers) {
                assert_eq!(
                    settled.answer,
                    Answer::Stale,
                    "round {round}: old {:?} was accepted",
                    lease.lease
                );
            }
        }
    }

    /// Whether all that is there was asked for.
    fn check_nothing_invented(&self, frontier: &Frontier, round: u64) {
        let mut asked: BTreeSet<String> = self.batches.keys().flat_map(|(_, batch)| urls(batch)).collect();
        let settling = self.leases.values().filter(|granted| granted.is_settling);
        asked.extend(settling.filter_map(|granted| link(&granted.url)));
        let query = Query::Urls { key: None, pattern: None, state: None };
        let mut scan = Scan { limit: 10_000, ..Scan::new(query) };
        loop {
            let page = pollster::block_on(frontier.scan(time(round), &scan)).expect("it is answered");
            let Rows::Urls(rows) = page.rows else { panic!("URLs were asked for") };
            for row in rows {
                let url = &row.request.expect("it is known").url;
                assert!(asked.remove(url), "round {round}: {url} is there twice, or was never asked for");
            }
            scan.cursor = page.cursor;
            if scan.cursor.is_none() {
                break;
            }
        }
    }
}

fn spawn(folder: &Path, round: u64) -> ([Killed; 2], BufReader<PipeReader>) {
    let (reader, writer) = std::io::pipe().expect("a pipe can be made");
    let children = [0, 1].map(|child| {
        let spawned = Command::new(std::env::current_exe().expect("this binary has a name"))
            .args(["--exact", "kill::child", "--nocapture", "--test-threads", "1"])
            .env(FOLDER, folder)
            .env(ROUND, round.to_string())
            .env(CHILD, child.to_string())
            .stdout(writer.try_clone().expect("a pipe has as many ends as it takes"))
            .stderr(Stdio::inherit())
            .spawn();
        Killed(spawned.expect("this binary runs"))
    });
    (children, BufReader::new(reader))
}

#[test]
fn killed_at_random_moments_nothing_acknowledged_is_lost() {
    let folder = crate::folder::TestFolder::new();
    let kills =
        std::env::var(KILLS_VARIABLE).map_or(KILLS, |kills| kills.parse().expect("a number of kills"));
    let mut told = Told::default();
    let mut random = Random::of(&[2026]);
    let rounds = kills / 2;
    for round in 0..rounds {
        let (mut children, mut reader) = spawn(folder.path(), round);
        // Which is killed first, after how many lines, and how many more the other one has. Some at once when they open.
        let first = random.range(0..2) as usize;
        let mut is_early = || random.chance(1, 4);
        let early = [is_early(), is_early()];
        let mut patience = [random.range(1..500), random.range(0..300)];
        if random.chance(1, 4) {
            patience[1] = 0;
        }
        let mut state = [Stage::Started; 2];
        let (mut lines, mut killed) = (0, 0);
        let mut line = String::new();
        loop {
            let next = if killed == 0 { first } else { 1 - first };
            let is_time = killed < 2
                && match state[next] {
                    Stage::Started => false,
                    Stage::Opening => early[next],
                    Stage::Open => early[next] || lines >= patience[killed],
                };
            if is_time {
                linger(&mut random);
                children[next].kill();
                told.kills += 1;
                told.in_recovery += u64::from(state[next] == Stage::Opening);
                killed += 1;
                lines = 0;
                continue;
            }
            line.clear();
            let read = reader.read_line(&mut line).expect("lines of text");
            // What has no end was being written when its child died.
            let Some(whole) = line.strip_suffix('\n').filter(|_| read > 0) else { break };
            // The test binary itself says something too, and not in whole lines.
            let Some((_, whole)) = whole.split_once("@ ") else { continue };
            lines += 1;
            match whole.split(' ').collect::<Vec<_>>()[..] {
                ["opening", child] => state[usize::from(child == "1")] = Stage::Opening,
                ["opened", child, ..] | ["joined", child] => state[usize::from(child == "1")] = Stage::Open,
                _ => {}
            }
            told.hear(whole, round);
        }
        assert_eq!(killed, 2, "round {round}: a child ended by itself");
        let store = DiskStore::open(folder.path(), &OPTIONS)
            .unwrap_or_else(|error| panic!("round {round}: it does not open: {error}"));
        let (found, _) = store.recovered();
        told.openings += 1;
        told.from_snapshot += u64::from(found.snapshot.is_some());
        told.torn += u64::from(found.bytes_cut > 0);
        let frontier = open(Arc::new(store), round).expect("the crawl opens");
        let is_full = round % FULL_CHECK == FULL_CHECK - 1 || round == rounds - 1;
        told.check(&frontier, (if is_full { 0 } else { round }, round));
        if is_full {
            told.check_nothing_invented(&frontier, round);
        }
    }
    let found = verify(folder.path(), &mut |_| ()).expect("it can be read");
    assert_eq!(found.damages, []);
    let answered = told.batches.values().filter(|is_answered| **is_answered).count();
    let settled = told.leases.values().filter(|granted| granted.is_settled).count();
    println!(
        "{} kills, {} of them while a store was being opened; {} openings, {} from a snapshot, {} with a torn end cut off; \
         told: {} batches of {} answered, {} leases, {settled} settled; the log: {} records in {} segments",
        told.kills,
        told.in_recovery,
        told.openings,
        told.from_snapshot,
        told.torn,
        answered,
        told.batches.len(),
        told.leases.len(),
        found.records,
        found.segments,
    );
    assert!(told.in_recovery * 20 > kills && told.from_snapshot * 3 > told.openings, "the dice are bad");
    assert!(answered as u64 > kills * 3 && settled as u64 > kills * 3, "{answered} {settled}");
    let over = told.queues.values().filter(|leases| leases.len() as u64 == BUDGET).count();
    assert!(over > 0 || kills < KILLS, "some queue has spent its budget");
}
