//! The crate from outside: guard, names, connections, TLS, proxies. Everything stays on this machine.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests play the servers too")]

mod dialing;
mod dns;
mod door;
mod entries;
mod fetching;
mod floods;
mod guard;
mod hostile;
mod memory;
mod proxies;
mod resting;
mod robots;
mod tls;
mod web;
