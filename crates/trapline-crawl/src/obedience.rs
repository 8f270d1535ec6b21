//! What the loop does when it is told something: seeds, pauses, the end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use trapline_core::{Candidate, Request, parse_url};
use trapline_frontier::{Admission, CrawlChange, Outcome, Refusal, Settlement};

use crate::candidate::{Prospect, seed_notes};
use crate::crawl::Crawl;
use crate::handle::{Order, Reload};
use crate::line::SkippedLine;
use crate::parts::Made;
use crate::patience::Halt;
use crate::ports::Results;
use crate::strategies::{self, Memory, Seeding, Wish};

impl Crawl {
    pub(crate) async fn obey_orders(&mut self) -> Result<(), Halt> {
        self.hurry();
        if self.is_aborted() {
            return self.give_back().await;
        }
        while let Some(order) = self.held.pop_front().or_else(|| self.orders.try_recv().ok()) {
            self.obey(order).await?;
        }
        Ok(())
    }

    pub(crate) async fn obey(&mut self, order: Order) -> Result<(), Halt> {
        match order {
            Order::Seeds(seeds, answer) => {
                let admissions = self.admit(seeds).await?;
                // Nobody may be waiting for it.
                let _ = answer.send(admissions);
            }
            Order::SeedsEnd => self.seeding = false,
            Order::Reload(reload, answer) => {
                let exchanged = self.exchange(*reload).await?;
                let _ = answer.send(exchanged);
            }
            Order::Pause(answer) => {
                // Those who have a lease, but have not asked yet, give it back.
                self.parts.gate.close();
                match self.steer("pause", CrawlChange::Pause).await? {
                    Ok(()) => self.pausing.push(answer),
                    Err(why) => {
                        self.parts.gate.open();
                        let _ = answer.send(Err(why));
                    }
                }
            }
            Order::Resume(answer) => {
                let resumed = self.steer("resume", CrawlChange::Resume).await?;
                if resumed.is_ok() {
                    self.go_on();
                }
                let _ = answer.send(resumed);
            }
        }
        Ok(())
    }

    /// Steers the crawl; or tells why it cannot be.
    async fn steer(&mut self, attempted: &str, change: CrawlChange) -> Result<Result<(), String>, Halt> {
        let steered = self
            .patiently(attempted, async |frontier, now| frontier.steer_crawl(now, change.clone()).await)
            .await;
        match steered {
            Ok(_) => Ok(Ok(())),
            Err(Halt::Failed(error)) => Ok(Err(error.to_string())),
            Err(Halt::Aborted) => Err(Halt::Aborted),
        }
    }

    /// Drops what is in flight, and gives it back.
    async fn give_back(&mut self) -> Result<(), Halt> {
        let aborted = self.flights.abort_all();
        if aborted.is_empty() {
            return Ok(());
        }
        let (options, robots) = (self.options.clone(), self.parts.robots.clone());
        self.patiently("give back", async |frontier, now| {
            let mut batch = Vec::with_capacity(aborted.len());
            for (id, key, request) in &aborted {
                // Their hosts were asked, if in vain: who comes next leaves them alone for a while.
                let delay = options.wait_after(frontier, robots.as_deref(), now, (key, request)).await;
                batch.push(Settlement { delay: Some(delay), ..Settlement::new(*id, Outcome::Release) });
            }
            frontier.settle(now, batch).await
        })
        .await?;
        self.tally().in_flight = 0;
        Ok(())
    }

    /// Gives back what was fetched, and could not be told in time.
    pub(crate) async fn release(&mut self, batch: Vec<Settlement>) -> Result<(), Halt> {
        let release = |untold: Settlement| Settlement {
            delay: untold.delay,
            ..Settlement::new(untold.lease, Outcome::Release)
        };
        let batch: Vec<_> = batch.into_iter().map(release).collect();
        self.patiently("give back", async |frontier, now| frontier.settle(now, batch.clone()).await).await?;
        Ok(())
    }

    /// The crawl is not paused, or no longer. Who waits for a pause waits in vain.
    pub(crate) fn go_on(&mut self) {
        self.parts.gate.open();
        for answer in self.pausing.drain(..) {
            let _ = answer.send(Err("the crawl was resumed before all had landed".to_owned()));
        }
    }

    /// Who wanted a pause is told when nothing is in flight any more.
    pub(crate) fn acknowledge_pause(&mut self) {
        if self.flights.is_empty() {
            for answer in self.pausing.drain(..) {
                let _ = answer.send(Ok(()));
            }
        }
    }

