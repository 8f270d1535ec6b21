//! What few entries have, or entries only for a while, in an image. Where all URLs are visited again, every entry has some.

use prost::Message;
use trapline_core::Timestamp;

use super::BadImage;
use super::column::Column;
use super::parts::{COUNT_MAX, MomentMessage, entry, moment, narrow, read_entry, read_moment};
use crate::engine::more::More;
use crate::engine::urls::EntryId;
use crate::verbs::{PageRecord, Visit};

/// What some entries have, a column for each field.
#[derive(Clone, PartialEq, Message)]
pub(super) struct MoresMessage {
    #[prost(uint32, tag = "1")]
    count: u32,
    #[prost(message, optional, tag = "2")]
    entries: Option<Column>,
    /// Which of them have a [`PLACE`], and which a [`PAGE`].
    #[prost(message, optional, tag = "3")]
    parts: Option<Column>,
    #[prost(message, optional, tag = "4")]
    places: Option<Column>,
    #[prost(message, optional, tag = "5")]
    due: Option<Column>,
    #[prost(message, optional, tag = "6")]
    ranks: Option<Column>,
    #[prost(message, optional, tag = "7")]
    expiries: Option<Column>,
    #[prost(message, optional, tag = "8")]
    retries: Option<Column>,
    #[prost(message, optional, tag = "9")]
    further_visits: Option<Column>,
    #[prost(message, optional, tag = "10")]
    older: Option<Column>,
    #[prost(message, optional, tag = "11")]
    newer: Option<Column>,
    /// Of those that have one.
    #[prost(message, repeated, tag = "12")]
    pages: Vec<PageMessage>,
}

const PLACE: u64 = 1;
const PAGE: u64 = 2;

/// The same as earlier versions wrote it.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PlainMoresMessage {
    #[prost(message, repeated, tag = "1")]
    pub(super) mores: Vec<MoreMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MoreMessage {
    #[prost(uint32, tag = "1")]
    pub(super) entry: u32,
    #[prost(uint64, optional, tag = "2")]
    place: Option<u64>,
    #[prost(message, optional, tag = "3")]
    due: Option<MomentMessage>,
    #[prost(uint32, tag = "4")]
    expiries: u32,
    #[prost(uint32, tag = "5")]
    retries: u32,
    #[prost(uint32, tag = "6")]
    further_visits: u32,
    #[prost(uint32, tag = "7")]
    older: u32,
    #[prost(uint32, tag = "8")]
    newer: u32,
    #[prost(message, optional, tag = "9")]
    page: Option<PageMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct PageMessage {
    #[prost(uint64, tag = "1")]
    visited: u64,
    #[prost(uint32, tag = "2")]
    visits: u32,
    #[prost(uint32, tag = "3")]
    changes: u32,
    #[prost(uint64, optional, tag = "4")]
    next: Option<u64>,
    #[prost(uint32, tag = "5")]
    status: u32,
    #[prost(uint64, tag = "6")]
    bytes: u64,
    #[prost(string, optional, tag = "7")]
    etag: Option<String>,
    #[prost(string, optional, tag = "8")]
    last_modified: Option<String>,
    #[prost(bytes = "vec", optional, tag = "9")]
    digest: Option<Vec<u8>>,
    #[prost(fixed64, optional, tag = "10")]
    simhash: Option<u64>,
}

impl MoresMessage {
    pub(super) fn of<'m>(mores: impl Iterator<Item = &'m (EntryId, More)>) -> Self {
        let mut mores: Vec<MoreMessage> = mores.map(MoreMessage::of).collect();
        let column = |number: fn(&MoreMessage) -> u64| Some(Column::of(mores.iter().map(number)));
        Self {
            count: mores.len() as u32,
            entries: column(|more| more.entry.into()),
            parts: column(|more| {
                let place = if more.place.is_some() { PLACE } else { 0 };
                place | if more.page.is_some() { PAGE } else { 0 }
            }),
            places: column(|more| more.place.unwrap_or(0)),
            due: column(|more| more.due.unwrap_or_default().at),
            ranks: column(|more| more.due.unwrap_or_default().rank),
            expiries: column(|more| more.expiries.into()),
            retries: column(|more| more.retries.into()),
            further_visits: column(|more| more.further_visits.into()),
            older: column(|more| more.older.into()),
            newer: column(|more| more.newer.into()),
            pages: mores.iter_mut().filter_map(|more| more.page.take()).collect(),
        }
    }

    pub(super) fn read(self) -> Result<PlainMoresMessage, BadImage> {
        if self.count > COUNT_MAX {
            return Err(BadImage::Impossible("a number of entries"));
        }
        let wide = |column: &Option<Column>| Column::read(column.as_ref(), self.count as usize);
        let column = |column: &Option<Column>| -> Result<Vec<u32>, BadImage> {
            let narrow =
                |number| u32::try_from(number).map_err(|_| BadImage::Impossible("a number of an entry"));
            wide(column)?.into_iter().map(narrow).collect()
        };
        let (parts, places) = (wide(&self.parts)?, wide(&self.places)?);
        let (due, ranks) = (wide(&self.due)?, wide(&self.ranks)?);
        let (entries, expiries, retries) =
            (column(&self.entries)?, column(&self.expiries)?, column(&self.retries)?);
        let (further_visits, older, newer) =
            (column(&self.further_visits)?, column(&self.older)?, column(&self.newer)?);
        let mut pages = self.pages.into_iter();
        let mut mores = Vec::with_capacity(entries.len());
        for at in 0..entries.len() {
            let page = match parts[at] & PAGE {
                0 => None,
                _ => Some(pages.next().ok_or(BadImage::Lacks("a page record"))?),
            };
            let due = MomentMessage { at: due[at], rank: ranks[at] };
            mores.push(MoreMessage {
                entry: entries[at],
                place: (parts[at] & PLACE != 0).then_some(places[at]),
                due: (due != MomentMessage::default()).then_some(due),
                expiries: expiries[at],
                retries: retries[at],
                further_visits: further_visits[at],
                older: older[at],
                newer: newer[at],
                page,
            });
        }
        if pages.next().is_some() || parts.iter().any(|parts| parts & !(PLACE | PAGE) != 0) {
            return Err(BadImage::Impossible("what an entry has"));
        }
        Ok(PlainMoresMessage { mores })
    }
}

