//! The schema that comes to mind first: one row a URL, taken with `ORDER BY … FOR UPDATE SKIP LOCKED LIMIT n`. It knows no
//! hosts: no politeness, no fairness, no budgets, no links that arrive with a settlement.

use trapline_stores::postgres::Pool;

/// A connection to the naive tables.
pub struct Naive {
    pool: Pool,
}

impl Naive {
    /// Makes the tables. The URL allows for one connection only.
    pub fn new(url: &str) -> Self {
        let naive = Self { pool: Pool::open(url).expect("the URL is good") };
        // As the server plans by itself.
        naive.batch(
            "RESET enable_seqscan; RESET enable_hashjoin; RESET enable_mergejoin; RESET plan_cache_mode; RESET jit; \
             CREATE TABLE IF NOT EXISTS public.naive (id bigserial, fingerprint bytea PRIMARY KEY, url text NOT NULL, \
             state int NOT NULL DEFAULT 0, next_at bigint NOT NULL DEFAULT 0); \
             CREATE INDEX IF NOT EXISTS naive_due ON public.naive (next_at, id) WHERE state = 0",
        );
        naive
    }

    fn batch(&self, sql: &str) {
        pollster::block_on(self.pool.run(async {
            self.pool.client().await.expect("a connection").batch_execute(sql).await.expect("it is done");
        }));
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.batch("TRUNCATE public.naive");
    }

    /// Inserts what is not there; answers how many that were.
    pub fn offer(&self, batch: &[(Vec<u8>, String)]) -> u64 {
        let fingerprints: Vec<&[u8]> = batch.iter().map(|(fingerprint, _)| &**fingerprint).collect();
        let urls: Vec<&str> = batch.iter().map(|(_, url)| &**url).collect();
        pollster::block_on(self.pool.run(async {
            let client = self.pool.client().await.expect("a connection");
            let sql = "INSERT INTO public.naive (fingerprint, url) SELECT * FROM unnest($1::bytea[], $2::text[]) \
                       ON CONFLICT DO NOTHING";
            let statement = client.prepare_cached(sql).await.expect("it is prepared");
            client.execute(&statement, &[&fingerprints, &urls]).await.expect("it is inserted")
        }))
    }

    /// Takes so many, and ends them; answers how many.
    pub fn cycle(&self, most: i64) -> usize {
        pollster::block_on(self.pool.run(async {
            let client = self.pool.client().await.expect("a connection");
            let take = "UPDATE public.naive SET state = 1 WHERE fingerprint = ANY(ARRAY(SELECT fingerprint FROM public.naive WHERE state = 0 \
                        ORDER BY next_at, id LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING fingerprint";
            let statement = client.prepare_cached(take).await.expect("it is prepared");
            let rows = client.query(&statement, &[&most]).await.expect("they are taken");
            let taken: Vec<Vec<u8>> = rows.iter().map(|row| row.get(0)).collect();
            let end = "UPDATE public.naive SET state = 2 WHERE fingerprint = ANY($1)";
            let statement = client.prepare_cached(end).await.expect("it is prepared");
            client.execute(&statement, &[&taken]).await.expect("they are ended");
            taken.len()
        }))
    }
}
