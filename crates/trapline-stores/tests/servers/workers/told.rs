//! What the parent was told, and what must be so if it is true.
//!
//! Nothing is heard before what it follows from: whoever says that it settles has not yet begun to, and whoever says that it
//! was granted a lease has it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use trapline_core::Timestamp;
use trapline_frontier::{Answer, Frontier, LeaseId, Outcome, Query, Rows, Scan, Settlement, UrlState};

use super::worker::{BUDGET, DELAY, LEASE, STEADY, STEADY_CONCURRENCY, STEADY_DELAY, is_steady, link, urls};

/// A lease that was told.
struct Granted {
    url: String,
    /// By the time of the frontier.
    at: u64,
    deadline: u64,
    /// What was begun, at which time, and whether it was answered.
    end: Option<End>,
    is_stale: bool,
}

struct End {
    word: String,
    at: u64,
    /// The line in which it was answered.
    settled: Option<u64>,
}

#[derive(Default)]
pub(super) struct Told {
    lines: u64,
    /// All batches that were begun, and whether they were answered.
    batches: BTreeMap<String, bool>,
    leases: BTreeMap<u64, Granted>,
    queues: BTreeMap<String, Vec<u64>>,
    /// In which line each life began its claim.
    claims: BTreeMap<String, u64>,
    pub(super) opened: u64,
    pub(super) stale: u64,
    /// How far machines' clocks were from the server's, in milliseconds.
    off: BTreeSet<i64>,
    /// How long a steady queue was not served at most.
    pub(super) longest_gap: u64,
}

impl Told {
    /// Hears a line, at a time by the server's clock.
    pub(super) fn hear(&mut self, line: &str, now: Timestamp) {
        self.lines += 1;
        let words: Vec<_> = line.split(' ').collect();
        let number = |word: &str| word.parse::<u64>().expect("a number");
        match words[..] {
            ["opened", _, wall, server] => {
                self.opened += 1;
                self.off.insert((number(wall) as i64 - number(server) as i64) / 60_000);
            }
            ["admitting", batch] => drop(self.batches.insert(batch.to_owned(), false)),
            ["added", batch] => drop(self.batches.insert(batch.to_owned(), true)),
            ["claiming", life] => drop(self.claims.insert(life.to_owned(), self.lines)),
            ["leased", life, id, queue, url, deadline] => {
                let deadline = number(deadline);
                let lease = Granted {
                    url: url.to_owned(),
                    at: deadline - LEASE.as_millis() as u64,
                    deadline,
                    end: None,
                    is_stale: false,
                };
                self.hear_lease(life, number(id), queue, lease);
            }
            ["settling", id, word, at] => {
                let end = End { word: word.to_owned(), at: number(at), settled: None };
                self.lease(number(id)).end = Some(end);
            }
            ["settled", id] => {
                let line = self.lines;
                let end = self.lease(number(id)).end.as_mut();
                end.expect("it was told when it was begun").settled = Some(line);
            }
            ["stale", id] => {
                let lease = self.lease(number(id));
                let late = lease.deadline <= now.as_millis() + 100;
                assert!(late, "{}: a lease of our own is stale at {now}, before its time", lease.url);
                lease.is_stale = true;
                self.stale += 1;
            }
            _ => panic!("{line}"),
        }
    }

    fn lease(&mut self, id: u64) -> &mut Granted {
        self.leases.get_mut(&id).expect("it was told when it was granted")
    }

    fn hear_lease(&mut self, life: &str, id: u64, queue: &str, new: Granted) {
        let (delay, concurrency) =
            if is_steady(queue) { (STEADY_DELAY, STEADY_CONCURRENCY) } else { (DELAY, 1) };
        let begun = self.claims[life];
        let Granted { url, at, .. } = &new;
        let of_queue = self.queues.entry(queue.to_owned()).or_default();
        let (mut live, mut spent) = (0, 1);
        for (other, lease) in of_queue.iter().map(|other| (other, &self.leases[other])) {
            let is_open = lease.deadline > *at && !lease.is_stale;
            match &lease.end {
                None => live += usize::from(is_open),
                Some(end) => {
                    let is_over = end.settled.is_some();
                    // With two leases at a time the other one may have been granted before, and told of later.
                    let surely = if concurrency == 1 {
                        is_over || is_open
                    } else {
                        end.settled.is_some_and(|line| line < begun)
                    };
                    let waits = surely && !lease.is_stale && end.word != "release";
                    let until = end.at + delay.as_millis() as u64;
                    assert!(
                        !waits || *at >= until,
                        "{url} leased as {id} at {at}, {queue} waits until {until} after {other}"
                    );
                    let is_done = is_over && end.word == "done" && lease.url == *url;
                    assert!(!is_done, "{url} leased as {id} although it is done");
                }
            }
            spent += u64::from(lease.end.as_ref().is_none_or(|end| end.word != "release"));
            let is_double = lease.url == *url && lease.end.is_none() && is_open;
            assert!(!is_double, "{url} leased as {id} at {at} while lease {other} of it lives");
        }
        assert!(live < concurrency, "{url} leased as {id} at {at} while {live} others of {queue} live");
        assert!(is_steady(queue) || spent <= BUDGET, "{queue} has spent {spent}, more than its budget");
        if is_steady(queue)
            && let Some(last) = of_queue.last()
        {
            self.longest_gap = self.longest_gap.max(at.saturating_sub(self.leases[last].at));
        }
        of_queue.push(id);
        let earlier = self.leases.insert(id, new);
        assert!(earlier.is_none(), "lease {id} was granted twice");
    }

