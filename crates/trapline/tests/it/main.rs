//! What the built binary does, seen from outside: arguments and standard input in, output and exit code out.

mod archives;
mod config;
mod copying;
mod crawl;
mod demo;
mod explain;
mod fetch;
mod folder;
mod frontier;
mod in_flight;
mod keeping;
mod links;
mod operate;
mod policies;
mod report;
mod robots;
mod serve;
mod serve_crawl;
mod serve_docs;
#[cfg(feature = "postgres")]
mod servers;
mod service;
mod serving_killed;
mod sharing;
mod sim;
mod sitemap;
mod strace;
mod transfer;
mod url;
