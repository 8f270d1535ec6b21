//! Stores that talk to servers, which the tests start themselves.

mod model;
mod suite;

use std::sync::OnceLock;

use trapline_stores::postgres::{Pool, migrate};
use trapline_testing::PostgresServer;

/// The URL of a database with the store's tables and nothing in them.
fn fresh_database() -> String {
    static TEMPLATE: OnceLock<String> = OnceLock::new();
    let server = PostgresServer::shared();
    let template = TEMPLATE.get_or_init(|| {
        let name = server.create_database().expect("a database is made");
        let pool = Pool::open(&server.url(&name)).expect("the URL is good");
        pollster::block_on(migrate(&pool)).expect("the tables are made");
        name
    });
    server.url(&server.create_database_like(template).expect("a database is made"))
}
