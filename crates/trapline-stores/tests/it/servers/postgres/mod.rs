//! The PostgreSQL store on a real server.

mod connecting;
mod migrating;
mod time;
mod tls;
mod waking;

use trapline_stores::postgres::Pool;
use trapline_testing::PostgresServer;

/// The URL of a fresh database on the server that all tests share.
fn fresh() -> String {
    let server = PostgresServer::shared();
    server.url(&server.create_database().expect("a database can be made"))
}

fn pool(url: &str) -> Pool {
    Pool::open(url).expect("the URL is well-formed")
}

/// What the first row's first column says.
async fn ask(pool: &Pool, question: &str) -> String {
    let client = pool.client().await.expect("the server is there");
    client.query_one(question, &[]).await.expect("it is well asked").get(0)
}
