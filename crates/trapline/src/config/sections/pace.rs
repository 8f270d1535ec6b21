//! `[pace]`, `[retry]` and `[queue]`: when the next URL of a host is fetched, and which one.

use std::time::Duration;

use trapline_core::{ClassPolicy, CostPolicy, QueueKeyPolicy};
use trapline_frontier::{Order, Pace as CountedFrom};

use crate::config::options::options;

options! {
    /// How fast a host is asked. After a fetch it is left alone for the longest of `delay`, its Crawl-delay, and `factor` times
    /// what the fetch took; for as long as it asks for if it is overloaded; and for a part of `jitter` on top.
    Pace {
        /// How long a host is left alone after a fetch; 0 for no pause. Defaults to 1s.
        delay: Duration = Duration::from_secs(1);
        /// So many times as long as the fetch took the host is left alone, within `min` and `max`, so that slow hosts are asked less
        /// often; 0 to leave that out. Defaults to 0.0.
        factor: f64 = 0.0;
        /// What `factor` comes to at least. Defaults to 0.
        min: Duration = Duration::ZERO;
        /// What `factor`, or `adaptive`, comes to at most. Defaults to 30s.
        max: Duration = Duration::from_secs(30);
        /// Whether a host that answers ever more slowly is asked less often, up to `max`; not with a `delay` of 0. Defaults to true.
        adaptive: bool = true;
        /// A random wait up to this is added to each, so that many hosts of one server are not asked in step. Defaults to 0.
        jitter: Duration = Duration::ZERO;
        /// Whether the Crawl-delay of robots.txt is respected. Defaults to true.
        crawl_delay: bool = true;
        /// The longest Crawl-delay that is respected; a longer one counts as this. Defaults to 5m.
        crawl_delay_max: Duration = Duration::from_secs(300);
        /// How long a host is left alone that says it is overloaded (429, 503) and not for how long; twice as long each further
        /// time. Defaults to 30s.
        backoff: Duration = Duration::from_secs(30);
        /// The longest such wait. Defaults to 1h.
        backoff_max: Duration = Duration::from_secs(3600);
        /// The longest Retry-After that is respected; a longer one counts as this. Defaults to 1d.
        retry_after_max: Duration = Duration::from_secs(86_400);
        /// How many fetches of a host may be under way at once; 0 for any number. Defaults to 1.
        per_host: u32 = 1;
        /// So many fetches of a host may begin without a pause after it was left alone for long, as if they had been saved up.
        /// Defaults to 1.
        burst: u32 = 1;
        /// From when the pause counts: `settle` (the end of the fetch) or `claim` (its beginning). Defaults to settle.
        counted_from: CountedFrom = CountedFrom::Settle;
        /// Whether all hosts of a registrable domain share one pause. Defaults to false.
        by_domain: bool = false;
    }
}

options! {
    /// What becomes of a URL that could not be fetched: no connection, no answer in time, a server in trouble (5xx, 429).
    Retry {
        /// How often it is tried again before it is given up as a dead letter; 0 for never. Defaults to 3.
        max: u32 = 3;
        /// How long it waits before the first of them; twice as long before each further one. The rest of its host does not wait.
        /// Defaults to 30s.
        wait: Duration = Duration::from_secs(30);
        /// The longest such wait. Defaults to 1h.
        wait_max: Duration = Duration::from_secs(3600);
    }
}

options! {
    /// How URLs wait for their turn.
    Queue {
        /// What has a queue of its own, and so a pace of its own: `host` (with its port), `domain` (the registrable domain) or
        /// `buckets:N` (a fixed number of queues, by the hash of the host). Fixed when a crawl begins. Defaults to host.
        key: QueueKeyPolicy = QueueKeyPolicy::Host;
        /// The order of a queue, within a class: `fifo` (found first, fetched first), `lifo` or `date`. Fixed when a crawl begins.
        /// Defaults to fifo.
        order: Order = Order::Fifo;
        /// What comes first in a queue: `priority` (that of the URL, seeds and links alike), `score`, `depth` (near the seeds
        /// first), `depth_first` (far from them first) or `cost` (cheap ones first). Defaults to priority.
        class: ClassPolicy = ClassPolicy::Priority;
        /// What a URL costs its queue: `zero`, `unit` (1), or `wag` (1, more with a query). Defaults to unit.
        cost: CostPolicy = CostPolicy::Unit;
        /// What may be spent on a queue altogether, or in each `budget_period`: with `cost = "unit"` so many fetches of a host.
        /// Never one more. Defaults to none.
        budget: Option<u64> = None;
        /// After this long, counted from the crawl's start, a queue's budget begins anew. Defaults to none.
        budget_period: Option<Duration> = None;
        /// What a retry, or giving up, takes from the budget on top. Defaults to 0.
        error_penalty: u64 = 0;
        /// What may be spent on a queue before others that wait have their turn. Defaults to 3000.
        balance: u64 = 3000;
        /// Which queues are served first: lower ones, from 0 to 255. Of use in `[[host]]`. Defaults to 3.
        precedence: u8 = 3;
        /// Whether new queues wait until those that are being served have spent their balance. Defaults to true.
        hold: bool = true;
        /// Over how many lines hosts are spread, by their registrable domains. Lines are served in turn, so that the order among
        /// hosts is exact only with 1. Fixed when a crawl begins. Defaults to 256.
        partitions: u32 = 256;
        /// How many URLs may wait in a queue; more are refused. Defaults to none.
        max_length: Option<u64> = None;
    }
}