impl MoreMessage {
    fn of((id, more): &(EntryId, More)) -> Self {
        let More { place, due, expiries, retries, further_visits, older, newer, .. } = more;
        Self {
            entry: id.0,
            place: *place,
            due: moment(*due),
            expiries: *expiries,
            retries: *retries,
            further_visits: *further_visits,
            older: entry(*older),
            newer: entry(*newer),
            page: more.page().as_deref().map(PageMessage::of),
        }
    }

    pub(super) fn read(self) -> Result<More, BadImage> {
        let Self { entry: _, place, due, expiries, retries, further_visits, older, newer, page } = self;
        let page = page.map(PageMessage::read).transpose()?;
        let mut more = More::NOTHING.with_page(page.as_ref());
        (more.place, more.due) = (place, read_moment(due));
        (more.expiries, more.retries, more.further_visits) = (expiries, retries, further_visits);
        (more.older, more.newer) = (read_entry(older), read_entry(newer));
        Ok(more)
    }
}

impl PageMessage {
    fn of(page: &PageRecord) -> Self {
        let PageRecord { visited, visit, visits, changes, next } = page;
        let Visit { status, bytes, etag, last_modified, digest, simhash } = visit.clone();
        Self {
            visited: visited.as_millis(),
            visits: *visits,
            changes: *changes,
            next: next.map(Timestamp::as_millis),
            status: status.into(),
            bytes,
            etag,
            last_modified,
            digest,
            simhash,
        }
    }

    fn read(self) -> Result<PageRecord, BadImage> {
        let Self { visited, visits, changes, next, status, bytes, etag, last_modified, digest, simhash } =
            self;
        let status = narrow(status, "a status")?;
        Ok(PageRecord {
            visited: Timestamp::from_millis(visited),
            visit: Visit { status, bytes, etag, last_modified, digest, simhash },
            visits,
            changes,
            next: next.map(Timestamp::from_millis),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::moment::Moment;

    fn mores() -> Vec<(EntryId, More)> {
        let page = PageRecord {
            visited: Timestamp::from_millis(5),
            visit: Visit { status: 200, etag: Some("\"a\"".to_owned()), ..Visit::default() },
            visits: 3,
            changes: 1,
            next: Some(Timestamp::from_millis(9)),
        };
        let due = Moment { at: Timestamp::from_millis(u64::MAX), rank: 7 };
        let (mut waits, mut shown, mut chained) =
            (More::NOTHING, More::NOTHING.with_page(Some(&page)), More::NOTHING);
        (waits.place, waits.due, waits.expiries, waits.retries) = (Some(u64::MAX), due, 1, u32::MAX);
        shown.further_visits = 2;
        (chained.place, chained.older, chained.newer) = (Some(0), Some(EntryId(0)), Some(EntryId(5)));
        (7..).map(EntryId).zip([waits, shown, chained]).collect()
    }

    #[test]
    fn what_is_written_in_columns_comes_back() {
        for count in [0, 1, 3] {
            let mores = &mores()[..count];
            let bytes = MoresMessage::of(mores.iter()).encode_to_vec();
            let read = MoresMessage::decode(&bytes[..]).unwrap().read().unwrap().mores.into_iter();
            let read: Vec<_> = read.map(|more| (EntryId(more.entry), more.read().unwrap())).collect();
            assert_eq!(read, mores);
        }
    }

    /// A change of what was written, and what is found wrong then.
    type Case = (fn(&mut MoresMessage), &'static str);

    #[test]
    fn columns_that_cannot_be_are_errors() {
        let cases: [Case; 7] = [
            (|message| message.count = COUNT_MAX + 1, "a number of entries"),
            (|message| message.count = 2, "a column"),
            (|message| message.older = None, "a column"),
            (
                |message| message.entries = Some(Column::of([0, 1 << 32, 3].into_iter())),
                "a number of an entry",
            ),
            (|message| message.pages.clear(), "a page record"),
            (|message| message.parts = Some(Column::of([0, 0, 0].into_iter())), "what an entry has"),
            (|message| message.parts = Some(Column::of([4, PAGE, 0].into_iter())), "what an entry has"),
        ];
        for (change, expected) in cases {
            let mut message = MoresMessage::of(mores().iter());
            change(&mut message);
            let error = message.read().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
