//! Random crawls, exported and imported again: the copy is exported as the same bytes, and its claims get the same.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use indicatif::ProgressBar;
use trapline_core::{Candidate, Request, Statement, Terms, Timestamp};
use trapline_frontier::{
    CrawlChange, DeadChange, DeadLetters, Frontier, Lease, MemoryStore, NoteWrite, Order, Outcome, Pattern,
    QueueChange, Settings, Settlement, Steer, Store, Visit,
};

use super::super::address::Address;
use super::super::export;
use super::super::lines::Lines;
use super::super::moment;
use super::{LINE_BYTES_MAX, Reading, own};

const HOUR: Duration = Duration::from_secs(3600);

/// Numbers that look random: splitmix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Some hours after a time, never twice the same: what is due together would come in the order of admission.
    fn later(&mut self, now: Timestamp) -> Timestamp {
        now + HOUR * (self.below(30) as u32 + 1)
            + Duration::from_millis(self.below(1_000_000_000) % 3_000_000)
    }

    fn bytes(&mut self) -> Vec<u8> {
        (0..self.below(6)).map(|_| self.below(256) as u8).collect()
    }

    fn text(&mut self) -> String {
        let letters = ['a', 'ä', '"', '\\', '\n', '\0', '{', '💡', ' '];
        (0..self.below(5)).map(|_| letters[self.below(9) as usize]).collect()
    }

    fn url(&mut self) -> String {
        format!("http://{}.example/{}?q={}", self.below(5), self.below(20), self.below(2))
    }

    fn request(&mut self) -> Request {
        let mut request = Request::get(self.url());
        if self.once_in(3) {
            request.method = if self.once_in(2) { "POST".into() } else { "GET".into() };
            request.headers = vec![(self.text(), self.bytes()), ("x".to_owned(), self.bytes())];
            request.cookies = vec![(self.text(), self.text())];
            request.body = self.bytes();
            request.metadata = BTreeMap::from([(self.text(), vec![self.text(), self.text()])]);
            request.opaque = self.bytes();
            request.fingerprint = self.once_in(4).then(|| self.bytes());
        }
        if self.once_in(3) {
            request.priority = Some(self.below(256) as u8 as i8);
            request.score = Some(self.below(1000) as f32 / 999.0);
            request.depth = self.below(9) as u32;
            request.depth_limit = self.once_in(2).then_some(9);
            request.via = Some(self.url());
            request.hop_path = self.text();
            request.redirects = vec![self.url(), self.text()];
            request.retries = self.below(4) as u32;
            request.seed = Some(self.text());
        }
        request
    }

    fn terms(&mut self) -> Terms {
        let mut terms = Terms::default();
        match self.below(6) {
            0 => terms.precedence = Some(self.below(5) as u8),
            1 => terms.queue_budget = Some(if self.once_in(4) { u64::MAX } else { self.below(30) }),
            2 => terms.balance_replenish = Some(self.below(5)),
            3 => terms.delay = Some(Duration::from_millis(self.below(10_000_000))),
            4 => terms.concurrency = Some(self.below(4) as u32),
            _ => terms.group = Some(["", "g", "h"][self.below(3) as usize].into()),
        }
        terms
    }
}

