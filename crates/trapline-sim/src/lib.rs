//! Generated webs, and crawls of them by the real frontier in virtual time: one seed, one history.
//!
//! [`Web`] is a web made from a seed. [`crawl()`] sends workers over it, with a [`Frontier`](trapline_frontier::Frontier)
//! on any store, and measures what they did. [`walk()`] says what such a crawl has to reach.
//!
//! What is absent: clocks, sockets, unseeded randomness. An hour of crawling passes in as long as its
//! decisions take.

mod crawl;
mod ending;
mod host;
mod politeness;
mod random;
mod shape;
mod summary;
mod trap;
mod walk;
mod web;

pub use crawl::{CrawlPlan, crawl};
pub use ending::{Ending, Endings};
pub use host::Host;
pub use politeness::Politeness;
pub use random::Random;
pub use summary::{CrawlSummary, HostSummary, Links};
pub use walk::{Reach, walk};
pub use web::{Fetched, Page, Response, Web, WebSize};
