//! The frontier in PostgreSQL, for any number of processes on any number of machines.

mod address;
mod connector;
mod gate;
mod pool;
mod tls;
mod trouble;

pub use address::{Address, without_password};
pub use pool::Pool;
pub use trouble::{Retry, is_retryable};
