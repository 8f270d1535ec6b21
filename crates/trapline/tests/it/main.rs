//! What the built binary does, seen from outside: arguments and standard input in, output and exit code out.

mod copying;
mod demo;
mod fetch;
mod folder;
mod frontier;
mod keeping;
mod operate;
#[cfg(feature = "postgres")]
mod servers;
mod sharing;
mod sim;
mod strace;
mod transfer;
mod url;
