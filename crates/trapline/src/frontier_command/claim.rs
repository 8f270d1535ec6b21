//! `trapline frontier claim`: leases for a worker that reads JSON.

use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use trapline_core::parse_duration;
use trapline_frontier::{Claimed, Ear, ErrorKind, Frontier, Lease, StoreError, Want};

use super::address::Address;
use super::output::{Output, Row};
use super::{Ended, complain, moment, request};

/// How often a store is looked at that does not say when there is something new.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Claim URLs to fetch
///
/// Prints a JSON object a line for each lease: its id, url, key, deadline and delivery, and of the request what is not as usual
/// (method, headers, body, depth, via and so on). Settle each one before its deadline. When there are fewer than wanted,
/// standard error says when there may be more. With --wait it looks again as soon as there is something, until it has at least
/// one or the time is over; a store that cannot be reached meanwhile is waited for as well.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier --store disk:crawl claim -n 10 --lease 5m > leases
  trapline frontier --store postgres://db.example/frontier claim -n 10 --wait 30s > leases
  jq -c '{id, outcome: \"done\"}' leases | trapline frontier --store disk:crawl settle")]
pub(super) struct ClaimUrls {
    /// How many URLs
    #[arg(short, long = "urls", value_name = "N", default_value = "1")]
    n: usize,
    /// For how long, such as 60s; as the crawl's `lease` says unless given
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    lease: Option<Duration>,
    /// Where there is nothing to claim, wait for it, at most so long
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    wait: Option<Duration>,
    /// At most so many URLs of one queue
    #[arg(long, value_name = "N")]
    per_queue: Option<usize>,
    /// From at most so many queues
    #[arg(long, value_name = "N")]
    queues: Option<usize>,
    /// From so many different queues at least, if that many can supply
    #[arg(long, value_name = "N")]
    min_queues: Option<usize>,
    /// Only from this queue; may be given several times
    #[arg(long = "key", value_name = "KEY")]
    keys: Vec<String>,
    /// Not from this queue; may be given several times
    #[arg(long, value_name = "KEY")]
    except: Vec<String>,
}

impl ClaimUrls {
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        let want = Want {
            urls: self.n,
            lease: self.lease,
            queues: self.queues,
            per_queue: self.per_queue,
            min_queues: self.min_queues,
            keys: (!self.keys.is_empty()).then(|| self.keys.clone()),
            except: self.except.clone(),
            partitions: None,
        };
        let frontier = at.open()?;
        let claimed = pollster::block_on(self.claim(&frontier, &want)).map_err(|error| error.to_string())?;
        // Whoever reads the leases may want to settle them at once.
        drop(frontier);
        for lease in &claimed.leases {
            out.object(&row(lease));
        }
        if let Some(why) = self.why_fewer(&claimed) {
            complain(&why);
        }
        Ok(Ended::Well)
    }

    /// Claims, and waits for something to claim as long as that is wanted.
    async fn claim(&self, frontier: &Frontier, want: &Want) -> Result<Claimed, StoreError> {
        let mut ear = None;
        let mut has_complained = false;
        let begun = Instant::now();
        loop {
            let claimed = self.look(frontier, want, &mut ear).await;
            let left = self.wait.map_or(Duration::ZERO, |wait| wait.saturating_sub(begun.elapsed()));
            let claimed = match claimed {
                // It was tried for a while already, by the store itself.
                Err(error) if error.kind() == ErrorKind::Unavailable && !left.is_zero() => {
                    if !has_complained {
                        complain(&format!("{error}\n  It is tried again until the wait is over."));
                        has_complained = true;
                    }
                    std::thread::sleep(left.min(LOOK_AGAIN));
                    continue;
                }
                claimed => claimed?,
            };
            let ear = ear.as_mut().and_then(Option::as_mut);
            if !claimed.leases.is_empty() || left.is_zero() {
                return Ok(claimed);
            }
            let foreseen = claimed.next.map_or(Duration::MAX, |next| next.since(moment::now()));
            let pause = left.min(foreseen).max(Duration::from_millis(1));
            match ear {
                Some(ear) => {
                    ear.wait(pause).await;
                }
                None => std::thread::sleep(pause.min(LOOK_AGAIN)),
            }
        }
    }

    /// Claims once. Who waits has an ear before the first look: what comes after it is heard of.
    async fn look(
        &self,
        frontier: &Frontier,
        want: &Want,
        ear: &mut Option<Option<Box<dyn Ear>>>,
    ) -> Result<Claimed, StoreError> {
        if self.wait.is_some() && ear.is_none() {
            *ear = Some(frontier.ear().await?);
        }
        frontier.claim(moment::now(), want.clone()).await
    }

    fn why_fewer(&self, claimed: &Claimed) -> Option<String> {
        let got = claimed.leases.len();
        (got < self.n).then(|| {
            let why = match claimed.next {
                Some(next) => format!("more may be there from {} on", moment::write(next)),
                None if claimed.exhausted => "the crawl is exhausted".to_owned(),
                None => "more is there once a lease is settled, a URL admitted or a queue steered".to_owned(),
            };
            format!("{got} of {} claimed; {why}", self.n)
        })
    }
}

fn row(lease: &Lease) -> Row {
    let mut row = vec![
        ("id", json!(lease.id.0)),
        ("url", json!(lease.request.url)),
        ("key", json!(&*lease.key)),
        ("deadline", json!(moment::write(lease.deadline))),
        ("delivery", json!(lease.delivery)),
    ];
    row.extend(request::write(&lease.request));
    row
}
