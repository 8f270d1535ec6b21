//! The PostgreSQL store on a real server.

mod connecting;
mod migrating;
mod tls;

use trapline_stores::postgres::Pool;
use trapline_testing::PostgresServer;

/// The URL of a fresh database on the server that all tests share.
fn fresh() -> String {
    let server = PostgresServer::shared();
    server.url(&server.create_database().unwrap())
}

fn pool(url: &str) -> Pool {
    Pool::open(url).unwrap()
}

/// What the first row's first column says.
async fn ask(pool: &Pool, question: &str) -> String {
    let client = pool.client().await.unwrap();
    client.query_one(question, &[]).await.unwrap().get(0)
}
