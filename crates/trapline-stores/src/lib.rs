//! Stores that keep a frontier: [`DiskStore`], the engine with a log on disk.
//!
//! What is absent: rules of scheduling. Those are the engine's, in `trapline-frontier`; here it is only made
//! sure that nothing of what it answered is forgotten.

pub mod disk;
mod planted;
#[cfg(feature = "postgres")]
pub mod postgres;
mod without_password;

pub use disk::{DiskOptions, DiskReopen, DiskStore, Durability, SharedStore, SocketStore};
#[cfg(feature = "planted")]
pub use planted::Fault;
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub use without_password::without_password;
