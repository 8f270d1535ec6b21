//! Seeds as people write them: on the command line, in files, in the drop-in folder. A line a seed; comments begin with `#`, at
//! the beginning of a line or behind white space.

use std::io::{BufRead, BufReader, Read};

use trapline_core::parse_url;
use trapline_crawl::candidate::Prospect;

/// How many seeds are handed over at once.
const BATCH: usize = 1000;

/// So much is read at once: a batch, about.
const BUFFER_BYTES: usize = 65_536;

/// Longer lines are no URLs.
const LINE_BYTES_MAX: usize = 65_536;

/// Reads one seed. A missing scheme is `http`: servers that want another say so, and are believed.
///
/// A URL may have a host of which nobody could ever know an address. Such a line is rather a mistake.
pub(super) fn read(text: &str) -> Result<Prospect, String> {
    if text.starts_with('/') && !text.starts_with("//") || text.starts_with('.') {
        return Err("this is a path and no URL; write it like https://example.org/".to_owned());
    }
    let has_scheme = text.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    });
    if let Some((word, rest)) = text.split_once(':')
        && !has_scheme
        && ["http", "https"].iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
        // There may be a host of that name, with a port.
        && rest.split('/').next().is_none_or(|port| port.parse::<u16>().is_err())
    {
        return Err(match rest.trim_start_matches('/') {
            "" => format!("`{text}` names no host; write it like https://example.org/"),
            host => format!("two slashes follow `{word}:`; did you mean {word}://{host}?"),
        });
    }
    if let Some((word, rest)) = text.split_once(':')
        && !has_scheme
        && !rest.starts_with(|first: char| first.is_ascii_digit())
        && word.bytes().all(|byte| byte.is_ascii_alphabetic())
    {
        return Err(format!("`{word}:` is not fetched; write an http or https URL"));
    }
    let whole = if has_scheme { text.to_owned() } else { format!("http://{text}") };
    let url = parse_url(&whole, None)
        .map_err(|reason| format!("this is no URL: {reason}; write it like https://example.org/"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("`{}:` is not fetched; write an http or https URL", url.scheme()));
    }
    let host = url.host_str().unwrap_or_default();
    if !is_host(host) || url.port() == Some(0) {
        return Err(format!(
            "there can be no server at `{host}{}`; write it like https://example.org/",
            url.port().map_or_else(String::new, |port| format!(":{port}"))
        ));
    }
    Prospect::seed(url.as_str()).ok_or_else(|| "this is no URL".to_owned())
}

/// Whether a host may have an address: an address itself, or a name of labels without odd characters.
fn is_host(host: &str) -> bool {
    let is_label = |label: &str| {
        let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        label.bytes().all(is_usual) && label.bytes().any(|byte| byte.is_ascii_alphanumeric())
    };
    host.starts_with('[') || host.strip_suffix('.').unwrap_or(host).split('.').all(is_label)
}

/// What is in a line: nothing, or a seed.
fn line(text: &str) -> Option<&str> {
    // A `#` within a URL begins a fragment.
    let begins = |(at, _): &(usize, &str)| text[..*at].chars().next_back().is_none_or(char::is_whitespace);
    let end = text.match_indices('#').find(begins).map_or(text.len(), |(at, _)| at);
    Some(text[..end].trim()).filter(|text| !text.is_empty())
}

/// Seeds of a file, in batches. Lines that are none are told of by their number, and the rest goes on.
pub(super) struct SeedFile<R> {
    lines: BufReader<R>,
    number: u64,
    buffer: Vec<u8>,
    /// Somebody may be typing: what has come is not to wait for what may never come.
    waits: bool,
}

/// Some seeds of a file, and what was wrong with other lines.
#[derive(Default)]
pub(super) struct SeedBatch {
    pub(super) seeds: Vec<Prospect>,
    /// Number and complaint.
    pub(super) wrong: Vec<(u64, String)>,
}

impl<R: Read> SeedFile<R> {
    /// A file, which is all there.
    pub(super) fn new(file: R) -> Self {
        let lines = BufReader::with_capacity(BUFFER_BYTES, file);
        Self { lines, number: 0, buffer: Vec::new(), waits: false }
    }

    /// A pipe or a terminal, of which the next line may come much later.
    pub(super) fn of_pipe(pipe: R) -> Self {
        Self { waits: true, ..Self::new(pipe) }
    }

    /// The next batch; None at the end. That of a pipe ends where the next line would have to be waited for.
    pub(super) fn next_batch(&mut self) -> std::io::Result<Option<SeedBatch>> {
        let mut batch = SeedBatch::default();
        while batch.seeds.len() + batch.wrong.len() < BATCH {
            let is_empty = batch.seeds.is_empty() && batch.wrong.is_empty();
            if self.waits && !is_empty && !self.lines.buffer().contains(&b'\n') {
                break;
            }
            self.buffer.clear();
            if read_line(&mut self.lines, &mut self.buffer)? == 0 {
                return Ok((!batch.seeds.is_empty() || !batch.wrong.is_empty()).then_some(batch));
            }
            self.number += 1;
            let bytes = if self.number == 1 {
                self.buffer.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.buffer)
            } else {
                &self.buffer
            };
            let read = if bytes.len() > LINE_BYTES_MAX {
                Err("this line is too long to be a URL".to_owned())
            } else {
                match std::str::from_utf8(bytes).map(line) {
                    Ok(None) => continue,
                    Ok(Some(text)) => read(text),
                    Err(_) => Err("this is not UTF-8".to_owned()),
                }
            };
            match read {
                Ok(seed) => batch.seeds.push(seed),
                Err(complaint) => batch.wrong.push((self.number, complaint)),
            }
        }
        Ok(Some(batch))
    }
}

