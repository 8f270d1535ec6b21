//! Stores that talk to servers, which the tests start themselves.

mod bloat;
mod clocks;
mod connecting;
mod crawls;
mod failover;
mod forgetting;
mod groups;
mod holding;
mod hostile;
mod lost_answers;
mod migrating;
mod model;
mod news;
mod poisoned;
mod proxy;
mod statements;
mod suite;
mod time;
mod tls;
mod waking;
mod workers;

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

/// The URL of a database with nothing in it at all.
fn empty_database() -> String {
    let server = PostgresServer::shared();
    server.url(&server.create_database().expect("a database is made"))
}

fn pool(url: &str) -> Pool {
    Pool::open(url).expect("the URL is good")
}

/// What the first row's first column says.
async fn ask(pool: &Pool, question: &str) -> String {
    let client = pool.client().await.expect("the server is there");
    client.query_one(question, &[]).await.expect("it is well asked").get(0)
}