/// Does something to a crawl.
fn step(dice: &mut Dice, frontier: &Frontier, now: Timestamp, leases: &mut Vec<Lease>) {
    let candidate = |dice: &mut Dice| {
        let slot = dice.once_in(9).then(|| format!("slot {}", dice.text()));
        let prepared = frontier.prepare_in(dice.request(), slot.as_deref()).expect("it is a URL");
        let statement = dice
            .once_in(9)
            .then(|| if dice.once_in(2) { Statement::Done } else { Statement::Next(dice.later(now)) });
        let terms = if dice.once_in(6) { dice.terms() } else { Terms::default() };
        Candidate { statement, terms, class: dice.once_in(3).then(|| dice.below(256) as u8), ..prepared }
    };
    match dice.below(10) {
        0..4 => {
            let batch: Vec<_> = (0..5).map(|_| candidate(dice)).collect();
            pollster::block_on(frontier.admit_candidates(now, &batch)).expect("admitted");
        }
        4..6 => leases.extend(pollster::block_on(frontier.claim(now, 3)).expect("claimed").leases),
        6..9 if !leases.is_empty() => {
            let lease = leases.remove(dice.below(leases.len() as u64) as usize);
            let visit = Visit {
                status: 200,
                bytes: dice.below(9),
                etag: Some(dice.text()),
                last_modified: dice.once_in(2).then(|| dice.text()),
                digest: Some(dice.bytes()),
                simhash: Some(u64::MAX - dice.below(9)),
            };
            let reason = dice.text();
            let outcome = match dice.below(9) {
                0..3 => Outcome::Done { visit, next: dice.once_in(2).then(|| dice.later(now)) },
                3 => Outcome::done(),
                4 | 5 => Outcome::Retry { at: dice.later(now) },
                6 => Outcome::Release,
                7 => Outcome::Dead { reason },
                _ => Outcome::Disregard { reason },
            };
            let mut settlement = Settlement::new(lease.id, outcome);
            settlement.delay = dice.once_in(2).then_some(Duration::ZERO);
            settlement.links = (0..dice.below(3)).map(|_| candidate(dice)).collect();
            pollster::block_on(frontier.settle(now, vec![settlement])).expect("settled");
        }
        _ => {
            let key = format!("{}.example", dice.below(5));
            let steer = match dice.below(9) {
                0..2 => Steer::Queue(key, QueueChange::Terms(dice.terms())),
                2 => Steer::Queue(key, QueueChange::Block(dice.later(now))),
                3 => Steer::Queue(key, QueueChange::Retire),
                4 | 5 => Steer::Queue(key, QueueChange::Reinstate),
                6 => Steer::Queue(key, QueueChange::Purge(Some(Pattern::new("*/1*")))),
                7 => Steer::Dead(DeadLetters::Queue(key), DeadChange::Replay),
                _ => Steer::Crawl(CrawlChange::Note(NoteWrite {
                    key: dice.text(),
                    value: Some(dice.bytes()),
                    expires: dice.once_in(3).then(|| dice.later(now)),
                })),
            };
            pollster::block_on(frontier.steer(now, steer)).expect("steered");
        }
    }
}

pub(crate) fn written(frontiers: &[Frontier], now: Timestamp) -> String {
    let mut file = Vec::new();
    let exported = export::export(frontiers, now, &mut file, &ProgressBar::hidden());
    assert!(exported.is_ok(), "it can be exported");
    String::from_utf8(file).expect("it is text")
}

/// Imports a file into a store in memory.
fn imported(file: &str, store: &Arc<dyn Store>) -> Result<(), String> {
    let input: Box<dyn std::io::Read> = Box::new(std::io::Cursor::new(file.as_bytes().to_vec()));
    let mut reading = Reading {
        at: Address { store: None, crawl: "default", is_named: false },
        lines: Lines::of(input, "a test".to_owned(), LINE_BYTES_MAX),
        first: None,
        skip_bad: false,
        bad: 0,
        progress: ProgressBar::hidden(),
    };
    let mut tallies = Vec::new();
    own::import(&mut reading, || Ok(Arc::clone(store)), &mut tallies).map_err(|problem| problem.message)
}

fn attach(store: &Arc<dyn Store>, name: &str) -> Frontier {
    let attached = Frontier::builder(name).attach(Arc::clone(store), Timestamp::ZERO);
    pollster::block_on(attached).expect("it is there")
}

/// A crawl that dice have used, without leases.
fn used(seed: u64, now: Timestamp) -> Frontier {
    used_on(Arc::new(MemoryStore::new()), seed, now, true)
}

