//! Scans as messages: what is asked for. The rows that answer it have a file of their own.

use prost::{Message, Oneof};
use trapline_frontier::{Pattern, Query, QueueState, Scan, UrlState};

use super::{IdentityMessage, Keys, Unreadable, read_size};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ScanMessage {
    #[prost(oneof = "QueryMessage", tags = "1, 2, 3, 4, 5, 6, 7, 8, 11, 12")]
    query: Option<QueryMessage>,
    #[prost(uint64, optional, tag = "9")]
    cursor: Option<u64>,
    #[prost(uint64, tag = "10")]
    limit: u64,
}

#[derive(Clone, PartialEq, Oneof)]
enum QueryMessage {
    #[prost(bool, tag = "1")]
    Crawl(bool),
    #[prost(message, tag = "2")]
    Queues(QueuesMessage),
    #[prost(message, tag = "3")]
    UrlList(UrlListMessage),
    #[prost(message, tag = "4")]
    Urls(UrlsMessage),
    #[prost(bool, tag = "5")]
    Leases(bool),
    #[prost(bool, tag = "6")]
    Dead(bool),
    #[prost(string, tag = "7")]
    Notes(String),
    #[prost(bool, tag = "8")]
    Jobs(bool),
    #[prost(bool, tag = "11")]
    Crawls(bool),
    #[prost(bool, tag = "12")]
    Records(bool),
}

#[derive(Clone, PartialEq, Message)]
struct QueuesMessage {
    #[prost(message, optional, tag = "1")]
    keys: Option<Keys>,
    #[prost(uint32, optional, tag = "2")]
    state: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
struct UrlListMessage {
    #[prost(message, repeated, tag = "1")]
    identities: Vec<IdentityMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct UrlsMessage {
    #[prost(string, optional, tag = "1")]
    key: Option<String>,
    #[prost(string, optional, tag = "2")]
    pattern: Option<String>,
    #[prost(uint32, optional, tag = "3")]
    state: Option<u32>,
}

/// States are numbered in the order in which they are listed.
pub(super) fn queue_state(state: QueueState) -> u32 {
    state as u32
}

pub(super) fn read_queue_state(number: u32) -> Result<QueueState, Unreadable> {
    let state = QueueState::ALL.get(number as usize).copied();
    state.ok_or(Unreadable::Lacks("a state it knows the meaning of"))
}

pub(super) fn url_state(state: UrlState) -> u32 {
    state as u32
}

pub(super) fn read_url_state(number: u32) -> Result<UrlState, Unreadable> {
    let state = UrlState::ALL.get(number as usize).copied();
    state.ok_or(Unreadable::Lacks("a state it knows the meaning of"))
}

impl From<&Scan> for ScanMessage {
    fn from(scan: &Scan) -> Self {
        let Scan { query, cursor, limit } = scan;
        let query = match query {
            Query::Crawl => QueryMessage::Crawl(true),
            Query::Queues { keys, state } => QueryMessage::Queues(QueuesMessage {
                keys: keys.clone().map(|keys| Keys { keys }),
                state: state.map(queue_state),
            }),
            Query::UrlList(identities) => QueryMessage::UrlList(UrlListMessage {
                identities: identities.iter().copied().map(IdentityMessage::from).collect(),
            }),
            Query::Urls { key, pattern, state } => QueryMessage::Urls(UrlsMessage {
                key: key.clone(),
                pattern: pattern.as_ref().map(Pattern::to_string),
                state: state.map(url_state),
            }),
            Query::Leases => QueryMessage::Leases(true),
            Query::Dead => QueryMessage::Dead(true),
            Query::Notes { prefix } => QueryMessage::Notes(prefix.clone()),
            Query::Jobs => QueryMessage::Jobs(true),
            Query::Crawls => QueryMessage::Crawls(true),
            Query::Records => QueryMessage::Records(true),
        };
        Self { query: Some(query), cursor: *cursor, limit: *limit as u64 }
    }
}

impl ScanMessage {
    pub(crate) fn read(self) -> Result<Scan, Unreadable> {
        let Self { query, cursor, limit } = self;
        let query = match query.ok_or(Unreadable::Lacks("a query"))? {
            QueryMessage::Crawl(_) => Query::Crawl,
            QueryMessage::Queues(QueuesMessage { keys, state }) => Query::Queues {
                keys: keys.map(|keys| keys.keys),
                state: state.map(read_queue_state).transpose()?,
            },
            QueryMessage::UrlList(UrlListMessage { identities }) => {
                Query::UrlList(identities.into_iter().map(Into::into).collect())
            }
            QueryMessage::Urls(UrlsMessage { key, pattern, state }) => Query::Urls {
                key,
                pattern: pattern.map(Pattern::new),
                state: state.map(read_url_state).transpose()?,
            },
            QueryMessage::Leases(_) => Query::Leases,
            QueryMessage::Dead(_) => Query::Dead,
            QueryMessage::Notes(prefix) => Query::Notes { prefix },
            QueryMessage::Jobs(_) => Query::Jobs,
            QueryMessage::Crawls(_) => Query::Crawls,
            QueryMessage::Records(_) => Query::Records,
        };
        Ok(Scan { query, cursor, limit: read_size(limit)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trapline_core::Identity;

    #[test]
    fn scans_come_back_as_they_were() {
        let mut queries = vec![
            Query::Crawl,
            Query::Queues { keys: None, state: None },
            Query::Queues { keys: Some(Vec::new()), state: None },
            Query::Queues { keys: Some(vec![String::new(), "ä".to_owned()]), state: None },
            Query::UrlList(Vec::new()),
            Query::UrlList(vec![Identity(0), Identity(u128::MAX)]),
            Query::Urls { key: None, pattern: None, state: None },
            Query::Urls { key: Some(String::new()), pattern: Some(Pattern::new("")), state: None },
            Query::Leases,
            Query::Crawls,
            Query::Records,
            Query::Dead,
            Query::Notes { prefix: String::new() },
            Query::Notes { prefix: "n".to_owned() },
            Query::Jobs,
        ];
        queries.extend(QueueState::ALL.map(|state| Query::Queues { keys: None, state: Some(state) }));
        let urls = |state| Query::Urls { key: None, pattern: None, state: Some(state) };
        queries.extend(UrlState::ALL.map(urls));
        for query in queries {
            for (cursor, limit) in [(None, 0), (Some(0), 1), (Some(u64::MAX), usize::MAX)] {
                let scan = Scan { query: query.clone(), cursor, limit };
                let bytes = ScanMessage::from(&scan).encode_to_vec();
                assert_eq!(ScanMessage::decode(&*bytes).unwrap().read().unwrap(), scan);
            }
        }
    }
}
