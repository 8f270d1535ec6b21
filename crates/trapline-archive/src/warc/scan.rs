//! Reading a WARC file from end to end, member by member: what is whole, and what is not.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::AddAssign;
use std::path::Path;

use flate2::bufread::GzDecoder;
use trapline_core::{Timestamp, parse_utc};

use super::cdxj::Entry;
use crate::digest::Digest;

/// So much of a record is looked at for its heads.
const HEADS_BYTES_MAX: usize = 256 << 10;

/// How many records there are, by type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// What files say about themselves.
    pub warcinfo: u64,
    /// Requests.
    pub request: u64,
    /// Responses.
    pub response: u64,
    /// Responses whose body was written before, or not sent again.
    pub revisit: u64,
    /// What else is known of visits.
    pub metadata: u64,
    /// Records of other types.
    pub others: u64,
}

impl RecordCounts {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.warcinfo + self.request + self.response + self.revisit + self.metadata + self.others
    }
}

impl AddAssign for RecordCounts {
    fn add_assign(&mut self, more: Self) {
        self.warcinfo += more.warcinfo;
        self.request += more.request;
        self.response += more.response;
        self.revisit += more.revisit;
        self.metadata += more.metadata;
        self.others += more.others;
    }
}

/// What is in a WARC file.
#[derive(Clone, Debug, Default)]
pub struct WarcScan {
    /// Of the records that count.
    pub counts: RecordCounts,
    /// Up to here all is whole: the end of the last visit.
    pub whole_bytes: u64,
    /// Why it is not whole to the end, for people.
    pub torn: Option<String>,
    pub(super) entries: Vec<Entry>,
}

/// Reads a WARC file from end to end.
pub fn scan_warc(path: &Path) -> io::Result<WarcScan> {
    let mut input = Counted { input: BufReader::with_capacity(128 << 10, File::open(path)?), bytes: 0 };
    let mut scan = WarcScan::default();
    let (mut counts, mut pending) = (RecordCounts::default(), None);
    let mut buffer = vec![0; 64 << 10];
    loop {
        let begin = input.bytes;
        if input.fill_buf()?.is_empty() {
            break;
        }
        let record = match read_record(&mut input, &mut buffer) {
            Ok(Ok(record)) => record,
            Ok(Err(why)) => {
                scan.torn = Some(format!("the record at byte {begin} is no record: {why}"));
                return Ok(scan);
            }
            // What cannot be read at all is another matter than what is not whole.
            Err(error)
                if !matches!(
                    error.kind(),
                    io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData
                ) =>
            {
                return Err(error);
            }
            Err(error) => {
                scan.torn = Some(format!("the record at byte {begin} is not whole: {error}"));
                return Ok(scan);
            }
        };
        match record.kind.as_str() {
            "warcinfo" => counts.warcinfo += 1,
            "request" => counts.request += 1,
            "response" => counts.response += 1,
            "revisit" => counts.revisit += 1,
            "metadata" => counts.metadata += 1,
            _ => counts.others += 1,
        }
        if matches!(record.kind.as_str(), "response" | "revisit") {
            pending = Some(record.entry(begin, input.bytes - begin));
        }
        // The records of a visit end with its metadata.
        if matches!(record.kind.as_str(), "warcinfo" | "metadata") {
            scan.entries.extend(pending.take());
            scan.counts = counts;
            scan.whole_bytes = input.bytes;
        }
    }
    if scan.whole_bytes < input.bytes {
        scan.torn = Some(format!("the visit at byte {} has no end", scan.whole_bytes));
    }
    Ok(scan)
}

/// What is needed of a record.
struct Head {
    kind: String,
    url: String,
    at: Timestamp,
    digest: Option<Digest>,
    truncated: bool,
    status: Option<u16>,
    content_type: Option<String>,
}

impl Head {
    fn entry(&self, offset: u64, length: u64) -> Entry {
        let is_revisit = self.kind == "revisit";
        let about = (is_revisit, self.truncated, self.status, self.content_type.as_deref());
        Entry::new(&self.url, self.at, about, self.digest, (offset, length))
    }
}

/// Reads one member to its end. What is wrong with its content is told; what is wrong with gzip is an error.
fn read_record(input: &mut impl BufRead, buffer: &mut [u8]) -> io::Result<Result<Head, String>> {
    let mut member = GzDecoder::new(input);
    let (mut heads, mut bytes) = (Vec::new(), 0_u64);
    loop {
        let read = member.read(buffer)?;
        if read == 0 {
            break;
        }
        bytes += read as u64;
        let room = HEADS_BYTES_MAX.saturating_sub(heads.len()).min(read);
        heads.extend_from_slice(&buffer[..room]);
    }
    Ok(parse(&heads, bytes))
}

fn parse(heads: &[u8], bytes: u64) -> Result<Head, String> {
    let (head, block) = split_head(heads).ok_or("it has no head")?;
    let head = String::from_utf8_lossy(head);
    let mut lines = head.lines();
    if !lines.next().is_some_and(|line| line.starts_with("WARC/1.")) {
        return Err("it does not begin with WARC/1".to_owned());
    }
    let fields: Vec<_> = lines.filter_map(|line| line.split_once(':')).collect();
    let field = |name: &str| {
        fields.iter().find(|(its, _)| its.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    let length: u64 =
        field("Content-Length").and_then(|length| length.parse().ok()).ok_or("it has no length")?;
    let head_bytes = heads.len() as u64 - block.len() as u64;
    if head_bytes.saturating_add(length).saturating_add(4) != bytes {
        return Err("its length is another than it says".to_owned());
    }
    let mut parsed = Head {
        kind: field("WARC-Type").ok_or("it has no type")?.to_owned(),
        url: field("WARC-Target-URI").unwrap_or_default().to_owned(),
        at: field("WARC-Date").and_then(parse_utc).ok_or("it has no date")?,
        digest: field("WARC-Payload-Digest").and_then(Digest::parse),
        truncated: field("WARC-Truncated").is_some(),
        status: None,
        content_type: None,
    };
    if matches!(parsed.kind.as_str(), "response" | "revisit") {
        let http = split_head(block).map_or(block, |(head, _)| head);
        let http = String::from_utf8_lossy(http);
        let mut lines = http.lines();
        let status = lines.next().and_then(|line| line.split_whitespace().nth(1));
        parsed.status = status.and_then(|status| status.parse().ok());
        let mut headers = lines.filter_map(|line| line.split_once(':'));
        let content_type = headers.find(|(name, _)| name.trim().eq_ignore_ascii_case("content-type"));
        parsed.content_type = content_type.map(|(_, value)| value.trim().to_owned());
    }
    Ok(parsed)
}

/// A head without the empty line that ends it, and the rest.
fn split_head(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let crlf = bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| (at, at + 4));
    let lf = bytes.windows(2).position(|two| two == b"\n\n").map(|at| (at, at + 2));
    let (end, rest) = crlf.into_iter().chain(lf).min()?;
    Some((&bytes[..end], &bytes[rest..]))
}

/// Counts what was read.
struct Counted<R> {
    input: R,
    bytes: u64,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(into)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        self.input.consume(bytes);
    }
}