    /// Seeds go through the candidate chain like everything else, and make the scope.
    async fn admit(&mut self, seeds: Vec<Prospect>) -> Result<Vec<Result<Admission, SkippedLine>>, Halt> {
        let mut considered: Vec<Result<Candidate, SkippedLine>> = Vec::with_capacity(seeds.len());
        let mut places = Vec::new();
        let mut beside = Vec::new();
        for seed in seeds {
            let url = seed.url.clone();
            let mut candidate = self.consider_seed(seed);
            if let Ok(taken) = candidate {
                candidate = self.ask_strategy(taken, &mut beside).await?;
            }
            if candidate.is_ok() {
                places.extend(self.scope.seeds.add(&url));
            }
            considered.push(candidate);
        }
        if !places.is_empty() {
            let note = CrawlChange::Note(seed_notes::note(&places));
            self.patiently("note seeds", async |frontier, now| frontier.steer_crawl(now, note.clone()).await)
                .await?;
        }
        let mut batch: Vec<_> =
            considered.iter().filter_map(|candidate| candidate.as_ref().ok().cloned()).collect();
        let mut skipped: Vec<_> =
            considered.iter().filter_map(|candidate| candidate.as_ref().err().cloned()).collect();
        for (request, wish) in beside {
            // In scope as soon as the seeds are.
            match strategies::consider(&self.candidates, &request, &wish) {
                Ok(candidate) => batch.push(candidate),
                Err(why) => skipped.push(why),
            }
        }
        let mut admitted = self
            .patiently("admit", async |frontier, now| frontier.admit_candidates(now, &batch).await)
            .await?
            .into_iter();
        if !skipped.is_empty() {
            // What was told counts, although there is no settlement to say so.
            for note in self.output.write(&[Results { page: None, skipped }]).await? {
                let note = CrawlChange::Note(note);
                self.patiently("note results", async |frontier, now| {
                    frontier.steer_crawl(now, note.clone()).await
                })
                .await?;
            }
        }
        let answers = considered.into_iter().map(|candidate| {
            candidate.map(|_| admitted.next().unwrap_or(Admission::Refused(Refusal::Malformed)))
        });
        let answers: Vec<_> = answers.collect();
        let mut tally = self.tally();
        tally.seeds += answers.iter().filter(|answer| matches!(answer, Ok(Admission::Added))).count() as u64;
        drop(tally);
        Ok(answers)
    }

    /// What the strategy makes of a seed; requests that it wants beside it are added to `beside`.
    async fn ask_strategy(
        &mut self,
        seed: Candidate,
        beside: &mut Vec<(Request, Wish)>,
    ) -> Result<Result<Candidate, SkippedLine>, Halt> {
        let strategies = Arc::clone(&self.strategies);
        let url = parse_url(&seed.request.url, None).ok();
        let host = url.as_ref().and_then(|url| url.host_str()).unwrap_or_default();
        let strategy = strategies.of(host);
        let ask = |memory: &mut Memory| {
            let asked = catch_unwind(AssertUnwindSafe(|| strategy.seed(&seed.request, memory)));
            asked.unwrap_or_else(|_| Seeding {
                wish: Wish::Leave("the strategy panicked".into()),
                ..Seeding::default()
            })
        };
        let Seeding { wish, requests } = if strategy.remembers() {
            let memories = Arc::clone(&self.parts.memories);
            let site = self
                .hearing(memories.of(strategy.name(), strategies::site_of(host)), Some("remember"))
                .await??;
            let (seeding, is_other) = {
                let mut memory = site.lock();
                let before = memory.clone();
                let seeding = ask(&mut memory);
                (seeding, *memory != before)
            };
            if is_other {
                let note = CrawlChange::Note(site.note());
                self.patiently("note what is remembered", async |frontier, now| {
                    frontier.steer_crawl(now, note.clone()).await
                })
                .await?;
            }
            seeding
        } else {
            ask(&mut Memory::default())
        };
        beside.extend(
            requests.into_iter().map(|(request, wish)| (strategies::inferred(request, &seed.request), wish)),
        );
        Ok(strategies::wished(seed, &wish))
    }

    /// Goes on with other options, and with others who fetch and know robots.txt, if there are.
    async fn exchange(&mut self, reload: Reload) -> Result<Result<(), String>, Halt> {
        let Reload { mut options, fetch, robots } = reload;
        let before = (self.parts.fetch.clone(), self.parts.robots.clone());
        if let Some(fetch) = fetch {
            self.parts.fetch = fetch;
        }
        if let Some(robots) = robots {
            self.parts.robots = robots;
        }
        let report = self.patiently("look", async |frontier, now| frontier.report(now).await).await?;
        let made = self.parts.make(&mut options, Some(&self.scope)).and_then(|made| {
            strategies::check_order(made.strategies.usual(), report.settings.order)?;
            Ok(made)
        });
        let Made { scope, candidates, strategies, chains } = match made {
            Ok(made) => made,
            Err(error) => {
                (self.parts.fetch, self.parts.robots) = before;
                return Ok(Err(error.to_string()));
            }
        };
        self.patiently("read the seeds", async |frontier, now| {
            seed_notes::load(frontier, now, &scope.seeds).await
        })
        .await?;
        if options.concurrency != self.options.concurrency {
            self.handle.set_concurrency(options.concurrency);
        }
        self.parts.hold.begin_anew();
        self.flights.exchange(chains);
        (self.scope, self.candidates, self.strategies, self.options) =
            (scope, candidates, strategies, options);
        Ok(Ok(()))
    }

    /// A rule that panics costs the seed, not the crawl.
    fn consider_seed(&self, seed: Prospect) -> Result<Candidate, SkippedLine> {
        let (url, depth) = (seed.request.url.clone(), seed.request.depth);
        let considered = catch_unwind(AssertUnwindSafe(|| self.candidates.consider(seed)));
        considered.unwrap_or_else(|_| {
            let detail = Some("a rule of the candidate chain panicked".to_owned());
            Err(SkippedLine { url, reason: "panic".to_owned(), detail, via: None, depth })
        })
    }
}
