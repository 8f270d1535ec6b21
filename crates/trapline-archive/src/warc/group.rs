//! The records of one visit, which count together: the request, the response or why it is not written again, and metadata, which comes
//! last. A group without its end does not count.

use std::fmt::Write;
use std::net::IpAddr;
use std::sync::Arc;

use trapline_core::Timestamp;
use trapline_crawl::fetch::Visit;
use trapline_crawl::ports::ArchiveError;
use trapline_crawl::{RawExchange, Response};

use super::cdxj::Entry;
use super::gzip::Gzips;
use super::record::{Record, RecordId, push_line};
use super::scan::RecordCounts;
use super::seen::{Original, Seen};
use crate::digest::Digest;

const REQUEST: &str = "application/http;msgtype=request";
const RESPONSE: &str = "application/http;msgtype=response";
const SAME: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
const NOT_MODIFIED: &str = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";

/// What is written of a visit.
pub(super) struct Exchange {
    url: String,
    at: Timestamp,
    response: Arc<Response>,
    /// What the metadata says: names and values.
    more: Vec<(&'static str, String)>,
}

impl Exchange {
    /// What came of a visit; None if nothing did.
    pub(super) fn of(visit: &Visit) -> Result<Option<Self>, ArchiveError> {
        let Some(response) = visit.response.as_ref().filter(|response| response.status.is_some()) else {
            return Ok(None);
        };
        if response.raw.is_none() {
            return Err(ArchiveError(
                "the fetcher does not keep responses as they came, which a WARC file needs: set `keep_raw` in its options"
                    .to_owned(),
            ));
        }
        let request = &visit.lease.request;
        let mut more = vec![("fetchTimeMs", response.times.total.as_millis().to_string())];
        more.extend(request.via.clone().map(|via| ("via", via)));
        if !request.hop_path.is_empty() {
            more.push(("hopsFromSeed", request.hop_path.clone()));
        }
        more.extend(request.seed.clone().map(|seed| ("seed", seed)));
        if let Some(page) = &visit.page {
            more.push(("mediaType", page.mime.clone()));
            more.push(("charset", page.charset.name.to_owned()));
        }
        Ok(Some(Self {
            url: visit.url().as_str().to_owned(),
            at: visit.started,
            response: Arc::clone(response),
            more,
        }))
    }

    /// How much there is to compress, about.
    pub(super) fn bytes(&self) -> usize {
        self.response.raw.as_ref().map_or(0, |raw| raw.body.len())
    }
}

/// The records of a visit as gzip members, not yet anywhere.
pub(super) struct Group {
    pub(super) bytes: Vec<u8>,
    pub(super) counts: RecordCounts,
    /// Of the response, with its place in `bytes`.
    pub(super) entry: Entry,
    /// A body that was not seen before.
    pub(super) novel: Option<(Digest, Original)>,
}

impl Group {
    pub(super) fn of(exchange: &Exchange, seen: &Seen, gzips: &Gzips) -> Result<Self, ArchiveError> {
        let Exchange { url, at, response, more } = exchange;
        let raw = response.raw.as_ref().ok_or_else(|| ArchiveError("there is no response".to_owned()))?;
        let [request_id, response_id, metadata_id] = RecordId::draw()?;
        let mut bytes = Vec::new();
        let mut counts = RecordCounts::default();
        let address = raw.server.as_ref().map(IpAddr::to_string);
        let common = |record: &mut Record<'_>| {
            record.url("WARC-Target-URI", url);
            if let Some(address) = &address {
                record.field("WARC-IP-Address", address);
            }
            if let Some(protocol) = response.protocol.filter(|_| !raw.exact) {
                record.field("WARC-Protocol", if protocol == "HTTP/2" { "h2" } else { "http/1.1" });
            }
        };
        if !raw.request.is_empty() {
            let mut record = Record::new("request", &request_id, *at, REQUEST, [&raw.request, b""]);
            common(&mut record);
            record.field("WARC-Concurrent-To", response_id.as_str());
            record.write(gzips, &mut bytes)?;
            counts.request += 1;
        }

        let head = head(raw);
        let payload = Digest::of(&[&raw.body]);
        let cut = truncated(response, raw);
        let whole = !raw.body.is_empty() && cut.is_none() && !response.not_modified;
        let original = if whole { seen.original(&payload) } else { None };
        let offset = bytes.len() as u64;
        let is_revisit = original.is_some() || response.not_modified;
        let block: [&[u8]; 2] = if is_revisit { [&head, b""] } else { [&head, &raw.body] };
        let kind = if is_revisit { "revisit" } else { "response" };
        let mut record = Record::new(kind, &response_id, *at, RESPONSE, block);
        common(&mut record);
        if let Some(Original { url, at }) = &original {
            record.field("WARC-Profile", SAME);
            record.url("WARC-Refers-To-Target-URI", url);
            record.field("WARC-Refers-To-Date", at);
        } else if response.not_modified {
            record.field("WARC-Profile", NOT_MODIFIED);
            record.url("WARC-Refers-To-Target-URI", url);
        }
        if !response.not_modified {
            record.field("WARC-Payload-Digest", &payload.to_string());
        }
        if let Some(why) = cut {
            record.field("WARC-Truncated", why);
        }
        record.write(gzips, &mut bytes)?;
        let entry = Entry::new(
            url,
            *at,
            (is_revisit, cut.is_some(), response.status, response.header("content-type")),
            (!response.not_modified).then_some(payload),
            (offset, bytes.len() as u64 - offset),
        );
        if is_revisit {
            counts.revisit += 1;
        } else {
            counts.response += 1;
        }

        let mut fields = String::new();
        for (name, value) in more {
            let _ = write!(fields, "{name}: ");
            push_line(&mut fields, value);
            fields.push_str("\r\n");
        }
        let mut record =
            Record::new("metadata", &metadata_id, *at, "application/warc-fields", [fields.as_bytes(), b""]);
        record.url("WARC-Target-URI", url);
        record.field("WARC-Concurrent-To", response_id.as_str());
        record.write(gzips, &mut bytes)?;
        counts.metadata += 1;
        let novel = (whole && original.is_none()).then(|| (payload, Original::new(url, *at)));
        Ok(Self { bytes, counts, entry, novel })
    }
}

/// The head as it came. One of HTTP/2 was none; it is written as one of HTTP/1.1, which is what readers know.
fn head(raw: &RawExchange) -> std::borrow::Cow<'_, [u8]> {
    match raw.head.strip_prefix(b"HTTP/2 ").filter(|_| !raw.exact) {
        Some(rest) => [b"HTTP/1.1 ", rest].concat().into(),
        None => (&*raw.head).into(),
    }
}

/// Why a response is not all there, in the words of the standard.
fn truncated(response: &Response, raw: &RawExchange) -> Option<&'static str> {
    match response.truncated {
        None if raw.complete => None,
        None | Some("encoded_bytes" | "decoded_bytes" | "ratio") => Some("length"),
        Some("total_time" | "idle_time" | "rate") => Some("time"),
        Some("length" | "chunks" | "stream") => Some("disconnect"),
        Some(_) => Some("unspecified"),
    }
}