/// Reads a line, of which a little more than is allowed is kept.
fn read_line(lines: &mut impl BufRead, into: &mut Vec<u8>) -> std::io::Result<usize> {
    let mut total = 0;
    loop {
        let bytes = lines.fill_buf()?;
        if bytes.is_empty() {
            return Ok(total);
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(bytes.len(), |end| end + 1);
        let room = (LINE_BYTES_MAX + 2).saturating_sub(into.len());
        into.extend_from_slice(&bytes[..used.min(room)]);
        lines.consume(used);
        total += used;
        if end.is_some() {
            return Ok(total);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn seeds_need_no_scheme() {
        for (text, url) in [
            ("https://example.org/a", Some("https://example.org/a")),
            ("https://example.org/a?b#c", Some("https://example.org/a?b")),
            ("example.org", Some("http://example.org/")),
            ("example.org:8080/x?y=http://z/", Some("http://example.org:8080/x?y=http://z/")),
            ("//example.org/x", Some("http://example.org/x")),
            ("ftp://example.org/", None),
            ("mailto:a@example.org", None),
            ("localhost:8080/x", Some("http://localhost:8080/x")),
            ("http://", None),
            ("a b", None),
            ("http://[::1]:8080/", Some("http://[::1]:8080/")),
            ("http://127.0.0.1/", Some("http://127.0.0.1/")),
            ("http://a_b.example./", Some("http://a_b.example./")),
            ("http://bücher.example/", Some("http://xn--bcher-kva.example/")),
            ("ht!tp://bad", None),
            ("/relative", None),
            ("./x", None),
            ("a,b", None),
            ("\"http://x.example/\"", None),
            ("http://a..b/", None),
            ("http://-/", None),
            ("http://*.example.org/", None),
            ("http://example.org:0/", None),
        ] {
            let read = read(text).ok().map(|seed| seed.url.to_string());
            // What looks like a user and a password is one.
            assert_eq!(read.as_deref(), url, "{text}");
        }
    }

    #[test]
    fn a_scheme_without_slashes_is_told_what_it_may_mean() {
        for (text, wrong) in [
            ("https:example.org", "two slashes follow `https:`; did you mean https://example.org?"),
            ("HTTP:/example.org/a:b", "two slashes follow `HTTP:`; did you mean HTTP://example.org/a:b?"),
            ("https:127.0.0.1:80/", "two slashes follow `https:`; did you mean https://127.0.0.1:80/?"),
            ("http:", "`http:` names no host; write it like https://example.org/"),
        ] {
            assert_eq!(read(text).unwrap_err(), wrong, "{text}");
        }
        assert_eq!(read("http:8080/x").unwrap().url.as_str(), "http://http:8080/x");
    }

    #[test]
    fn bad_lines_are_told_by_number_and_the_rest_goes_on() {
        let long = "x".repeat(LINE_BYTES_MAX + 1);
        let file = format!("\u{feff}a.example\r\n\n# comment\nftp://b.example/\n{long}\n  c.example  ");
        let mut bytes = file.into_bytes();
        bytes.extend_from_slice(b"\n\xff\xfe\nd.example # mine #1\n \t# x\ne.example/a#b#c\t#d");
        let mut file = SeedFile::new(&bytes[..]);
        let batch = file.next_batch().unwrap().unwrap();
        let urls: Vec<_> = batch.seeds.iter().map(|seed| seed.url.as_str()).collect();
        assert_eq!(
            urls,
            ["http://a.example/", "http://c.example/", "http://d.example/", "http://e.example/a"]
        );
        let wrong: Vec<_> = batch.wrong.iter().map(|(line, what)| format!("{line}: {what}")).collect();
        assert_eq!(
            wrong,
            [
                "4: `ftp:` is not fetched; write an http or https URL",
                "5: this line is too long to be a URL",
                "7: this is not UTF-8"
            ]
        );
        assert!(file.next_batch().unwrap().is_none());
    }

    #[test]
    fn what_has_come_through_a_pipe_waits_for_nothing() {
        // A line, some of the next one, and a pipe that nobody writes to any more.
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"# seeds\na.example\nb.exam").unwrap();
        let mut file = SeedFile::of_pipe(reader);
        let urls = |batch: SeedBatch| batch.seeds.iter().map(|seed| seed.url.to_string()).collect::<Vec<_>>();
        assert_eq!(urls(file.next_batch().unwrap().unwrap()), ["http://a.example/"]);
        writer.write_all(b"ple\nc.example\nd.example").unwrap();
        drop(writer);
        assert_eq!(urls(file.next_batch().unwrap().unwrap()), ["http://b.example/", "http://c.example/"]);
        assert_eq!(urls(file.next_batch().unwrap().unwrap()), ["http://d.example/"]);
        assert!(file.next_batch().unwrap().is_none());
    }

    #[test]
    fn a_file_is_read_in_batches() {
        let text: String = (0..2500).map(|number| format!("h{number}.example\n")).collect();
        let mut file = SeedFile::new(text.as_bytes());
        let mut counts = Vec::new();
        while let Some(batch) = file.next_batch().unwrap() {
            counts.push(batch.seeds.len());
        }
        assert_eq!(counts, [1000, 1000, 500]);
    }
}
