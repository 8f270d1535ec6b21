//! The crawl, without sockets: claim → fetch chain → disposition chain → settle.
//!
//! [`Crawl`] is the loop. Its policies are processors in three chains ([`candidate`], [`fetch`], [`disposition`]), each with a
//! subject of its own. What it needs of the world comes in through [`ports`]: time, tasks, responses, robots.txt, and a place
//! for results; so the same loop runs on the web and on a made-up one in virtual time.
//!
//! What is absent: clocks, sockets, files, threads, unseeded chance.

mod archives;
pub mod candidate;
mod chain;
mod crawl;
mod crawl_builder;
mod crawl_end;
pub mod disposition;
pub mod fetch;
mod flights;
mod foresight;
mod gate;
mod handle;
mod line;
mod obedience;
mod options;
mod parts;
mod patience;
pub mod ports;
mod print_set;
mod response;
mod result_stream;
mod robots_policy;
pub mod strategies;
mod tally;
mod text_set;

pub use archives::ArchivePlace;
pub use chain::{ChainError, Flow, Processor, Processors, Rule, Rules};
pub use crawl::{Crawl, CrawlError};
pub use crawl_builder::CrawlBuilder;
pub use crawl_end::CrawlEnd;
pub use foresight::{Foreseen, Foresight, ForesightError};
pub use handle::{Admissions, CrawlHandle, Reload};
pub use line::{PageLine, SkippedLine, is_good, is_page};
pub use options::{ChainNames, CrawlOptions};
pub use parts::BuildError;
pub use response::{ErrorClass, RawExchange, RedirectTo, Response, ResponseError, ResponseTimes, WebRequest};
pub use result_stream::ResultStream;
pub use robots_policy::RobotsPolicy;
pub use strategies::{Strategy, StrategyChoice, StrategyError};
pub use tally::{HostTally, Tally, Trouble};
