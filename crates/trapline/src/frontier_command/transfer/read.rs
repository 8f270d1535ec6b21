//! Lines of an export, read. Nobody has to believe a file: every mistake is named with what should be there.

use std::sync::Arc;

use serde_json::{Map, Value};
use trapline_core::{Identity, IdentityKey, Request, Terms, Timestamp};
use trapline_frontier::{
    CrawlRecord, CrawlState, NoteWrite, PageRecord, QueueRecord, RetiredBy, Settings, UrlStanding, Visit,
};

use super::{Counts, CrawlLine, FORMAT, VERSION};
use crate::frontier_command::fields::Fields;
use crate::frontier_command::{bytes, candidate, request};

/// What a line says.
#[derive(Debug)]
pub(in super::super) enum Line {
    Header { exported: Timestamp },
    Crawl(Box<CrawlLine>),
    Url(Box<UrlLine>),
    Queue(Box<QueueRecord>),
    Note(NoteWrite),
    Counts(CrawlRecord),
    CrawlEnd(String, Counts),
    End { crawls: u64, counts: Counts },
}

/// A URL, before it is known which identity it has.
#[derive(Debug)]
pub(in super::super) struct UrlLine {
    pub(in super::super) request: Request,
    pub(in super::super) key: String,
    /// If it is not the usual one.
    pub(in super::super) identity: Option<Identity>,
    pub(in super::super) class: u8,
    pub(in super::super) cost: u32,
    pub(in super::super) standing: UrlStanding,
    pub(in super::super) page: Option<PageRecord>,
    pub(in super::super) visits: u32,
    pub(in super::super) retries: u32,
    pub(in super::super) expiries: u32,
    pub(in super::super) entries: u32,
}

/// What begins each kind of line.
const KINDS: [&str; 8] = ["format", "crawl", "url", "queue", "note", "counts", "end_of_crawl", "end"];

pub(in super::super) fn line(mut fields: Fields) -> Result<Line, String> {
    let mut kinds = KINDS.iter().filter(|kind| fields.has(kind));
    let (kind, other) = (kinds.next(), kinds.next());
    let line = match (kind, other) {
        (Some(kind), None) => match *kind {
            "format" => header(&mut fields)?,
            "crawl" => Line::Crawl(Box::new(crawl(&mut fields)?)),
            "url" => Line::Url(Box::new(url(&mut fields)?)),
            "queue" => Line::Queue(Box::new(queue(&mut fields)?)),
            "note" => Line::Note(note(&mut fields)?),
            "counts" => Line::Counts(crawl_counts(&mut fields)?),
            "end_of_crawl" => Line::CrawlEnd(fields.needed_text("end_of_crawl")?, counts(&mut fields)?),
            _ => {
                fields.flag("end")?;
                Line::End { crawls: needed(&mut fields, "crawls")?, counts: counts(&mut fields)? }
            }
        },
        (Some(one), Some(other)) => {
            return Err(format!("it has both `{one}` and `{other}`, which do not go together"));
        }
        (None, _) => {
            return Err(format!("it says of nothing what it is: it has none of {}", KINDS.join(", ")));
        }
    };
    fields.end()?;
    Ok(line)
}

fn needed<N: TryFrom<i128>>(fields: &mut Fields, name: &'static str) -> Result<N, String> {
    fields.number(name)?.ok_or_else(|| format!("it has no `{name}`"))
}

fn needed_instant(fields: &mut Fields, name: &'static str) -> Result<Timestamp, String> {
    fields.instant(name)?.ok_or_else(|| format!("it has no `{name}`"))
}

fn header(fields: &mut Fields) -> Result<Line, String> {
    let format = fields.needed_text("format")?;
    if format != FORMAT {
        return Err(format!("its format is `{format}`, and only `{FORMAT}` can be read"));
    }
    let version: u64 = needed(fields, "version")?;
    if version == 0 || version > VERSION.into() {
        return Err(format!(
            "it has version {version}, and versions up to {VERSION} can be read; import it with the version of Trapline that \
             wrote it, or a later one"
        ));
    }
    Ok(Line::Header { exported: needed_instant(fields, "exported")? })
}

fn crawl(fields: &mut Fields) -> Result<CrawlLine, String> {
    let name = fields.needed_text("crawl")?;
    let key = fields.needed_text("identity_key")?;
    let key = bytes::read_hex(&key).and_then(|key| <[u8; 32]>::try_from(key).ok());
    let key = key.ok_or("`identity_key` should have 64 hexadecimal digits")?;
    let partitions = needed(fields, "partitions")?;
    let mut settings = Settings::default();
    let told = fields.object("settings")?.map(Fields::into_rest).unwrap_or_else(Map::new);
    for (name, value) in told {
        let Value::String(value) = value else {
            return Err(format!("the setting `{name}` should be a text, such as \"60s\""));
        };
        settings.set(&name, &value).map_err(|error| error.to_string())?;
    }
    let reason = fields.text("reason")?;
    let state = match (&*fields.needed_text("state")?, reason) {
        ("running", None) => CrawlState::Running,
        ("paused", None) => CrawlState::Paused,
        ("finished", reason) => CrawlState::Finished(reason.unwrap_or_default()),
        (state, _) => {
            return Err(format!(
                "`state` is \"{state}\", and should be running, paused, or finished with a reason"
            ));
        }
    };
    Ok(CrawlLine { name, key: IdentityKey::from_bytes(key), partitions, settings, state })
}

