//! The PostgreSQL store answers random scripts as the naive model does.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use trapline_frontier::model::{Subject, check_seeds};
use trapline_frontier::script::Player;
use trapline_stores::PostgresStore;

use super::fresh_database;

/// A crawl of its own for each script, all in one database.
fn postgres(settings: &[(String, String)]) -> Box<dyn Subject> {
    static STORE: OnceLock<PostgresStore> = OnceLock::new();
    static CRAWLS: AtomicU64 = AtomicU64::new(0);
    let store = STORE.get_or_init(|| PostgresStore::open(&fresh_database()).expect("it opens"));
    let name = format!("model {}", CRAWLS.fetch_add(1, Ordering::Relaxed));
    let player = pollster::block_on(Player::start(Arc::new(store.clone()), &name, settings));
    Box::new(player.expect("the settings are valid"))
}

#[test]
fn the_store_agrees_with_the_naive_model() {
    check_seeds(0..200, postgres);
}
