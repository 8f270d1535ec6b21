//! The frontier in PostgreSQL, for any number of processes on any number of machines.

mod address;
mod admit;
mod any;
mod check;
mod claim;
mod connector;
mod crawl;
mod entry;
mod gate;
mod jobs;
mod load;
mod migrations;
mod moment;
mod passing;
mod pool;
mod queue;
mod records;
mod save;
mod scan;
mod server;
mod session;
mod settle;
mod steer;
mod step;
mod store;
mod tls;
mod trouble;
mod work;

pub use address::{Address, without_password};
pub use check::{Report, check};
pub use migrations::{Applied, MIGRATIONS, Migrated, Migration, migrate, require_current};
pub use pool::Pool;
pub use server::Server;
pub use store::PostgresStore;
pub use trouble::{Retry, is_retryable};
