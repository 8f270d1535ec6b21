//! Whether reports and counts say what happened.

use trapline_core::Identity;
use trapline_frontier::{
    CrawlReport, CrawlState, LeaseReport, QueueReport, QueueState, Stats, UrlReport, UrlState,
};

use super::Oracle;
use super::breach::{Breach, Rule};
use super::entry::State;

/// A difference between what a report says and what happened.
fn differs(what: &str, says: &impl std::fmt::Debug, should: &impl std::fmt::Debug) -> Breach {
    Breach::new(Rule::Report, format!("{what}: {says:?} is said, {should:?} is so"))
}

impl Oracle {
    /// The identities of all URLs that are known.
    pub(crate) fn identities(&self) -> Vec<Identity> {
        self.books.entries.values().map(|entry| entry.identity).collect()
    }

    /// The text of a URL; empty if it is not known.
    pub(crate) fn url_of(&self, identity: Identity) -> String {
        self.books.newest(identity).map(|entry| entry.url.clone()).unwrap_or_default()
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
        if says == should { Ok(()) } else { Err(differs(&entry.url, &says, &should)) }
    }

    /// A queue was looked at.
    pub(crate) fn check_queue(&self, key: &str, report: Option<&QueueReport>) -> Result<(), Breach> {
        let index = self.books.find_queue(key);
        let (Some(report), Some(index)) = (report, index) else {
            let (says, should) = (report.is_some(), index.is_some());
            return if says == should {
                Ok(())
            } else {
                Err(differs(&format!("{key} is known"), &says, &should))
            };
        };
        let queue = &self.books.queues[index];
        let terms = queue.in_force(&self.books.settings);
        let counts = queue.counts;
        let state = self.books.queue_state(index);
        if report.state != state {
            return Err(differs(&format!("{key}, its state"), &report.state, &state)
                .expecting(format!("state={state}")));
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
            return Err(
                differs(&format!("{key}, {name}"), &says, &should).expecting(format!("{name}={should}"))
            );
        }
        if report.balance != queue.balance {
            let expected = format!("balance={}", queue.balance);
            return Err(
                differs(&format!("{key}, balance"), &report.balance, &queue.balance).expecting(expected)
            );
        }
        let next_fetch = queue.next_fetch.max(self.books.group_waits_until(index));
        let next_fetch = Some(next_fetch).filter(|at| *at > self.books.now);
        let says = (
            report.partition,
            report.errors,
            report.budget,
            report.concurrency,
            report.delay,
            report.next_fetch,
        );
        let should =
            (queue.partition, queue.errors, terms.budget, terms.concurrency, terms.delay, next_fetch);
        if says != should {
            let what = format!("{key} (partition, errors, budget, concurrency, delay, next fetch)");
            return Err(differs(&what, &says, &should));
        }
        if report.group != terms.group {
            return Err(differs(&format!("{key}, its group"), &report.group, &terms.group));
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
        let should = (state, books.is_exhausted());
        if (says, report.exhausted) != should {
            let exhausted = if should.1 { "yes" } else { "no" };
            return Err(differs("the crawl (state, exhausted)", &(says, report.exhausted), &should)
                .expecting(format!("state={state} exhausted={exhausted}")));
        }
        if report.settings != books.settings {
            return Err(differs("the crawl's settings", &report.settings, &books.settings));
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
        let says =
            (stats.urls, stats.visits_waiting, stats.granted, stats.expired, stats.fetched, stats.spent);
        let should = (urls, visits, books.granted, books.expired, books.fetched, books.spent);
        if says != should {
            return Err(differs(
                "the counts (URLs, visits waiting, granted, expired, fetched, spent)",
                &says,
                &should,
            ));
        }
        // A queue that was reconsidered with all others counts as inactive until its turn comes, even if its group waits.
        let blurred = |mut counts: [u64; 7]| {
            counts[QueueState::Inactive as usize] +=
                std::mem::take(&mut counts[QueueState::Snoozed as usize]);
            counts
        };
        if blurred(stats.queues) == blurred(queues) {
            Ok(())
        } else {
            Err(differs("the queues by state", &stats.queues, &queues))
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
        if says == should { Ok(()) } else { Err(differs("the live leases", &says, &should)) }
    }
}
