//! The crawl log: a line for each settlement, in the columns of Heritrix's `crawl.log`, for the tools that read those.
//!
//! ```text
//! 2026-05-01T12:00:00.000Z   200       1299 http://a.test/b L http://a.test/ text/html #000 20260501115959900+95 blake3:… http://a.test/ -
//! ```
//!
//! It is written with one call a batch and never read. Whoever rotates it moves it away or truncates it: the next batch goes to a
//! new file, or to the beginning of this one.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use trapline_core::Timestamp;
use trapline_crawl::PageLine;
use trapline_crawl::ports::SettledVisit;
use trapline_frontier::Outcome;

use crate::ended::complain_of_crawl;
use crate::moment;

/// How many hops are written out; of longer ways it is said how many more there were.
const HOPS_MAX: usize = 50;

/// A crawl log.
pub(super) struct CrawlLog {
    path: PathBuf,
    open: Mutex<Open>,
}

struct Open {
    file: File,
    /// The last line was not written to its end.
    is_torn: bool,
    /// Somebody was told that it cannot be written.
    is_told: bool,
}

impl CrawlLog {
    /// Opens a log to append to it.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let open = Open::new(path).map_err(|error| {
            format!("cannot open the crawl log {}: {error}; choose another with --crawl-log", path.display())
        })?;
        Ok(Self { path: path.to_owned(), open: Mutex::new(open) })
    }

    /// Writes a line for each visit. Trouble is told once, and does not stop the crawl.
    pub(super) fn write(&self, now: Timestamp, visits: &[SettledVisit<'_>]) {
        let lines: String = visits.iter().filter_map(|visit| line(now, visit)).collect();
        if lines.is_empty() {
            return;
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match open.write(&self.path, &lines) {
            Ok(()) => open.is_told = false,
            Err(error) if !open.is_told => {
                open.is_told = true;
                complain_of_crawl(&format!(
                    "cannot write to the crawl log {}: {error}; the crawl goes on without",
                    self.path.display()
                ));
            }
            Err(_) => {}
        }
    }
}

impl Open {
    fn new(path: &Path) -> std::io::Result<Self> {
        let mut file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
        let is_file = file.metadata()?.is_file();
        let mut last = [b'\n'];
        if is_file && file.seek(SeekFrom::End(-1)).is_ok() {
            file.read_exact(&mut last)?;
        }
        Ok(Self { file, is_torn: last != [b'\n'], is_told: false })
    }

    fn write(&mut self, path: &Path, lines: &str) -> std::io::Result<()> {
        let is_it = |about: std::fs::Metadata, own: &std::fs::Metadata| {
            (about.dev(), about.ino()) == (own.dev(), own.ino())
        };
        let own = self.file.metadata()?;
        if !std::fs::metadata(path).is_ok_and(|about| is_it(about, &own)) {
            *self = Self { is_told: self.is_told, ..Self::new(path)? };
        }
        if self.is_torn {
            self.file.write_all(b"\n")?;
        }
        // What is not there in the end was torn.
        self.is_torn = true;
        self.file.write_all(lines.as_bytes())?;
        self.is_torn = false;
        Ok(())
    }
}

/// The line of a settlement; None for what was given back.
fn line(now: Timestamp, visit: &SettledVisit<'_>) -> Option<String> {
    if matches!(visit.outcome, Outcome::Release | Outcome::Renew { .. }) {
        return None;
    }
    let (request, page) = (visit.request, visit.results.page.as_ref());
    let size = page.filter(|page| page.status.is_some()).map(|page| page.encoded_bytes.to_string());
    let took = page.map(|page| format!("{}+{}", digits(page.at), page.times.total.as_millis()));
    let digest = page.and_then(|page| page.digest).map(|digest| {
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("blake3:{hex}")
    });
    Some(format!(
        "{} {:>5} {:>10} {} {} {} {} #000 {} {} {} {}\n",
        moment::write(now),
        code(visit),
        size.as_deref().unwrap_or("-"),
        field(&request.url),
        field(&hops(&request.hop_path)),
        field(request.via.as_deref().unwrap_or_default()),
        field(page.and_then(|page| page.mime.as_deref()).unwrap_or("unknown")),
        took.as_deref().unwrap_or("-"),
        digest.as_deref().unwrap_or("-"),
        field(request.seed.as_deref().unwrap_or_default()),
        field(&annotations(visit)),
    ))
}

/// The status, or Heritrix's own number for why there is none.
fn code(visit: &SettledVisit<'_>) -> i32 {
    if let Some(page) = &visit.results.page {
        if let Some(status) = page.status {
            return status.into();
        }
        if let Some(error) = &page.error {
            return of_error(error);
        }
    }
    match visit.outcome {
        // Only robots.txt makes a visit wait before there was a request.
        Outcome::Retry { .. } => -61,
        Outcome::Disregard { reason } | Outcome::Dead { reason } => match reason_word(reason) {
            "robots" => -9998,
            "scope" => -5000,
            "robots.txt cannot be had" => -61,
            "panic" => -5,
            "malformed" => -7,
            _ => -5002,
        },
        Outcome::Done { .. } | Outcome::Release | Outcome::Renew { .. } => 0,
    }
}

fn reason_word(reason: &str) -> &str {
    reason.split_once(": ").map_or(reason, |(word, _)| word)
}

fn of_error(kind: &str) -> i32 {
    match kind {
        kind if kind.starts_with("dns_") => -6,
        "connect_timeout" | "tls_timeout" | "dial_timeout" | "proxy_timeout" | "first_byte_timeout"
        | "total_timeout" => -4,
        kind if ["connect_", "tls_", "proxy_"].iter().any(|begin| kind.starts_with(begin)) => -2,
        "scheme_refused" | "request_refused" => -7,
        "address_refused" | "port_refused" | "redirect_refused" => -5001,
        "address_busy" => -5002,
        // The connection was there and broke, or what came was not HTTP.
        _ => -3,
    }
}

/// What else there is to say, as Heritrix says it where it has a word.
fn annotations(visit: &SettledVisit<'_>) -> String {
    let mut said = Vec::new();
    match visit.outcome {
        Outcome::Retry { .. } => said.push("retry".to_owned()),
        Outcome::Disregard { reason } => said.push(format!("disregarded:{}", reason_word(reason))),
        Outcome::Dead { .. } => said.push("dead".to_owned()),
        _ => {}
    }
    if let Some(page) = &visit.results.page {
        said.extend(of_page(page));
    }
    said.join(",")
}

fn of_page(page: &PageLine) -> impl Iterator<Item = String> {
    let tries = (page.retries > 0).then(|| format!("{}t", page.retries + 1));
    let truncated = page.truncated.map(|why| match why {
        "total_time" | "idle_time" | "rate" => "timeTrunc".to_owned(),
        _ => "lenTrunc".to_owned(),
    });
    let same = page.not_modified.then(|| "notModified".to_owned());
    let error = page.error.as_ref().map(|error| format!("error:{error}"));
    [tries, truncated, same, error].into_iter().flatten()
}

/// The way from a seed, its last hops if it is long.
fn hops(path: &str) -> String {
    let count = path.chars().count();
    if count <= HOPS_MAX {
        return path.to_owned();
    }
    let last: String = path.chars().skip(count - HOPS_MAX).collect();
    format!("{}+{last}", count - HOPS_MAX)
}

/// A value that stays in its column, whatever a server wrote.
fn field(value: &str) -> String {
    if value.is_empty() {
        return "-".to_owned();
    }
    let mut written = String::with_capacity(value.len());
    for sign in value.chars() {
        if sign.is_whitespace() || sign.is_control() {
            let mut bytes = [0; 4];
            sign.encode_utf8(&mut bytes).bytes().for_each(|byte| written.push_str(&format!("%{byte:02X}")));
        } else {
            written.push(sign);
        }
    }
    written
}

/// A time in 17 digits.
fn digits(at: Timestamp) -> String {
    moment::write(at).chars().filter(char::is_ascii_digit).collect()
}

#[cfg(test)]
mod tests {
    use trapline_core::Request;
    use trapline_crawl::ports::Results;

    use super::*;

    fn told(outcome: &Outcome, request: &Request) -> String {
        let results = Results::default();
        let visit = SettledVisit { request, key: "a.test", outcome, results: &results };
        line(Timestamp::from_millis(1_777_636_800_000), &visit).unwrap_or_default()
    }

    #[test]
    fn hostile_values_stay_in_their_columns() {
        let request = Request {
            via: Some("http://b.test/\u{2028}x y\t".to_owned()),
            seed: Some(String::new()),
            hop_path: "L".repeat(62),
            ..Request::get("http://a.test/\r\n2026-01-01T00:00:00.000Z   200 fake")
        };
        let line = told(&Outcome::Disregard { reason: "robots: Disallow: /\n".to_owned() }, &request);
        assert_eq!(
            line,
            format!(
                "2026-05-01T12:00:00.000Z -9998          - http://a.test/%0D%0A2026-01-01T00:00:00.000Z%20%20%20200%20fake \
                 12+{} http://b.test/%E2%80%A8x%20y%09 unknown #000 - - - disregarded:robots\n",
                "L".repeat(50)
            )
        );
    }

    #[test]
    fn what_has_no_status_has_heritrixs_number() {
        let request = Request::get("http://a.test/");
        let code = |outcome: &Outcome| {
            told(outcome, &request).split_whitespace().nth(1).map(str::to_owned).unwrap_or_default()
        };
        let dead = |reason: &str| code(&Outcome::Dead { reason: reason.to_owned() });
        assert_eq!(code(&Outcome::Disregard { reason: "scope: reject the rest".to_owned() }), "-5000");
        assert_eq!(code(&Outcome::Retry { at: Timestamp::ZERO }), "-61");
        assert_eq!(dead("robots.txt cannot be had: it is away"), "-61");
        assert_eq!(dead("panic: in the processor `x`: y"), "-5");
        assert_eq!(dead("malformed: the URL cannot be read"), "-7");
        assert_eq!(told(&Outcome::Release, &request), "");
        for (kind, expected) in [
            ("dns_no_such_name", -6),
            ("connect_refused", -2),
            ("connect_timeout", -4),
            ("reset", -3),
            ("first_byte_timeout", -4),
            ("scheme_refused", -7),
            ("address_refused", -5001),
            ("tls_expired", -2),
        ] {
            assert_eq!(of_error(kind), expected, "{kind}");
        }
    }

    #[test]
    fn a_log_that_was_moved_away_or_torn_goes_on_with_whole_lines() {
        let folder = std::env::temp_dir().join(format!("trapline-crawl-log-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("crawl.log");
        std::fs::write(&path, "torn").unwrap();
        let log = CrawlLog::open(&path).unwrap();
        let request = Request::get("http://a.test/");
        let results = Results::default();
        let outcome = Outcome::Disregard { reason: "robots".to_owned() };
        let visit = SettledVisit { request: &request, key: "a.test", outcome: &outcome, results: &results };
        let lines = |path: &Path| std::fs::read_to_string(path).unwrap().lines().count();
        log.write(Timestamp::ZERO, &[visit, visit]);
        assert_eq!(lines(&path), 3);
        let moved = folder.join("crawl.log.1");
        std::fs::rename(&path, &moved).unwrap();
        log.write(Timestamp::ZERO, &[visit]);
        assert_eq!((lines(&path), lines(&moved)), (1, 3));
        // As logrotate's copytruncate does.
        File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        log.write(Timestamp::ZERO, &[visit]);
        assert_eq!(lines(&path), 1);
        assert!(std::fs::read_to_string(&path).unwrap().starts_with("1970-"), "no hole at its beginning");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