fn url(fields: &mut Fields) -> Result<UrlLine, String> {
    let request = request::read(fields, Request::get(""))?;
    let identity = match fields.text("identity")? {
        None => None,
        Some(text) => {
            let bytes = bytes::read_hex(&text).and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
            let bytes = bytes.ok_or("`identity` should have 32 hexadecimal digits")?;
            Some(Identity(u128::from_be_bytes(bytes)))
        }
    };
    Ok(UrlLine {
        request,
        key: fields.needed_text("key")?,
        identity,
        class: needed(fields, "class")?,
        cost: needed(fields, "cost")?,
        standing: standing(fields)?,
        page: fields.object("page")?.map(page).transpose()?,
        visits: fields.number("visits")?.unwrap_or(0),
        retries: fields.number("retried")?.unwrap_or(0),
        expiries: fields.number("expired")?.unwrap_or(0),
        entries: fields.number("entries")?.unwrap_or(1),
    })
}

fn standing(fields: &mut Fields) -> Result<UrlStanding, String> {
    let state = fields.needed_text("state")?;
    Ok(match &*state {
        "pending" => {
            let times = [
                fields.instant("scheduled")?.map(|at| UrlStanding::Pending(Some(at))),
                fields.instant("returned")?.map(UrlStanding::Returned),
                fields.instant("retry")?.map(UrlStanding::Retry),
                fields.instant("due")?.map(UrlStanding::Scheduled),
            ];
            let mut times = times.into_iter().flatten();
            match (times.next(), times.next()) {
                (None, _) => UrlStanding::Pending(None),
                (Some(standing), None) => standing,
                _ => return Err("it has more than one of scheduled, returned, retry, due".to_owned()),
            }
        }
        "leased" => UrlStanding::Leased,
        "done" => UrlStanding::Done(fields.instant("next")?),
        "disregarded" => UrlStanding::Disregarded(fields.text("reason")?.unwrap_or_default()),
        "dead" => UrlStanding::Dead {
            reason: fields.text("reason")?.unwrap_or_default(),
            at: needed_instant(fields, "at")?,
        },
        _ => {
            return Err(format!(
                "`state` is \"{state}\", and should be pending, leased, done, disregarded or dead"
            ));
        }
    })
}

fn page(mut fields: Fields) -> Result<PageRecord, String> {
    let page = PageRecord {
        visited: needed_instant(&mut fields, "visited")?,
        visit: Visit {
            status: fields.number("status")?.unwrap_or(0),
            bytes: fields.number("bytes")?.unwrap_or(0),
            etag: fields.text("etag")?,
            last_modified: fields.text("last_modified")?,
            digest: fields.bytes("digest")?,
            simhash: fields.number("simhash")?,
        },
        visits: needed(&mut fields, "visits")?,
        changes: needed(&mut fields, "changes")?,
        next: fields.instant("next")?,
    };
    fields.end()?;
    Ok(page)
}

fn queue(fields: &mut Fields) -> Result<QueueRecord, String> {
    let terms = |fields: Option<Fields>| match fields {
        None => Ok(Terms::default()),
        Some(mut fields) => {
            let terms = candidate::terms(&mut fields)?;
            fields.end()?;
            Ok::<_, String>(terms)
        }
    };
    Ok(QueueRecord {
        key: Arc::from(fields.needed_text("queue")?),
        terms: terms(fields.object("terms")?)?,
        steered: terms(fields.object("steered")?)?,
        retired: match fields.text("retired")?.as_deref() {
            None => None,
            Some("operator") => Some(RetiredBy::Operator),
            Some("budget") => Some(RetiredBy::Budget),
            Some(other) => {
                return Err(format!("`retired` is \"{other}\", and should be operator or budget"));
            }
        },
        blocked: fields.instant("blocked")?,
        next_fetch: fields.instant("next_fetch")?,
        group_next_fetch: fields.instant("group_next_fetch")?,
        active: fields.flag("active")?,
        balance: fields.number("balance")?.unwrap_or(0),
        spent: fields.number("spent")?.unwrap_or(0),
        grants: fields.number("grants")?.unwrap_or(0),
        charged: fields.number("charged")?.unwrap_or(0),
        latest_cost: fields.number("latest_cost")?.unwrap_or(0),
        errors: fields.number("errors")?.unwrap_or(0),
    })
}

fn note(fields: &mut Fields) -> Result<NoteWrite, String> {
    Ok(NoteWrite {
        key: fields.needed_text("note")?,
        value: Some(fields.bytes("value")?.ok_or("it has no `value`")?),
        expires: fields.instant("expires")?,
    })
}

fn crawl_counts(fields: &mut Fields) -> Result<CrawlRecord, String> {
    let mut fields = fields.object("counts")?.ok_or("it has no `counts`")?;
    let counts = CrawlRecord {
        started: needed_instant(&mut fields, "started")?,
        fetched: needed(&mut fields, "fetched")?,
        bytes: needed(&mut fields, "bytes")?,
        spent: needed(&mut fields, "spent")?,
        granted: needed(&mut fields, "granted")?,
        expired: needed(&mut fields, "expired")?,
        turn: needed(&mut fields, "turn")?,
    };
    fields.end()?;
    Ok(counts)
}

fn counts(fields: &mut Fields) -> Result<Counts, String> {
    Ok(Counts {
        urls: needed(fields, "urls")?,
        queues: needed(fields, "queues")?,
        notes: needed(fields, "notes")?,
    })
}