/// The same on a store, with leases if they are not released.
pub(crate) fn used_on(store: Arc<dyn Store>, seed: u64, now: Timestamp, release: bool) -> Frontier {
    let mut dice = Dice(seed);
    let settings = Settings {
        order: [Order::Fifo, Order::Lifo, Order::Date][dice.below(3) as usize],
        delay: Duration::from_millis(dice.below(5_000_000)),
        hold_queues: dice.once_in(2),
        balance_replenish: 1 + dice.below(9),
        queue_budget: dice.once_in(3).then(|| dice.below(20)),
        lease: HOUR,
        ..Settings::default()
    };
    let partitions = 1 + dice.below(3) as u32;
    let builder = Frontier::builder("crawl\n💡").settings(settings).partitions(partitions);
    let frontier = pollster::block_on(builder.open_shared(store, now)).expect("it opens");
    let mut leases = Vec::new();
    for _ in 0..120 {
        step(&mut dice, &frontier, now, &mut leases);
    }
    for lease in leases.into_iter().filter(|_| release) {
        let settlement = Settlement::new(lease.id, Outcome::Release);
        pollster::block_on(frontier.settle(now, vec![settlement])).expect("released");
    }
    frontier
}

#[test]
fn a_random_crawl_is_the_same_after_export_and_import() {
    for seed in 0..60 {
        let now = moment::now();
        let first = used(seed, now);
        let file = written(std::slice::from_ref(&first), now);
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        assert_eq!(imported(&file, &store), Ok(()), "seed {seed}");
        let second = attach(&store, "crawl\n💡");
        let again = written(std::slice::from_ref(&second), now);
        for (again, line) in again.lines().zip(file.lines()) {
            assert_eq!(again, line, "seed {seed}");
        }
        assert_eq!(again, file, "seed {seed}");
        assert_eq!(imported(&file, &store), Ok(()), "seed {seed}: once more");
        let same = written(std::slice::from_ref(&second), now);
        let urls = |file: &str| {
            file.lines().filter(|line| line.starts_with("{\"url\"")).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(urls(&same), urls(&file), "seed {seed}: everything was known");

        let mut now = now;
        for round in 0..200 {
            now = now + Duration::from_millis(1_234_567);
            let [one, two] = [&first, &second].map(|frontier| {
                let claimed = pollster::block_on(frontier.claim(now, 1)).expect("claimed");
                let told = claimed.leases.first().map(|lease| {
                    (lease.request.clone(), lease.key.clone(), lease.cost, lease.delivery, lease.page.clone())
                });
                for lease in claimed.leases {
                    let settlement = Settlement::new(lease.id, Outcome::done());
                    pollster::block_on(frontier.settle(now, vec![settlement])).expect("settled");
                }
                (told, claimed.next, claimed.exhausted)
            });
            assert_eq!(two, one, "seed {seed}, round {round}");
        }
    }
}

/// Wherever a file was cut off, importing the whole of it afterwards gives the whole crawl.
#[test]
fn an_import_that_was_cut_off_goes_on_where_it_was() {
    let now = moment::now();
    let first = used(7, now);
    let file = written(std::slice::from_ref(&first), now);
    let lines: Vec<_> = file.split_inclusive('\n').collect();
    for cut in (1..lines.len()).step_by(3) {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let problem = imported(&lines[..cut].concat(), &store).expect_err("it was cut off");
        assert!(problem.contains("it was cut off"), "{problem}");
        if cut > 1 && cut < lines.len() - 1 {
            let second = attach(&store, "crawl\n💡");
            let claimed = pollster::block_on(second.claim(now, 9)).expect("claimed");
            assert!(claimed.leases.is_empty(), "it is paused until all of it is there");
        }
        assert_eq!(imported(&file, &store), Ok(()), "cut {cut}");
        assert_eq!(written(&[attach(&store, "crawl\n💡")], now), file, "cut {cut}");
    }
}

/// Bytes changed anywhere give a message with a line's number, or a crawl; never a panic.
#[test]
fn a_file_that_was_tampered_with_is_refused_or_taken_and_harmless() {
    let now = moment::now();
    let file = written(&[used(3, now)], now).into_bytes();
    let mut dice = Dice(11);
    for _ in 0..400 {
        let mut bad = file.clone();
        for _ in 0..1 + dice.below(3) {
            let at = dice.below(bad.len() as u64) as usize;
            bad[at] = b"\"{}[],:09ae\n-\\x"[dice.below(15) as usize];
        }
        let Ok(bad) = String::from_utf8(bad) else { continue };
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        if let Err(problem) = imported(&bad, &store) {
            assert!(problem.contains("line ") || problem.contains("cut off"), "{problem}");
        }
    }
}
