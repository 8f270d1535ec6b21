//! Trace scripts: one small language that says what a frontier does, in tests, in bug reports and at the
//! command line.
//!
//! This file holds the language as values, [`parse`](self::parse()) reads it and `Display` writes it, [`run()`]
//! plays it on a store, [`shrink()`] makes it smaller. The manual's page on traces describes it for people.

mod meaning;
mod parse;
mod run;
mod shrink;
mod write;

use std::time::Duration;

use trapline_core::{Statement, Terms, Timestamp};

use crate::verbs::Visit;

pub use meaning::{describe_crawl, describe_page, describe_queue};
pub use parse::{ScriptError, parse};
pub use run::{LeftPlayer, Player, Reopen, RunError, Verdict, run, run_by};
pub use shrink::shrink;

/// A whole script.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// Settings of the crawl, by name, in order.
    pub settings: Vec<(String, String)>,
    /// What happens, in order of time.
    pub steps: Vec<Step>,
}

/// One line that does something.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Where it stands in the file, counting from 1; 0 for steps made by a program.
    pub line: usize,
    /// When it happens, since the start.
    pub at: Timestamp,
    /// What happens.
    pub verb: Verb,
    /// What should come back, if that is to be compared.
    pub expected: Option<String>,
}

/// What a line does.
#[derive(Clone, Debug, PartialEq)]
pub enum Verb {
    /// `admit URL …`
    Admit(Admit),
    /// `claim N …`
    Claim(Claim),
    /// `settle URL …`
    Settle(Settle),
    /// `steer K …`
    Steer {
        /// The queue.
        key: String,
        /// What is done to it.
        change: Steering,
    },
    /// `crawl pause`, `crawl name=value`, `crawl`
    Crawl(CrawlVerb),
    /// `dead replay URL`
    DeadReplay(String),
    /// `forget URL`
    Forget(String),
    /// `url URL`
    Url(String),
    /// `page URL`
    Page(String),
    /// `queue K`
    Queue(String),
    /// `restart`
    Restart,
    /// `crash`
    Crash,
}

/// `admit URL [class=N] [cost=N] [depth=N] [via=URL] [key=K] [group=G] [precedence=N] [improve] [dont_filter]
/// [state=done | next=TIME]`, and the other terms by the names they have in `steer`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Admit {
    /// The URL.
    pub url: String,
    /// Its class; else the policy decides.
    pub class: Option<u8>,
    /// Its cost; else the policy decides.
    pub cost: Option<u32>,
    /// -128…127.
    pub priority: Option<i8>,
    /// 0.0…1.0.
    pub score: Option<f32>,
    /// How deep.
    pub depth: u32,
    /// Found on.
    pub via: Option<String>,
    /// A queue key of the caller's own.
    pub key: Option<String>,
    /// Terms for its queue.
    pub terms: Terms,
    /// Improve its class.
    pub improve: bool,
    /// Skip the seen check.
    pub dont_filter: bool,
    /// A statement about it.
    pub statement: Option<Statement>,
}

/// `claim N [per_queue=N] [queues=N] [min_queues=N] [keys=K,K] [except=K,K] [lease=DURATION]`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claim {
    /// How many URLs.
    pub urls: usize,
    /// At most so many of a queue.
    pub per_queue: Option<usize>,
    /// From at most so many queues.
    pub queues: Option<usize>,
    /// From at least so many queues, if possible.
    pub min_queues: Option<usize>,
    /// Only these queues.
    pub keys: Option<Vec<String>>,
    /// Not these queues.
    pub except: Vec<String>,
    /// For how long.
    pub lease: Option<Duration>,
}

/// `settle URL OUTCOME [delay=DURATION] [links=URL,URL…] [lease=N]`
#[derive(Clone, Debug, PartialEq)]
pub struct Settle {
    /// The URL whose newest lease is meant, unless `lease` names one.
    pub url: String,
    /// What became of it.
    pub outcome: SettleAs,
    /// The settlement's own delay.
    pub delay: Option<Duration>,
    /// Links found.
    pub links: Vec<String>,
    /// The N-th lease granted in the script, counting from 1.
    pub lease: Option<usize>,
}

/// `done [next=TIME] [status=N] [bytes=N] [digest=HEX] [simhash=N] [etag=TEXT] [last_modified=TEXT] | retry at=TIME | release | dead reason=TEXT | disregard | renew for=DURATION`
#[derive(Clone, Debug, PartialEq)]
pub enum SettleAs {
    /// `done`
    Done {
        /// What the visit found.
        visit: Visit,
        /// When to come back.
        next: Option<Timestamp>,
    },
    /// `retry`
    Retry {
        /// Not before.
        at: Timestamp,
    },
    /// `release`
    Release,
    /// `dead`
    Dead {
        /// Why.
        reason: String,
    },
    /// `disregard`
    Disregard,
    /// `renew`
    Renew {
        /// How much longer.
        lease: Duration,
    },
}

/// What a script can do to a queue.
#[derive(Clone, Debug, PartialEq)]
pub enum Steering {
    /// `name=value…`
    Terms(Terms),
    /// `block=TIME`
    Block(Timestamp),
    /// `unblock`
    Unblock,
    /// `retire`
    Retire,
    /// `reinstate`
    Reinstate,
    /// `purge`
    Purge,
    /// `delete`
    Delete,
}

/// What a script can do to the crawl.
#[derive(Clone, Debug, PartialEq)]
pub enum CrawlVerb {
    /// `crawl pause`
    Pause,
    /// `crawl resume`
    Resume,
    /// `crawl finish`
    Finish,
    /// `crawl name=value…`
    Set(Vec<(String, String)>),
    /// `crawl`: how it stands.
    Show,
}

impl SettleAs {
    /// `done`, without a word about what was found.
    pub fn done(next: Option<Timestamp>) -> Self {
        Self::Done { visit: Visit::default(), next }
    }
}
