//! The integration tests of the crawl, in one binary: the real loop and the real frontier on made-up sites, in virtual time.
#![allow(clippy::unwrap_used, reason = "made-up sites are tests too")]

mod archives;
mod away;
mod candidates;
mod chains;
mod crawling;
mod failures;
mod host_terms;
mod leases;
mod limits;
mod names;
mod orders;
mod pace;
mod resuming;
mod robots;
mod sitemaps;
mod sites;
mod strategies;
mod streams;
