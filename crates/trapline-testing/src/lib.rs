//! Servers for tests: started from the machine's own packages in a temporary folder, and gone afterwards, whatever becomes of
//! the test.
//!
//! What is absent: containers, downloads, and servers that somebody else uses. Tests that need a server are in a test binary
//! or a module called `servers`, which `./test quick` leaves out.

mod authority;
mod keeper;
mod postgres;
mod programs;

pub use authority::{Authority, Certificate};
pub use postgres::{PostgresBuilder, PostgresServer, Stop};
