//! The crate from outside: guard, names, connections, TLS, proxies. Everything stays on this machine.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests play the servers too")]

mod dialing;
mod dns;
mod door;
mod guard;
mod proxies;
mod tls;
