//! What will happen to a URL next, and when, in words and as times.

use std::time::Duration;

use serde_json::{Value, json};
use trapline_core::{Timestamp, format_duration};
use trapline_crawl::Foreseen;
use trapline_frontier::{CrawlReport, CrawlState, LeaseReport, QueueReport, QueueState, UrlReport, UrlState};

use super::judgement::RobotsSay;
use crate::moment;

/// All that decides.
pub(super) struct Prospects<'p> {
    pub(super) now: Timestamp,
    /// None if there is no crawl yet.
    pub(super) crawl: Option<&'p CrawlReport>,
    pub(super) url: &'p UrlReport,
    pub(super) queue: Option<&'p QueueReport>,
    pub(super) lease: Option<&'p LeaseReport>,
    pub(super) foreseen: &'p Foreseen,
    pub(super) robots: &'p RobotsSay,
}

/// What will happen.
struct Event {
    what: String,
    /// Not before.
    earliest: Option<Timestamp>,
    /// By then, if nothing is in the way and all that can go first does.
    latest: Option<Timestamp>,
}

impl Event {
    fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), earliest: None, latest: None }
    }
}

/// What happens next.
pub(super) fn next(prospects: &Prospects<'_>) -> Value {
    let event = match prospects.url.state {
        UrlState::Unknown => unknown(prospects),
        UrlState::Pending => pending(prospects),
        UrlState::Leased => leased(prospects),
        UrlState::Done => done(prospects),
        UrlState::Disregarded => Event::new(format!(
            "nothing: it was disregarded ({}); `trapline frontier forget` lets it come in again",
            reason(prospects.url)
        )),
        UrlState::Dead => Event::new(format!(
            "nothing: it was given up ({}); `trapline frontier dead replay URL` tries it again",
            reason(prospects.url)
        )),
    };
    // Nobody wants to know the milliseconds of an hour.
    let wait = |at: Timestamp| match at.since(prospects.now) {
        short if short < Duration::from_secs(10) => format_duration(short),
        long => format_duration(Duration::from_secs(long.as_secs())),
    };
    json!({
        "what": event.what,
        "earliest": event.earliest.map(moment::write),
        "earliest_in": event.earliest.map(wait),
        "latest": event.latest.map(moment::write),
        "latest_in": event.latest.map(wait),
    })
}

fn reason(url: &UrlReport) -> &str {
    url.reason.as_deref().unwrap_or("no reason was given")
}

/// Why it is not fetched when its turn has come.
fn refusal(prospects: &Prospects<'_>) -> Option<String> {
    let strategy = prospects.foreseen.refused.as_ref().map(|why| format!("the strategy refuses it ({why})"));
    let robots = || prospects.robots.refusal().map(|line| format!("robots.txt disallows it ({line})"));
    strategy.or_else(robots)
}

fn unknown(prospects: &Prospects<'_>) -> Event {
    if let Err(skipped) = &prospects.foreseen.verdict {
        let detail = skipped.detail.as_deref().map_or_else(String::new, |detail| format!(": {detail}"));
        return Event::new(format!(
            "nothing: where it is found, the rule `{}` drops it{detail}",
            skipped.reason
        ));
    }
    if let Some(why) = refusal(prospects) {
        return Event::new(format!(
            "where it is found, it is admitted; when its turn comes, it is disregarded: {why}"
        ));
    }
    match prospects.crawl.map(|crawl| &crawl.state) {
        Some(CrawlState::Finished(why)) => Event::new(format!("nothing: the crawl is finished ({why})")),
        _ => Event::new("nothing until somebody finds it; then it is admitted to its queue"),
    }
}

fn pending(prospects: &Prospects<'_>) -> Event {
    let now = prospects.now;
    match prospects.crawl.map(|crawl| &crawl.state) {
        Some(CrawlState::Paused) => {
            return Event::new("nothing until the crawl is resumed (`trapline resume`)");
        }
        Some(CrawlState::Finished(why)) => {
            return Event::new(format!("nothing: the crawl is finished ({why})"));
        }
        _ => {}
    }
    let Some(queue) = prospects.queue else { return Event::new("its queue is not known") };
    if queue.state == QueueState::Retired {
        return Event::new(format!("nothing while its queue is retired: {}", moment::dated(&queue.why)));
    }
    let mut what = match refusal(prospects) {
        Some(why) => format!("it is disregarded: {why}"),
        None => "it is fetched".to_owned(),
    };
    let due = prospects.url.due.filter(|due| *due > now);
    let free = queue.next_fetch.filter(|next| *next > now);
    let earliest = due.max(free).unwrap_or(now);
    let others = queue.pending.saturating_sub(1);
    if others > 0 {
        what += &format!(", at the latest when {others} others of its queue were");
    }
    what += match queue.state {
        QueueState::Blocked => "; its queue is blocked",
        QueueState::Busy => "; its queue is busy at present",
        QueueState::Inactive => "; its queue waits for its turn",
        _ if due.is_some() => "; it is due only then",
        _ => "",
    };
    // Of what others cost, the waits are known and how long servers take is not.
    let at_once = u32::max(queue.concurrency, 1);
    let rounds = u32::try_from(others / u64::from(at_once)).unwrap_or(u32::MAX);
    let served_alone = matches!(queue.state, QueueState::Ready | QueueState::Busy | QueueState::Snoozed);
    let latest = earliest + queue.delay.checked_mul(rounds).unwrap_or(Duration::MAX);
    Event { what, earliest: Some(earliest), latest: served_alone.then_some(latest) }
}

fn leased(prospects: &Prospects<'_>) -> Event {
    let Some(lease) = prospects.lease else { return Event::new("it is being fetched") };
    Event {
        what: format!(
            "it is being fetched under lease {}, delivery {}; if nobody settles it, it is handed out again when the lease \
             has ended",
            lease.id.0, lease.delivery
        ),
        earliest: None,
        latest: Some(lease.deadline),
    }
}

fn done(prospects: &Prospects<'_>) -> Event {
    let next = prospects.url.page.as_ref().and_then(|page| page.next).or(prospects.url.due);
    match next {
        Some(at) => Event { what: "it is visited again".to_owned(), earliest: Some(at), latest: None },
        None => Event::new("nothing: it is done, and no other visit is planned"),
    }
}
