//! What a step leaves in the tables that no other step leaves: by it a transaction whose end was not answered is known again.
//!
//! The number of a transaction would not do. A server that crashes gives the numbers of those it lost to others, and then says of
//! a lost one that it is done.

use deadpool_postgres::Object;
use tokio_postgres::Error;

use super::entry::State;
use super::session::Key;
use super::work::Work;

/// The traces of one step.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// Leases that it granted or renewed: their numbers, entries and deadlines.
    leases: Vec<i64>,
    entries: Vec<i64>,
    deadlines: Vec<i64>,
    ranks: Vec<i64>,
    /// Leases that it ended.
    ended: Vec<i64>,
    /// URLs that it made known: their crawls, identities and entries.
    url_crawls: Vec<i64>,
    urls: Vec<Key>,
    url_entries: Vec<i64>,
}

impl Evidence {
    pub(super) fn of(work: &Work) -> Self {
        let mut evidence = Self::default();
        evidence.add(work);
        evidence
    }

    /// A transaction may be the work of several crawls.
    pub(super) fn add(&mut self, work: &Work) {
        for entry in work.entries.values() {
            let stored = entry.stored.as_ref().map(|stored| &stored.state);
            if stored.is_none() && entry.state != State::Gone {
                self.url_crawls.push(work.crawl.id);
                self.urls.push(Key(entry.identity));
                self.url_entries.push(entry.id);
            }
            if stored == Some(&entry.state) {
                continue;
            }
            match (stored, &entry.state) {
                (_, State::Leased(grant)) => {
                    self.leases.push(grant.lease);
                    self.entries.push(entry.id);
                    self.deadlines.push(grant.deadline.at);
                    self.ranks.push(grant.deadline.rank);
                }
                (Some(State::Leased(grant)), _) => self.ended.push(grant.lease),
                _ => {}
            }
        }
    }

    /// Whether there is any. A step that leaves none can be done again: nobody could tell.
    fn is_any(&self) -> bool {
        !(self.leases.is_empty() && self.ended.is_empty() && self.urls.is_empty())
    }

    /// Whether the step has left its traces.
    pub(super) async fn is_there(&self, client: &Object) -> Result<bool, Error> {
        if !self.is_any() {
            return Ok(false);
        }
        let Self { leases, entries, deadlines, ranks, ended, url_crawls, urls, url_entries } = self;
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[]) AS w (id, entry, at, rank) \
               WHERE NOT EXISTS (SELECT 1 FROM leases l WHERE l.id = w.id AND l.entry = w.entry \
                 AND l.deadline = w.at AND l.deadline_rank = w.rank)) \
             AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.id = ANY($5)) \
             AND NOT EXISTS (SELECT 1 FROM unnest($6::int8[], $7::uuid[], $8::int8[]) AS w (crawl, identity, entry) \
               WHERE NOT EXISTS (SELECT 1 FROM urls u WHERE u.crawl = w.crawl AND u.identity = w.identity AND u.entry = w.entry))";
        let row = client
            .query_one(sql, &[leases, entries, deadlines, ranks, ended, url_crawls, urls, url_entries])
            .await?;
        row.try_get(0)
    }
}
