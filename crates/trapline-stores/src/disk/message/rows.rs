//! Pages as messages: the rows that answer a scan.

use std::sync::Arc;

use prost::{Message, Oneof};
use trapline_core::{IdentityKey, Timestamp};
use trapline_frontier::{
    CrawlReport, CrawlState, DeadLetter, JobReport, LeaseId, LeaseReport, Note, NoteWrite, Page, QueueReport,
    Rows, UrlReport,
};

use super::lease::{PageMessage, RequestMessage, read_request};
use super::record::RecordMessage;
use super::scan::{queue_state, read_queue_state, read_url_state, url_state};
use super::settings::SettingsMessage;
use super::settle::NoteMessage;
use super::{IdentityMessage, Span, Unreadable, read_byte, read_span, read_time};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RowsMessage {
    #[prost(oneof = "Kind", tags = "1, 2, 3, 4, 5, 6, 7, 9, 10")]
    kind: Option<Kind>,
    #[prost(uint64, optional, tag = "8")]
    cursor: Option<u64>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Kind {
    #[prost(message, boxed, tag = "1")]
    Crawl(Box<CrawlMessage>),
    #[prost(message, tag = "2")]
    Queues(Queues),
    #[prost(message, tag = "3")]
    Urls(Urls),
    #[prost(message, tag = "4")]
    Leases(Leases),
    #[prost(message, tag = "5")]
    Dead(Dead),
    #[prost(message, tag = "6")]
    Notes(Notes),
    #[prost(message, tag = "7")]
    Jobs(Jobs),
    #[prost(message, tag = "9")]
    Crawls(Crawls),
    #[prost(message, tag = "10")]
    Records(Records),
}

#[derive(Clone, PartialEq, Message)]
struct Crawls {
    #[prost(message, repeated, tag = "1")]
    rows: Vec<CrawlMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct Records {
    #[prost(message, repeated, tag = "1")]
    rows: Vec<RecordMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct CrawlMessage {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(bytes = "vec", tag = "2")]
    key: Vec<u8>,
    #[prost(uint32, tag = "3")]
    partitions: u32,
    #[prost(message, optional, tag = "4")]
    settings: Option<SettingsMessage>,
    #[prost(uint64, tag = "5")]
    started: u64,
    #[prost(oneof = "StateMessage", tags = "6, 7, 8")]
    state: Option<StateMessage>,
    #[prost(bool, tag = "9")]
    exhausted: bool,
}

#[derive(Clone, PartialEq, Oneof)]
enum StateMessage {
    #[prost(bool, tag = "6")]
    Running(bool),
    #[prost(bool, tag = "7")]
    Paused(bool),
    #[prost(string, tag = "8")]
    Finished(String),
}

#[derive(Clone, PartialEq, Message)]
struct Queues {
    #[prost(message, repeated, tag = "1")]
    rows: Vec<QueueMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct QueueMessage {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(uint32, tag = "2")]
    partition: u32,
    #[prost(uint32, tag = "3")]
    state: u32,
    #[prost(string, tag = "4")]
    why: String,
    #[prost(uint64, tag = "5")]
    pending: u64,
    #[prost(uint64, tag = "6")]
    leased: u64,
    #[prost(uint64, tag = "7")]
    done: u64,
    #[prost(uint64, tag = "8")]
    disregarded: u64,
    #[prost(uint64, tag = "9")]
    dead: u64,
    #[prost(uint64, tag = "10")]
    errors: u64,
    #[prost(uint64, optional, tag = "11")]
    budget: Option<u64>,
    #[prost(uint64, tag = "12")]
    spent: u64,
    #[prost(sint64, tag = "13")]
    balance: i64,
    #[prost(uint32, tag = "14")]
    latest_cost: u32,
    #[prost(double, tag = "15")]
    average_cost: f64,
    #[prost(uint32, tag = "16")]
    precedence: u32,
    #[prost(string, optional, tag = "17")]
    group: Option<String>,
    #[prost(uint32, tag = "18")]
    concurrency: u32,
    #[prost(message, optional, tag = "19")]
    delay: Option<Span>,
    #[prost(uint64, optional, tag = "20")]
    next_fetch: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct Urls {
    #[prost(message, repeated, tag = "1")]
    rows: Vec<UrlMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct UrlMessage {
    #[prost(message, optional, tag = "1")]
    identity: Option<IdentityMessage>,
    #[prost(message, optional, tag = "2")]
    request: Option<RequestMessage>,
    #[prost(uint32, tag = "3")]
    state: u32,
    #[prost(string, optional, tag = "4")]
    key: Option<String>,
    #[prost(uint32, tag = "5")]
    class: u32,
    #[prost(uint32, tag = "6")]
    cost: u32,
    #[prost(string, optional, tag = "7")]
    reason: Option<String>,
    #[prost(uint64, optional, tag = "8")]
    due: Option<u64>,
    #[prost(message, optional, tag = "9")]
    page: Option<PageMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct Leases {
    #[prost(message, repeated, tag = "1")]
    rows: Vec<LeaseMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct LeaseMessage {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(string, tag = "2")]
    key: String,
    #[prost(message, optional, tag = "3")]
    request: Option<RequestMessage>,
    #[prost(uint64, tag = "4")]
    granted: u64,
    #[prost(uint64, tag = "5")]
    deadline: u64,
    #[prost(uint32, tag = "6")]
    delivery: u32,
}

#[derive(Clone, PartialEq, Message)]
struct Dead {
    #[prost(message, repeated, tag = "1")]
    rows: Vec<DeadMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct DeadMessage {
    #[prost(message, optional, tag = "1")]
    identity: Option<IdentityMessage>,
    #[prost(string, tag = "2")]
    key: String,
    #[prost(message, optional, tag = "3")]
    request: Option<RequestMessage>,
    #[prost(string, tag = "4")]
    reason: String,
    #[prost(uint64, tag = "5")]
    at: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Notes {
    #[prost(message, repeated, tag = "1")]
    rows: Vec<NoteMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct Jobs {
    #[prost(message, repeated, tag = "1")]
    rows: Vec<JobMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct JobMessage {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(string, tag = "2")]
    what: String,
    #[prost(uint64, tag = "3")]
    passed: u64,
    #[prost(uint64, tag = "4")]
    total: u64,
    #[prost(uint64, tag = "5")]
    affected: u64,
    #[prost(bool, tag = "6")]
    ended: bool,
}

/// Every row as its message.
fn all<'a, T, M: From<&'a T>>(rows: &'a [T]) -> Vec<M> {
    rows.iter().map(M::from).collect()
}

/// Every row of some messages.
fn read_all<M, T>(rows: Vec<M>, read: fn(M) -> Result<T, Unreadable>) -> Result<Vec<T>, Unreadable> {
    rows.into_iter().map(read).collect()
}

impl From<&Page> for RowsMessage {
    fn from(page: &Page) -> Self {
        let Page { rows, cursor } = page;
        let kind = match rows {
            Rows::Crawl(report) => Kind::Crawl(Box::new((&**report).into())),
            Rows::Queues(rows) => Kind::Queues(Queues { rows: all(rows) }),
            Rows::Urls(rows) => Kind::Urls(Urls { rows: all(rows) }),
            Rows::Leases(rows) => Kind::Leases(Leases { rows: all(rows) }),
            Rows::Dead(rows) => Kind::Dead(Dead { rows: all(rows) }),
            Rows::Notes(rows) => Kind::Notes(Notes { rows: all(rows) }),
            Rows::Jobs(rows) => Kind::Jobs(Jobs { rows: all(rows) }),
            Rows::Crawls(rows) => Kind::Crawls(Crawls { rows: all(rows) }),
            Rows::Records(rows) => Kind::Records(Records { rows: all(rows) }),
        };
        Self { kind: Some(kind), cursor: *cursor }
    }
}

impl RowsMessage {
    pub(crate) fn read(self) -> Result<Page, Unreadable> {
        let Self { kind, cursor } = self;
        let rows = match kind.ok_or(Unreadable::Lacks("rows"))? {
            Kind::Crawl(report) => Rows::Crawl(Box::new(report.read()?)),
            Kind::Queues(Queues { rows }) => Rows::Queues(read_all(rows, QueueMessage::read)?),
            Kind::Urls(Urls { rows }) => Rows::Urls(read_all(rows, UrlMessage::read)?),
            Kind::Leases(Leases { rows }) => Rows::Leases(read_all(rows, LeaseMessage::read)?),
            Kind::Dead(Dead { rows }) => Rows::Dead(read_all(rows, DeadMessage::read)?),
            Kind::Notes(Notes { rows }) => Rows::Notes(read_all(rows, read_note)?),
            Kind::Jobs(Jobs { rows }) => Rows::Jobs(rows.into_iter().map(JobMessage::read).collect()),
            Kind::Crawls(Crawls { rows }) => Rows::Crawls(read_all(rows, CrawlMessage::read)?),
            Kind::Records(Records { rows }) => Rows::Records(read_all(rows, RecordMessage::read)?),
        };
        Ok(Page { rows, cursor })
    }
}

impl From<&CrawlReport> for CrawlMessage {
    fn from(report: &CrawlReport) -> Self {
        let CrawlReport { name, key, partitions, settings, started, state, exhausted } = report;
        Self {
            name: name.to_string(),
            key: key.as_bytes().to_vec(),
            partitions: *partitions,
            settings: Some(settings.into()),
            started: started.as_millis(),
            state: Some(match state {
                CrawlState::Running => StateMessage::Running(true),
                CrawlState::Paused => StateMessage::Paused(true),
                CrawlState::Finished(reason) => StateMessage::Finished(reason.clone()),
            }),
            exhausted: *exhausted,
        }
    }
}

impl CrawlMessage {
    fn read(self) -> Result<CrawlReport, Unreadable> {
        let Self { name, key, partitions, settings, started, state, exhausted } = self;
        let key = key.try_into().map_err(|_| Unreadable::Beyond("a key"))?;
        Ok(CrawlReport {
            name: Arc::from(name),
            key: IdentityKey::from_bytes(key),
            partitions,
            settings: settings.ok_or(Unreadable::Lacks("settings"))?.read()?,
            started: read_time(started),
            state: match state.ok_or(Unreadable::Lacks("a state"))? {
                StateMessage::Running(_) => CrawlState::Running,
                StateMessage::Paused(_) => CrawlState::Paused,
                StateMessage::Finished(reason) => CrawlState::Finished(reason),
            },
            exhausted,
        })
    }
}

impl From<&QueueReport> for QueueMessage {
    fn from(report: &QueueReport) -> Self {
        let QueueReport {
            key,
            partition,
            state,
            why,
            pending,
            leased,
            done,
            disregarded,
            dead,
            errors,
            budget,
            spent,
            balance,
            latest_cost,
            average_cost,
            precedence,
            group,
            concurrency,
            delay,
            next_fetch,
        } = report;
        Self {
            key: key.to_string(),
            partition: *partition,
            state: queue_state(*state),
            why: why.clone(),
            pending: *pending,
            leased: *leased,
            done: *done,
            disregarded: *disregarded,
            dead: *dead,
            errors: *errors,
            budget: *budget,
            spent: *spent,
            balance: *balance,
            latest_cost: *latest_cost,
            average_cost: *average_cost,
            precedence: (*precedence).into(),
            group: group.as_deref().map(str::to_owned),
            concurrency: *concurrency,
            delay: Some((*delay).into()),
            next_fetch: next_fetch.map(Timestamp::as_millis),
        }
    }
}

impl QueueMessage {
    fn read(self) -> Result<QueueReport, Unreadable> {
        Ok(QueueReport {
            key: Arc::from(self.key),
            partition: self.partition,
            state: read_queue_state(self.state)?,
            why: self.why,
            pending: self.pending,
            leased: self.leased,
            done: self.done,
            disregarded: self.disregarded,
            dead: self.dead,
            errors: self.errors,
            budget: self.budget,
            spent: self.spent,
            balance: self.balance,
            latest_cost: self.latest_cost,
            average_cost: self.average_cost,
            precedence: read_byte(self.precedence, "a precedence")?,
            group: self.group.map(Arc::from),
            concurrency: self.concurrency,
            delay: read_span(self.delay)?.ok_or(Unreadable::Lacks("a delay"))?,
            next_fetch: self.next_fetch.map(read_time),
        })
    }
}

impl From<&UrlReport> for UrlMessage {
    fn from(report: &UrlReport) -> Self {
        let UrlReport { identity, request, state, key, class, cost, reason, due, page } = report;
        Self {
            identity: Some((*identity).into()),
            request: request.as_deref().map(RequestMessage::from),
            state: url_state(*state),
            key: key.as_deref().map(str::to_owned),
            class: (*class).into(),
            cost: *cost,
            reason: reason.clone(),
            due: due.map(Timestamp::as_millis),
            page: page.as_deref().map(PageMessage::from),
        }
    }
}

impl UrlMessage {
    fn read(self) -> Result<UrlReport, Unreadable> {
        let Self { identity, request, state, key, class, cost, reason, due, page } = self;
        Ok(UrlReport {
            identity: identity.ok_or(Unreadable::Lacks("an identity"))?.into(),
            request: request.map(RequestMessage::read).transpose()?,
            state: read_url_state(state)?,
            key: key.map(Arc::from),
            class: read_byte(class, "a class")?,
            cost,
            reason,
            due: due.map(read_time),
            page: page.map(PageMessage::read).transpose()?,
        })
    }
}

impl From<&LeaseReport> for LeaseMessage {
    fn from(report: &LeaseReport) -> Self {
        let LeaseReport { id, key, request, granted, deadline, delivery } = report;
        Self {
            id: id.0,
            key: key.to_string(),
            request: Some((&**request).into()),
            granted: granted.as_millis(),
            deadline: deadline.as_millis(),
            delivery: *delivery,
        }
    }
}

impl LeaseMessage {
    fn read(self) -> Result<LeaseReport, Unreadable> {
        let Self { id, key, request, granted, deadline, delivery } = self;
        Ok(LeaseReport {
            id: LeaseId(id),
            key: Arc::from(key),
            request: read_request(request)?,
            granted: read_time(granted),
            deadline: read_time(deadline),
            delivery,
        })
    }
}

impl From<&DeadLetter> for DeadMessage {
    fn from(letter: &DeadLetter) -> Self {
        let DeadLetter { identity, key, request, reason, at } = letter;
        Self {
            identity: Some((*identity).into()),
            key: key.to_string(),
            request: Some((&**request).into()),
            reason: reason.clone(),
            at: at.as_millis(),
        }
    }
}

impl DeadMessage {
    fn read(self) -> Result<DeadLetter, Unreadable> {
        let Self { identity, key, request, reason, at } = self;
        Ok(DeadLetter {
            identity: identity.ok_or(Unreadable::Lacks("an identity"))?.into(),
            key: Arc::from(key),
            request: read_request(request)?,
            reason,
            at: read_time(at),
        })
    }
}

impl From<&Note> for NoteMessage {
    fn from(note: &Note) -> Self {
        let Note { key, value, expires } = note.clone();
        (&NoteWrite { key, value: Some(value), expires }).into()
    }
}

fn read_note(message: NoteMessage) -> Result<Note, Unreadable> {
    let NoteWrite { key, value, expires } = message.read();
    Ok(Note { key, value: value.ok_or(Unreadable::Lacks("a note's value"))?, expires })
}

impl From<&JobReport> for JobMessage {
    fn from(report: &JobReport) -> Self {
        let JobReport { id, what, passed, total, affected, ended } = report.clone();
        Self { id, what, passed, total, affected, ended }
    }
}

impl JobMessage {
    fn read(self) -> JobReport {
        let Self { id, what, passed, total, affected, ended } = self;
        JobReport { id, what, passed, total, affected, ended }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use trapline_core::Identity;
    use trapline_frontier::{QueueState, UrlState};

    fn check(rows: &Rows) {
        for cursor in [None, Some(0), Some(u64::MAX)] {
            let page = Page { rows: rows.clone(), cursor };
            let bytes = RowsMessage::from(&page).encode_to_vec();
            assert_eq!(RowsMessage::decode(&*bytes).unwrap().read().unwrap(), page);
        }
    }

    #[test]
    fn crawls_come_back_as_they_were() {
        let states = [CrawlState::Running, CrawlState::Paused, CrawlState::Finished(String::new())];
        for (settings, state) in super::super::settings::samples().into_iter().zip(states) {
            check(&Rows::Crawl(Box::new(CrawlReport {
                name: Arc::from("c"),
                key: IdentityKey::from_seed(1),
                partitions: 256,
                settings,
                started: Timestamp::MAX,
                exhausted: state == CrawlState::Paused,
                state,
            })));
        }
    }

    #[test]
    fn queues_come_back_as_they_were() {
        let queue = |state: QueueState| {
            let is_given = (state as usize).is_multiple_of(2);
            QueueReport {
                key: Arc::from("k"),
                partition: 1,
                state,
                why: "w".to_owned(),
                pending: 2,
                leased: 3,
                done: 4,
                disregarded: 5,
                dead: 6,
                errors: 7,
                budget: is_given.then_some(0),
                spent: u64::MAX,
                balance: i64::MIN,
                latest_cost: 8,
                average_cost: 0.1,
                precedence: 255,
                group: is_given.then(|| Arc::from("")),
                concurrency: 9,
                delay: Duration::new(1, 2),
                next_fetch: is_given.then_some(Timestamp::ZERO),
            }
        };
        check(&Rows::Queues(QueueState::ALL.map(queue).to_vec()));
        check(&Rows::Queues(Vec::new()));
    }

    #[test]
    fn urls_leases_and_dead_letters_come_back_as_they_were() {
        let requests = super::super::candidate::samples().into_iter().map(|candidate| candidate.request);
        let requests: Vec<_> = requests.collect();
        let url = |state: UrlState| {
            let is_given = state as usize % 2 == 1;
            UrlReport {
                identity: Identity(u128::MAX),
                request: is_given.then(|| Arc::clone(&requests[state as usize])),
                state,
                key: is_given.then(|| Arc::from("")),
                class: 255,
                cost: 1,
                reason: is_given.then(String::new),
                due: is_given.then_some(Timestamp::ZERO),
                page: is_given.then(super::super::lease::sample_page),
            }
        };
        check(&Rows::Urls(UrlState::ALL.map(url).to_vec()));
        check(&Rows::Urls(Vec::new()));
        let leases = requests.iter().map(|request| LeaseReport {
            id: LeaseId(1),
            key: Arc::from("k"),
            request: Arc::clone(request),
            granted: Timestamp::ZERO,
            deadline: Timestamp::MAX,
            delivery: 2,
        });
        check(&Rows::Leases(leases.collect()));
        check(&Rows::Leases(Vec::new()));
        let letters = requests.iter().map(|request| DeadLetter {
            identity: Identity(1),
            key: Arc::from("k"),
            request: Arc::clone(request),
            reason: "r".to_owned(),
            at: Timestamp::MAX,
        });
        check(&Rows::Dead(letters.collect()));
        check(&Rows::Dead(Vec::new()));
    }

    #[test]
    fn notes_and_jobs_come_back_as_they_were() {
        let note = |value: &[u8], expires| Note { key: "k".to_owned(), value: value.to_vec(), expires };
        check(&Rows::Notes(vec![note(&[], None), note(&[0, 255], Some(Timestamp::ZERO))]));
        check(&Rows::Notes(Vec::new()));
        let job = |ended| JobReport {
            id: 0,
            what: "purge".to_owned(),
            passed: 1,
            total: 2,
            affected: u64::MAX,
            ended,
        };
        check(&Rows::Jobs(vec![job(false), job(true)]));
        check(&Rows::Jobs(Vec::new()));
        check(&Rows::Crawls(Vec::new()));
        check(&Rows::Records(super::super::record::samples()));
    }

    #[test]
    fn other_bytes_are_an_error_never_a_panic() {
        let note = Note { key: "k".to_owned(), value: vec![1], expires: None };
        let bytes =
            RowsMessage::from(&Page { rows: Rows::Notes(vec![note]), cursor: Some(1) }).encode_to_vec();
        for place in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                let mut bad = bytes.clone();
                bad[place] ^= flip;
                let _ = RowsMessage::decode(&*bad).map(RowsMessage::read);
            }
        }
        assert!(RowsMessage::default().read().is_err());
    }
}
