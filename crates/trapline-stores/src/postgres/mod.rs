//! The frontier in PostgreSQL, for any number of processes on any number of machines.

mod address;
mod check;
mod connector;
mod gate;
mod migrations;
mod pool;
mod server;
mod tls;
mod trouble;

pub use address::{Address, without_password};
pub use check::{Report, check};
pub use migrations::{Applied, MIGRATIONS, Migrated, Migration, migrate, require_current};
pub use pool::Pool;
pub use server::Server;
pub use trouble::{Retry, is_retryable};
