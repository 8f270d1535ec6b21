//! Whether reports and counts say what happened.

use std::fmt;
use std::time::Duration;

use trapline_core::{Identity, Timestamp, format_duration};
use trapline_frontier::script::{Verb, describe_page};
use trapline_frontier::{
    CrawlReport, CrawlState, LeaseId, LeaseReport, QueueReport, QueueState, Settings, Stats, UrlReport,
    UrlState,
};

use super::Oracle;
use super::breach::{Breach, Rule};
use super::entry::State;

/// A difference between what a report says and what happened.
fn differs(of: &str, what: &str, says: &impl fmt::Display, should: &impl fmt::Display) -> Breach {
    Breach::new(Rule::Report, format!("{of}, {what}: said to be {says}, but it is {should}"))
}

/// The first of several things that is not what it should be, of which there is one.
fn first_of<const N: usize>(of: &str, names: [&str; N], says: [String; N], should: [String; N]) -> Breach {
    let mut all = names.into_iter().zip(says.into_iter().zip(should));
    let (what, (says, should)) =
        all.find(|(_, (says, should))| says != should).expect("what differs is written differently");
    differs(of, what, &says, &should)
}

fn or_none(value: Option<impl fmt::Display>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

impl Oracle {
    /// The identities of all URLs that are known.
    pub(crate) fn identities(&self) -> Vec<Identity> {
        self.books.entries.values().map(|entry| entry.identity).collect()
    }

    /// The text of a URL that is known.
    pub(crate) fn url_of(&self, identity: Identity) -> String {
        self.books.newest(identity).expect("a URL that is known").url.clone()
    }

    /// The keys of all queues that are known.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.books.queues.iter().map(|queue| queue.key.clone()).collect()
    }

    /// A URL was looked up: N1.
    pub(crate) fn check_url(&self, identity: Identity, report: &UrlReport) -> Result<(), Breach> {
        let expected = self.books.state_of(identity);
        let entry = self.books.newest(identity);
        if report.state != expected {
            let url = entry.map_or("a URL", |entry| &entry.url);
            let rule = match (expected, report.state) {
                (UrlState::Unknown, _) => Rule::Report,
                (_, UrlState::Unknown) if entry.is_some_and(|entry| entry.is_link) => Rule::N8,
                _ => Rule::N1,
            };
            let message = format!("{url} is said to be {}, but it is {expected}", report.state);
            return Err(Breach::new(rule, message).expecting(expected.to_string()));
        }
        let Some(entry) = entry else { return Ok(()) };
        let key = &self.books.queues[entry.queue].key;
        let due = entry.state.due().filter(|_| !matches!(entry.state, State::Leased(_)));
        let says = (report.class, report.cost, report.due, report.key.as_deref());
        let should = (entry.class, entry.cost, due, Some(&**key));
        if says == should && report.page == entry.page {
            return Ok(());
        }
        if says == should {
            let [says, should] = [&report.page, &entry.page].map(|page| describe_page(page.as_deref()));
            return Err(differs(&entry.url, "its page", &says, &should)
                .shown_by(Verb::Page(entry.url.clone()))
                .expecting(should));
        }
        let at = report.due.into_iter().chain(due).min().filter(|at| *at > self.books.now);
        let shown = |(class, cost, due, key): (u8, u32, Option<Timestamp>, Option<&str>)| {
            [class.to_string(), cost.to_string(), or_none(due), or_none(key)]
        };
        let names = ["its class", "its cost", "when it is due", "its queue"];
        let breach = first_of(&entry.url, names, shown(says), shown(should));
        let Some(at) = at.filter(|_| report.due != due) else { return Err(breach) };
        let mut books = self.books.clone();
        books.advance(at);
        Err(breach.shown_later(at, Verb::Url(entry.url.clone()), Some(books.state_of(identity).to_string())))
    }

    /// A queue was looked at.
    pub(crate) fn check_queue(&self, key: &str, report: Option<&QueueReport>) -> Result<(), Breach> {
        let index = self.books.find_queue(key);
        let (Some(report), Some(index)) = (report, index) else {
            let (says, should) = (report.is_some(), index.is_some());
            let word = |known| if known { "known" } else { "unknown" };
            return if says == should {
                Ok(())
            } else {
                Err(differs("the queue", key, &word(says), &word(should)))
            };
        };
        let queue = &self.books.queues[index];
        let terms = queue.in_force(&self.books.settings);
        let counts = queue.counts;
        let state = self.books.queue_state(index);
        if report.state != state {
            return Err(differs(key, "its state", &report.state, &state).expecting(format!("state={state}")));
        }
        let numbers = [
            ("pending", report.pending, counts.pending()),
            ("leased", report.leased, counts.leased),
            ("done", report.done, counts.done),
            ("disregarded", report.disregarded, counts.disregarded),
            ("dead", report.dead, counts.dead),
            ("spent", report.spent, queue.spent),
            ("latest_cost", report.latest_cost.into(), queue.latest_cost.into()),
            ("precedence", report.precedence.into(), terms.precedence.into()),
        ];
        if let Some((name, says, should)) = numbers.into_iter().find(|(_, says, should)| says != should) {
            return Err(differs(key, name, &says, &should).expecting(format!("{name}={should}")));
        }
        if report.balance != queue.balance {
            let expected = format!("balance={}", queue.balance);
            return Err(differs(key, "balance", &report.balance, &queue.balance).expecting(expected));
        }
        let next_fetch = queue.next_fetch.max(self.books.group_waits_until(index));
        let next_fetch = Some(next_fetch).filter(|at| *at > self.books.now);
        if report.budget != terms.budget {
            let [says, should] = [report.budget, terms.budget].map(or_none);
            return Err(differs(key, "budget", &says, &should).expecting(format!("budget={should}")));
        }
        let says = (report.partition, report.errors, report.concurrency, report.delay, report.next_fetch);
        let should = (queue.partition, queue.errors, terms.concurrency, terms.delay, next_fetch);
        if says != should {
            let shown = |(partition, errors, concurrency, delay, next): (
                u32,
                u64,
                u32,
                Duration,
                Option<Timestamp>,
            )| {
                [
                    partition.to_string(),
                    errors.to_string(),
                    concurrency.to_string(),
                    format_duration(delay),
                    or_none(next),
                ]
            };
            let names = ["partition", "errors", "concurrency", "delay", "next fetch"];
            return Err(first_of(key, names, shown(says), shown(should)));
        }
        if report.group != terms.group {
            let [says, should] = [report.group.as_ref(), terms.group.as_ref()].map(or_none);
            return Err(differs(key, "its group", &says, &should));
        }
        Ok(())
    }

    /// The crawl was looked at.
    pub(crate) fn check_crawl(&self, report: &CrawlReport) -> Result<(), Breach> {
        let books = &self.books;
        let state = match (books.is_finished, books.is_paused) {
            (true, _) => "finished",
            (false, true) => "paused",
            (false, false) => "running",
        };
        let says = match report.state {
            CrawlState::Running => "running",
            CrawlState::Paused => "paused",
            CrawlState::Finished(_) => "finished",
        };
        let exhausted = |exhausted| if exhausted { "yes" } else { "no" };
        let says = format!("state={says} exhausted={}", exhausted(report.exhausted));
        let should = format!("state={state} exhausted={}", exhausted(books.is_exhausted()));
        if says != should {
            return Err(differs("the crawl", "where it stands", &says, &should).expecting(should));
        }
        for name in Settings::NAMES.iter().filter(|_| report.settings != books.settings) {
            let [says, should] =
                [&report.settings, &books.settings].map(|settings| or_none(settings.get(name)));
            if says != should {
                return Err(differs("the crawl", name, &says, &should));
            }
        }
        Ok(())
    }

    /// The crawl's counts were asked for.
    pub(crate) fn check_stats(&self, stats: &Stats) -> Result<(), Breach> {
        let books = &self.books;
        let mut urls = [0; 6];
        let mut visits = 0;
        let mut queues = [0; 7];
        for (index, queue) in books.queues.iter().enumerate() {
            urls.iter_mut().zip(queue.counts.shown()).for_each(|(sum, count)| *sum += count);
            visits += queue.counts.visits;
            queues[books.queue_state(index) as usize] += 1;
        }
        for (state, (says, should)) in UrlState::ALL.iter().zip(stats.urls.iter().zip(urls)) {
            if *says != should {
                return Err(differs("the counts", &format!("URLs that are {state}"), says, &should));
            }
        }
        let numbers = [
            ("visits waiting", stats.visits_waiting, visits),
            ("leases granted", stats.granted, books.granted),
            ("leases expired", stats.expired, books.expired),
            ("fetches", stats.fetched, books.fetched),
            ("bytes", stats.bytes, books.bytes),
            ("spent", stats.spent, books.spent),
        ];
        if let Some((name, says, should)) = numbers.into_iter().find(|(_, says, should)| says != should) {
            return Err(differs("the counts", name, &says, &should));
        }
        // A queue that was reconsidered with all others counts as inactive until its turn comes, even if its group waits.
        let blurred = |mut counts: [u64; 7]| {
            counts[QueueState::Inactive as usize] +=
                std::mem::take(&mut counts[QueueState::Snoozed as usize]);
            counts
        };
        let (says, should) = (blurred(stats.queues), blurred(queues));
        match QueueState::ALL.into_iter().find(|state| says[*state as usize] != should[*state as usize]) {
            None => Ok(()),
            Some(state) => {
                let what = match state {
                    QueueState::Inactive => "queues that are inactive or snoozed".to_owned(),
                    state => format!("queues that are {state}"),
                };
                Err(differs("the counts", &what, &says[state as usize], &should[state as usize]))
            }
        }
    }

    /// All live leases were listed.
    pub(crate) fn check_leases(&self, leases: &[LeaseReport]) -> Result<(), Breach> {
        let mut says: Vec<_> = leases
            .iter()
            .map(|lease| {
                (lease.id, lease.granted, lease.deadline, lease.delivery, lease.request.url.as_str())
            })
            .collect();
        says.sort_unstable();
        let mut should = Vec::new();
        for number in self.books.live.values() {
            let entry = &self.books.entries[number];
            if let State::Leased(grant) = entry.state {
                should.push((
                    grant.id,
                    grant.granted,
                    grant.deadline,
                    entry.expiries + 1,
                    entry.url.as_str(),
                ));
            }
        }
        should.sort_unstable();
        if says == should {
            return Ok(());
        }
        let shown = |(id, granted, deadline, delivery, url): &(LeaseId, Timestamp, Timestamp, u32, &str)| {
            format!("lease {} of {url}, granted at {granted} until {deadline}, delivery {delivery}", id.0)
        };
        let told = says.iter().find(|lease| !should.contains(lease));
        let kept = should.iter().find(|lease| !says.contains(lease));
        let message = match (told, kept) {
            (Some(told), Some(kept)) => format!("{} is listed, but there is {}", shown(told), shown(kept)),
            (Some(told), None) => format!("{} is listed, but there is none", shown(told)),
            (None, Some(kept)) => format!("{} is not listed", shown(kept)),
            (None, None) => "a lease is listed twice".to_owned(),
        };
        Err(Breach::new(Rule::Report, message))
    }
}
