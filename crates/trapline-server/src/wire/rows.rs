//! Pages of rows.

use std::sync::Arc;
use std::time::Duration;

use trapline_core::Timestamp;
use trapline_frontier::{
    CrawlReport, CrawlState, DeadLetter, JobReport, LeaseId, LeaseReport, Note, Page, QueueReport, Rows,
    UrlReport,
};

use super::{
    Unreadable, byte, claim, millis, read_identity, read_time, record, request, scan, settings, steer,
    write_identity, write_time,
};
use crate::proto::v1;
use v1::crawl_report::State;
use v1::scan_response::Rows as RowsMessage;

pub(crate) fn write(page: &Page) -> v1::ScanResponse {
    let rows = match &page.rows {
        Rows::Crawl(crawl) => RowsMessage::TheCrawl(write_crawl(crawl)),
        Rows::Crawls(rows) => {
            RowsMessage::Crawls(v1::Crawls { rows: rows.iter().map(write_crawl).collect() })
        }
        Rows::Queues(rows) => {
            RowsMessage::Queues(v1::Queues { rows: rows.iter().map(write_queue).collect() })
        }
        Rows::Urls(rows) => RowsMessage::Urls(v1::Urls { rows: rows.iter().map(write_url).collect() }),
        Rows::Leases(rows) => {
            RowsMessage::Leases(v1::Leases { rows: rows.iter().map(write_lease).collect() })
        }
        Rows::Dead(rows) => RowsMessage::Dead(v1::Dead { rows: rows.iter().map(write_dead).collect() }),
        Rows::Notes(rows) => RowsMessage::Notes(v1::Notes { rows: rows.iter().map(write_note).collect() }),
        Rows::Records(rows) => {
            RowsMessage::Records(v1::Records { rows: rows.iter().map(record::write).collect() })
        }
        Rows::Jobs(rows) => RowsMessage::Jobs(v1::Jobs { rows: rows.iter().map(write_job).collect() }),
    };
    v1::ScanResponse { rows: Some(rows), cursor: page.cursor }
}

pub(crate) fn read(page: v1::ScanResponse) -> Result<Page, Unreadable> {
    let v1::ScanResponse { rows, cursor } = page;
    let rows = match rows.ok_or_else(|| Unreadable::lacks("rows"))? {
        RowsMessage::TheCrawl(crawl) => Rows::Crawl(Box::new(read_crawl(crawl)?)),
        RowsMessage::Crawls(page) => {
            Rows::Crawls(page.rows.into_iter().map(read_crawl).collect::<Result<_, _>>()?)
        }
        RowsMessage::Queues(page) => {
            Rows::Queues(page.rows.into_iter().map(read_queue).collect::<Result<_, _>>()?)
        }
        RowsMessage::Urls(page) => Rows::Urls(page.rows.into_iter().map(read_url).collect::<Result<_, _>>()?),
        RowsMessage::Leases(page) => {
            Rows::Leases(page.rows.into_iter().map(read_lease).collect::<Result<_, _>>()?)
        }
        RowsMessage::Dead(page) => {
            Rows::Dead(page.rows.into_iter().map(read_dead).collect::<Result<_, _>>()?)
        }
        RowsMessage::Notes(page) => Rows::Notes(page.rows.into_iter().map(read_note).collect()),
        RowsMessage::Records(page) => {
            Rows::Records(page.rows.into_iter().map(record::read).collect::<Result<_, _>>()?)
        }
        RowsMessage::Jobs(page) => Rows::Jobs(page.rows.into_iter().map(read_job).collect()),
    };
    Ok(Page { rows, cursor })
}

fn write_crawl(crawl: &CrawlReport) -> v1::CrawlReport {
    let CrawlReport { name, key, partitions, settings, started, state, exhausted } = crawl;
    v1::CrawlReport {
        name: name.to_string(),
        key: key.as_bytes().to_vec(),
        partitions: *partitions,
        settings: Some(settings::write(settings)),
        started_ms: started.as_millis(),
        state: Some(match state {
            CrawlState::Running => State::Running(true),
            CrawlState::Paused => State::Paused(true),
            CrawlState::Finished(reason) => State::Finished(reason.clone()),
        }),
        exhausted: *exhausted,
    }
}

fn read_crawl(crawl: v1::CrawlReport) -> Result<CrawlReport, Unreadable> {
    let v1::CrawlReport { name, key, partitions, settings, started_ms, state, exhausted } = crawl;
    Ok(CrawlReport {
        name: Arc::from(name),
        key: steer::read_key(&key)?,
        partitions,
        settings: settings::read(settings.unwrap_or_default())?,
        started: Timestamp::from_millis(started_ms),
        state: match state.ok_or_else(|| Unreadable::lacks("the state of a crawl"))? {
            State::Running(_) => CrawlState::Running,
            State::Paused(_) => CrawlState::Paused,
            State::Finished(reason) => CrawlState::Finished(reason),
        },
        exhausted,
    })
}

