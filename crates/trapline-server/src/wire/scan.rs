//! Questions with room for a long answer.

use trapline_core::Preparer;
use trapline_frontier::{Pattern, Query, QueueState, Scan, UrlState};

use super::{Unreadable, chosen, count, read_identity, steer, write_identity};
use crate::proto::v1;
use v1::scan_request::Query as QueryMessage;

pub(crate) fn write(query: &Query) -> QueryMessage {
    match query {
        Query::Crawl => QueryMessage::TheCrawl(true),
        Query::Crawls => QueryMessage::Crawls(true),
        Query::Queues { keys, state } => QueryMessage::Queues(v1::QueuesQuery {
            keys: keys.clone().map(|keys| v1::Keys { keys }),
            state: state.map(|state| write_queue_state(state).into()),
        }),
        Query::UrlList(identities) => QueryMessage::UrlList(v1::UrlListQuery {
            urls: Vec::new(),
            identities: identities.iter().copied().map(write_identity).collect(),
        }),
        Query::Urls { key, pattern, state } => QueryMessage::Urls(v1::UrlsQuery {
            key: key.clone(),
            pattern: pattern.as_ref().map(ToString::to_string),
            state: state.map(|state| write_url_state(state).into()),
        }),
        Query::Leases => QueryMessage::Leases(true),
        Query::Dead => QueryMessage::Dead(true),
        Query::Notes { prefix } => QueryMessage::Notes(prefix.clone()),
        Query::Records => QueryMessage::Records(true),
        Query::Jobs => QueryMessage::Jobs(true),
    }
}

/// Whether URLs are named by their texts, which only the crawl's preparer can find.
pub(crate) fn names_urls(query: Option<&QueryMessage>) -> bool {
    matches!(query, Some(QueryMessage::UrlList(list)) if !list.urls.is_empty())
}

/// Reads one, with at most so many rows. `preparer` is there if URLs are named by their texts.
pub(crate) fn read(
    request: v1::ScanRequest,
    limit_max: usize,
    preparer: Option<&Preparer>,
) -> Result<Scan, Unreadable> {
    let v1::ScanRequest { crawl: _, query, cursor, limit, now_ms: _ } = request;
    let query = match query.ok_or_else(|| Unreadable::lacks("a `query`"))? {
        QueryMessage::TheCrawl(word) => chosen("the_crawl", word, Query::Crawl)?,
        QueryMessage::Crawls(word) => chosen("crawls", word, Query::Crawls)?,
        QueryMessage::Queues(v1::QueuesQuery { keys, state }) => Query::Queues {
            keys: keys.map(|keys| keys.keys),
            state: state.map(read_queue_state).transpose()?,
        },
        QueryMessage::UrlList(v1::UrlListQuery { urls, identities }) => {
            let named = urls.into_iter().map(|url| steer::identify(url, preparer));
            let told = identities.iter().map(|identity| read_identity(identity));
            Query::UrlList(named.chain(told).collect::<Result<_, _>>()?)
        }
        QueryMessage::Urls(v1::UrlsQuery { key, pattern, state }) => Query::Urls {
            key,
            pattern: pattern.map(Pattern::new),
            state: state.map(read_url_state).transpose()?,
        },
        QueryMessage::Leases(word) => chosen("leases", word, Query::Leases)?,
        QueryMessage::Dead(word) => chosen("dead", word, Query::Dead)?,
        QueryMessage::Notes(prefix) => Query::Notes { prefix },
        QueryMessage::Records(word) => chosen("records", word, Query::Records)?,
        QueryMessage::Jobs(word) => chosen("jobs", word, Query::Jobs)?,
    };
    let limit = limit.map_or(1000, count);
    Ok(Scan { query, cursor, limit: limit.min(limit_max) })
}

pub(super) fn write_queue_state(state: QueueState) -> v1::QueueState {
    match state {
        QueueState::Retired => v1::QueueState::Retired,
        QueueState::Blocked => v1::QueueState::Blocked,
        QueueState::Empty => v1::QueueState::Empty,
        QueueState::Busy => v1::QueueState::Busy,
        QueueState::Snoozed => v1::QueueState::Snoozed,
        QueueState::Ready => v1::QueueState::Ready,
        QueueState::Inactive => v1::QueueState::Inactive,
    }
}

pub(super) fn read_queue_state(number: i32) -> Result<QueueState, Unreadable> {
    let state = QueueState::ALL.into_iter().find(|state| i32::from(write_queue_state(*state)) == number);
    state.ok_or_else(|| Unreadable::beyond("state", number, "one of the queues' states"))
}

pub(super) fn write_url_state(state: UrlState) -> v1::UrlState {
    match state {
        UrlState::Unknown => v1::UrlState::Unknown,
        UrlState::Pending => v1::UrlState::Pending,
        UrlState::Leased => v1::UrlState::Leased,
        UrlState::Done => v1::UrlState::Done,
        UrlState::Disregarded => v1::UrlState::Disregarded,
        UrlState::Dead => v1::UrlState::Dead,
    }
}

pub(super) fn read_url_state(number: i32) -> Result<UrlState, Unreadable> {
    let state = UrlState::ALL.into_iter().find(|state| i32::from(write_url_state(*state)) == number);
    state.ok_or_else(|| Unreadable::beyond("state", number, "one of the URLs' states"))
}
