//! Processes under load, killed at random moments: whatever they were told, and told us, still holds.
//!
//! The children are this test binary itself, running [`child`] alone: two at a time, one of which owns the folder and serves
//! the other, with four clients each. They say what they are about to do and what they were answered, all into one pipe, so
//! that nothing is heard before what it follows from; the parent believes nothing else. In each round both are killed, the
//! second often while it takes over. Rounds follow one another in one folder, ten seconds apart by the clock of the frontier.
//! Beside the clients, each child begins jobs in another crawl.
//!
//! `TRAPLINE_KILLS=2000 cargo test --release -p trapline-stores --test it kill -- --nocapture` kills more often than usual.

mod jobs;

use std::io::{BufRead, BufReader, PipeReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use trapline_core::{Request, Timestamp};
use trapline_frontier::{
    Admission, Answer, ErrorKind, Frontier, Lease, Outcome, Settlement, Store, StoreError,
};
use trapline_sim::{Random, Witness, WitnessTerms, witness_link};
use trapline_stores::disk::verify;
use trapline_stores::{DiskOptions, DiskStore, Durability, SharedStore};

use jobs::Jobs;

const KILLS: u64 = 200;
/// Two children with so many each.
const CLIENTS: u64 = 4;
const ROUND_SECS: u64 = 10;
/// Leases and delays end in the third round after the one in which they begin.
const TERMS: WitnessTerms = WitnessTerms {
    lease: Duration::from_secs(25),
    delay: Duration::from_secs(25),
    budget: 8,
    slack: Duration::ZERO,
};
/// All rounds are looked at again after so many.
const FULL_CHECK: u64 = 25;

const KILLS_VARIABLE: &str = "TRAPLINE_KILLS";
const FOLDER: &str = "TRAPLINE_KILL_FOLDER";
const ROUND: &str = "TRAPLINE_KILL_ROUND";
const CHILD: &str = "TRAPLINE_KILL_CHILD";

/// Small, so that segments are begun, snapshots taken, the log tidied, and entries put on disk and brought back all the time.
const OPTIONS: DiskOptions = DiskOptions {
    durability: Durability::Batch,
    segment_bytes: 128 << 10,
    snapshot_bytes: 150 << 10,
    quiet: Duration::from_millis(5),
    min_free_disk: 0,
    max_memory: Some(100 << 10),
    lazy_bytes: 0,
    background: true,
};

fn time(round: u64) -> Timestamp {
    Timestamp::from_millis(round * ROUND_SECS * 1000)
}

fn open(store: Arc<dyn Store>, round: u64) -> Result<Frontier, StoreError> {
    pollster::block_on(Frontier::builder("kill").settings(TERMS.settings()).open_shared(store, time(round)))
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
        scope.spawn(|| jobs::run(store, time(round), &format!("{round}-{child}"), say, excuse));
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
        let link = witness_link(&lease.request.url).map(Request::get);
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

/// What the parent was told, over all rounds.
struct Told {
    witness: Witness,
    jobs: Jobs,
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
        if self.jobs.hear(&words) {
            return;
        }
        let (witness, now) = (&mut self.witness, time(round));
        match words[..] {
            ["admitting", batch] => witness.admitting(batch, urls(batch).to_vec(), now),
            ["added", batch] => witness.added(batch),
            ["leased", lease, queue, url] => witness.leased(id(lease), queue, url, now, now),
            ["settling", lease] => witness.settling(id(lease), now),
            ["settled", lease] => witness.settled(id(lease)),
            ["opening" | "joined", _] => {}
            ["opened", _, snapshot, cut] => {
                self.openings += 1;
                self.from_snapshot += u64::from(snapshot == "1");
                self.torn += u64::from(cut != "0");
            }
            _ => panic!("round {round}: {line}"),
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
    let mut told = Told {
        witness: Witness::new(TERMS),
        jobs: Jobs::default(),
        kills: 0,
        in_recovery: 0,
        openings: 0,
        from_snapshot: 0,
        torn: 0,
    };
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
        let store = Arc::new(store);
        told.jobs.check(Arc::clone(&store) as Arc<dyn Store>, time(round));
        let frontier = open(store, round).expect("the crawl opens");
        let is_full = round % FULL_CHECK == FULL_CHECK - 1 || round == rounds - 1;
        let since = if is_full { Timestamp::ZERO } else { time(round) };
        pollster::block_on(told.witness.check(&frontier, || time(round), since));
        if is_full {
            pollster::block_on(told.witness.check_nothing_invented(&frontier, time(round)));
        }
    }
    let found = verify(folder.path(), &mut |_| ()).expect("it can be read");
    assert_eq!(found.damages, []);
    let heard = told.witness.testimony();
    println!(
        "{} kills, {} of them while a store was being opened; {} openings, {} from a snapshot, {} with a torn end cut off; \
         told: {heard:?}; {} jobs, {} of them cut short; the log: {} records in {} segments",
        told.kills,
        told.in_recovery,
        told.openings,
        told.from_snapshot,
        told.torn,
        told.jobs.begun,
        told.jobs.cut_short,
        found.records,
        found.segments,
    );
    assert!(told.in_recovery * 20 > kills && told.from_snapshot * 3 > told.openings, "the dice are bad");
    assert!(heard.answered as u64 > kills * 3 && heard.settled as u64 > kills * 3, "{heard:?}");
    assert!(told.jobs.begun * 3 > kills && told.jobs.cut_short * 10 > kills, "jobs are killed on their way");
    assert!(heard.spent > 0 || kills < KILLS, "some queue has spent its budget");
}