fn write_queue(queue: &QueueReport) -> v1::QueueReport {
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
    } = queue;
    v1::QueueReport {
        key: key.to_string(),
        partition: *partition,
        state: scan::write_queue_state(*state).into(),
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
        precedence: u32::from(*precedence),
        group: group.as_deref().map(str::to_owned),
        concurrency: *concurrency,
        delay_ms: millis(*delay),
        next_fetch_ms: write_time(*next_fetch),
    }
}

fn read_queue(queue: v1::QueueReport) -> Result<QueueReport, Unreadable> {
    let v1::QueueReport {
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
        delay_ms,
        next_fetch_ms,
    } = queue;
    Ok(QueueReport {
        key: Arc::from(key),
        partition,
        state: scan::read_queue_state(state)?,
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
        precedence: byte("precedence", precedence)?,
        group: group.map(Arc::from),
        concurrency,
        delay: Duration::from_millis(delay_ms),
        next_fetch: read_time(next_fetch_ms),
    })
}

fn write_url(url: &UrlReport) -> v1::UrlReport {
    let UrlReport { identity, request, state, key, class, cost, reason, due, page } = url;
    v1::UrlReport {
        identity: write_identity(*identity),
        request: request.as_deref().map(request::write),
        state: scan::write_url_state(*state).into(),
        key: key.as_deref().map(str::to_owned),
        class: u32::from(*class),
        cost: *cost,
        reason: reason.clone(),
        due_ms: write_time(*due),
        page: page.as_deref().map(claim::write_page),
    }
}

fn read_url(url: v1::UrlReport) -> Result<UrlReport, Unreadable> {
    let v1::UrlReport { identity, request, state, key, class, cost, reason, due_ms, page } = url;
    Ok(UrlReport {
        identity: read_identity(&identity)?,
        request: request.map(request::read).transpose()?.map(Arc::new),
        state: scan::read_url_state(state)?,
        key: key.map(Arc::from),
        class: byte("class", class)?,
        cost,
        reason,
        due: read_time(due_ms),
        page: page.map(claim::read_page).transpose()?.map(Arc::new),
    })
}

fn write_lease(lease: &LeaseReport) -> v1::LeaseReport {
    let LeaseReport { id, key, request, granted, deadline, delivery } = lease;
    v1::LeaseReport {
        id: id.0,
        key: key.to_string(),
        request: Some(request::write(request)),
        granted_ms: granted.as_millis(),
        deadline_ms: deadline.as_millis(),
        delivery: *delivery,
    }
}

fn read_lease(lease: v1::LeaseReport) -> Result<LeaseReport, Unreadable> {
    let v1::LeaseReport { id, key, request, granted_ms, deadline_ms, delivery } = lease;
    Ok(LeaseReport {
        id: LeaseId(id),
        key: Arc::from(key),
        request: Arc::new(request::given(request)?),
        granted: Timestamp::from_millis(granted_ms),
        deadline: Timestamp::from_millis(deadline_ms),
        delivery,
    })
}

fn write_dead(letter: &DeadLetter) -> v1::DeadLetter {
    let DeadLetter { identity, key, request, reason, at } = letter;
    v1::DeadLetter {
        identity: write_identity(*identity),
        key: key.to_string(),
        request: Some(request::write(request)),
        reason: reason.clone(),
        at_ms: at.as_millis(),
    }
}

fn read_dead(letter: v1::DeadLetter) -> Result<DeadLetter, Unreadable> {
    let v1::DeadLetter { identity, key, request, reason, at_ms } = letter;
    Ok(DeadLetter {
        identity: read_identity(&identity)?,
        key: Arc::from(key),
        request: Arc::new(request::given(request)?),
        reason,
        at: Timestamp::from_millis(at_ms),
    })
}

fn write_note(note: &Note) -> v1::Note {
    let Note { key, value, expires } = note;
    v1::Note { key: key.clone(), value: value.clone(), expires_ms: write_time(*expires) }
}

fn read_note(note: v1::Note) -> Note {
    let v1::Note { key, value, expires_ms } = note;
    Note { key, value, expires: read_time(expires_ms) }
}

fn write_job(job: &JobReport) -> v1::JobReport {
    let JobReport { id, what, passed, total, affected, ended } = job;
    v1::JobReport {
        id: *id,
        what: what.clone(),
        passed: *passed,
        total: *total,
        affected: *affected,
        ended: *ended,
    }
}

fn read_job(job: v1::JobReport) -> JobReport {
    let v1::JobReport { id, what, passed, total, affected, ended } = job;
    JobReport { id, what, passed, total, affected, ended }
}
