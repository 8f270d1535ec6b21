//! Generated webs, and crawls of them by the real frontier in virtual time: one seed, one history.
//!
//! [`Web`] is a web made from a seed. [`crawl()`] sends workers over it, with a [`Frontier`](trapline_frontier::Frontier)
//! on any store, and measures what they did. [`walk()`] says what such a crawl has to reach.
//!
//! [`simulate()`] makes it hard for a store: workers that die, operators who do as they please, clocks that jump, while an
//! oracle holds every answer against the contract. [`run_seeds()`] does so for many seeds. [`Witness`] does the like for real processes that
//! are really killed.
//!
//! What is absent: clocks, sockets, unseeded randomness. An hour of crawling passes in as long as its
//! decisions take.

mod crawl;
mod crawl_simulation;
mod ending;
mod faults;
mod host;
mod oracle;
mod panics;
mod politeness;
mod random;
mod shape;
mod simulation;
mod stores;
mod summary;
mod trap;
mod virtual_world;
mod walk;
mod web;
mod witness;

pub use crawl::{CrawlPlan, crawl};
pub use crawl_simulation::{CrawlRun, simulate_crawl};
pub use ending::{Ending, Endings};
pub use faults::{Faults, Trouble};
pub use host::Host;
pub use oracle::{Breach, Rule};
pub use panics::watch_panics;
pub use politeness::Politeness;
pub use random::Random;
pub use simulation::{Failure, Find, Run, SeedRange, SimPlan, Tally, check_seed, run_seeds, simulate};
pub use stores::{MemoryStores, Opened, Stores};
pub use summary::{CrawlSummary, HostSummary, Links};
pub use virtual_world::VirtualWorld;
pub use walk::{Reach, walk};
pub use web::{Fetched, Page, Response, Web, WebSize};
pub use witness::{Testimony, Witness, WitnessTerms, witness_link};
