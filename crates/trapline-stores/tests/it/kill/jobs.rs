//! Jobs in processes that are killed: a job that was begun goes on with whoever comes next, and does what it was to do.

use std::collections::BTreeMap;
use std::sync::Arc;

use trapline_core::{Request, Timestamp};
use trapline_frontier::{
    Frontier, Pattern, Query, QueueChange, Rows, Scan, Settings, Steer, Store, StoreError, UrlFilter,
    UrlsChange,
};

/// So many URLs of a batch are to be forgotten, which takes several steps, and so many not.
const DROPPED: u64 = 2500;
const KEPT: u64 = 10;

/// More verbs than any job takes steps.
const VERBS_MAX: usize = 10_000;

/// How far a batch has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Filling,
    Filled,
    Dropping,
    Dropped,
}

/// The jobs of a round, as their children tell of them.
#[derive(Default)]
pub(super) struct Jobs {
    batches: BTreeMap<String, Stage>,
    /// How many jobs were answered, and how many of them were under way when their process was killed.
    pub(super) begun: u64,
    pub(super) cut_short: u64,
}

fn open(store: Arc<dyn Store>, now: Timestamp) -> Result<Frontier, StoreError> {
    pollster::block_on(Frontier::builder("jobs").settings(Settings::default()).open_shared(store, now))
}

fn queue(batch: &str) -> String {
    format!("{batch}.jobs.example")
}

/// What a child does: fills one queue after the other, and begins to forget most of it.
pub(super) fn run(
    store: Arc<dyn Store>,
    now: Timestamp,
    name: &str,
    say: impl Fn(&str),
    excuse: impl Fn(&StoreError),
) {
    let turn = |crawl: &Frontier, batch: &str| -> Result<(), StoreError> {
        let host = queue(batch);
        let pages = |what: &'static str, count| {
            let host = host.clone();
            (0..count).map(move |number| Request::get(format!("http://{host}/{what}/{number}")))
        };
        say(&format!("@ filling {batch}\n"));
        pollster::block_on(crawl.admit(now, pages("drop", DROPPED).chain(pages("keep", KEPT))))?;
        say(&format!("@ filled {batch}\n@ dropping {batch}\n"));
        let pattern = Some(Pattern::new(format!("http://{host}/drop/*")));
        let filter = UrlFilter { key: None, pattern };
        let begun = pollster::block_on(crawl.steer(now, Steer::Urls(filter, UrlsChange::Forget)))?;
        let goes_on = u8::from(begun.job.is_some());
        say(&format!("@ dropped {batch} {goes_on}\n"));
        // Not always to its end: others are begun meanwhile.
        pollster::block_on(crawl.stats(now)).map(drop)
    };
    let crawl = match open(store, now) {
        Ok(crawl) => crawl,
        Err(error) => return excuse(&error),
    };
    for number in 0..5000 {
        if let Err(error) = turn(&crawl, &format!("{name}-{number}")) {
            excuse(&error);
        }
    }
}

impl Jobs {
    /// Whether a line was of jobs.
    pub(super) fn hear(&mut self, words: &[&str]) -> bool {
        let (stage, batch) = match *words {
            ["filling", batch] => (Stage::Filling, batch),
            ["filled", batch] => (Stage::Filled, batch),
            ["dropping", batch] => (Stage::Dropping, batch),
            ["dropped", batch, goes_on] => {
                self.begun += u64::from(goes_on == "1");
                (Stage::Dropped, batch)
            }
            _ => return false,
        };
        self.batches.insert(batch.to_owned(), stage);
        true
    }

    /// Lets all jobs come to their end, looks what they have done, and clears up.
    pub(super) fn check(&mut self, store: Arc<dyn Store>, now: Timestamp) {
        let crawl = open(store, now).expect("the crawl opens");
        let mut verbs = 0;
        let under_way = || {
            let page = pollster::block_on(crawl.scan(now, &Scan::new(Query::Jobs))).expect("jobs are listed");
            let Rows::Jobs(jobs) = page.rows else { panic!("{:?}", page.rows) };
            jobs.iter().filter(|job| !job.ended).count() as u64
        };
        self.cut_short += under_way();
        while under_way() > 0 {
            verbs += 1;
            assert!(verbs < VERBS_MAX, "a job comes to no end");
        }
        for (batch, stage) in std::mem::take(&mut self.batches) {
            let key = queue(&batch);
            let found = pollster::block_on(crawl.queue(now, &key)).expect("queues are shown");
            let pending = found.map_or(0, |queue| queue.pending);
            let (none, some, all) = (0, KEPT, KEPT + DROPPED);
            let can_be: &[u64] = match stage {
                Stage::Filling => &[none, all],
                Stage::Filled => &[all],
                Stage::Dropping => &[some, all],
                Stage::Dropped => &[some],
            };
            assert!(can_be.contains(&pending), "{batch}: {stage:?}, and {pending} are pending");
            let kept = format!("http://{key}/keep/{}", KEPT - 1);
            let kept = pollster::block_on(crawl.url(now, &kept)).expect("URLs are shown");
            assert_eq!(kept.key.is_some(), pending > 0, "{batch}: {kept:?}");
            let deleted = pollster::block_on(crawl.steer_queue(now, &key, QueueChange::Delete));
            deleted.expect("queues are deleted");
        }
    }
}