    /// Whether machines' clocks were as wrong as they should be, in minutes.
    pub(super) fn clocks_were_off_by(&self, minutes: i64) -> bool {
        [-minutes, 0, minutes].iter().all(|off| self.off.iter().any(|found| (found - off).abs() <= 1))
    }

    /// Leases, settlements that were answered, batches that were answered.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        let is_settled = |lease: &&Granted| lease.end.as_ref().is_some_and(|end| end.settled.is_some());
        let settled = self.leases.values().filter(is_settled).count();
        (self.leases.len(), settled, self.batches.values().filter(|is_answered| **is_answered).count())
    }

    /// Holds what was told against what is there, after the end of all workers and all their leases.
    pub(super) fn check(&self, frontier: &Frontier, now: Timestamp) {
        let states = states(frontier, now);
        let state = |url: &str| states.get(url).copied().unwrap_or(UrlState::Unknown);
        for (batch, is_answered) in &self.batches {
            let known = urls(batch).iter().filter(|url| state(url) != UrlState::Unknown).count();
            let as_told = known == 3 || known == 0 && !is_answered;
            assert!(as_told, "of batch {batch} (answered: {is_answered}) {known} URLs are there");
        }
        for lease in self.leases.values() {
            let found = state(&lease.url);
            assert_ne!(found, UrlState::Unknown, "{} is lost", lease.url);
            let is_done = lease.end.as_ref().is_some_and(|end| end.word == "done" && end.settled.is_some());
            assert!(!is_done || found == UrlState::Done, "{} is not done any more", lease.url);
            // A page and its links are one step.
            if let Some(link) = link(&lease.url) {
                let is_there = state(&link) != UrlState::Unknown;
                assert_eq!(is_there, found == UrlState::Done, "{} is {found:?}, its link not", lease.url);
            }
        }
        self.check_nothing_invented(&states);
        self.check_spent(frontier, now);
        let old: Vec<_> =
            self.leases.keys().map(|lease| Settlement::new(LeaseId(*lease), Outcome::Release)).collect();
        for old in old.chunks(1000) {
            let answers = pollster::block_on(frontier.settle(now, old.to_vec())).expect("it is answered");
            assert!(
                answers.iter().all(|settled| settled.answer == Answer::Stale),
                "an old lease was accepted"
            );
        }
    }

    fn check_nothing_invented(&self, states: &BTreeMap<String, UrlState>) {
        let mut asked: BTreeSet<String> = self.batches.keys().flat_map(|batch| urls(batch)).collect();
        let chains = (0..STEADY).flat_map(|host| (0..super::CHAINS).map(move |chain| (host, chain)));
        asked.extend(chains.map(|(host, chain)| format!("http://{host}.steady.example/{chain}/0")));
        let ended =
            self.leases.values().filter(|lease| lease.end.as_ref().is_some_and(|end| end.word == "done"));
        asked.extend(ended.filter_map(|lease| link(&lease.url)));
        for url in states.keys() {
            assert!(asked.contains(url), "{url} was never asked for");
        }
    }

    /// What was told cannot be more than what is counted, and that cannot be more than the budget.
    fn check_spent(&self, frontier: &Frontier, now: Timestamp) {
        for (key, leases) in self.queues.iter().filter(|(key, _)| !is_steady(key)) {
            let report = pollster::block_on(frontier.queue(now, key)).expect("it is answered");
            let spent = report.expect("its queue is there").spent;
            assert!(
                leases.len() as u64 <= spent && spent <= BUDGET,
                "{key} has spent {spent}, told {}",
                leases.len()
            );
        }
    }
}

/// All URLs there are, and their states. None is there twice.
pub(super) fn states(frontier: &Frontier, now: Timestamp) -> BTreeMap<String, UrlState> {
    let query = Query::Urls { key: None, pattern: None, state: None };
    let mut scan = Scan { limit: 10_000, ..Scan::new(query) };
    let mut states = BTreeMap::new();
    loop {
        let page = pollster::block_on(frontier.scan(now, &scan)).expect("it is answered");
        let Rows::Urls(rows) = page.rows else { panic!("URLs were asked for") };
        for row in rows {
            let url = row.request.expect("it is known").url.clone();
            assert!(states.insert(url.clone(), row.state).is_none(), "{url} is there twice");
        }
        scan.cursor = page.cursor;
        if scan.cursor.is_none() {
            return states;
        }
    }
}

/// So long nothing lives any more.
pub(super) const ALL_OVER: Duration = Duration::from_secs(3);
