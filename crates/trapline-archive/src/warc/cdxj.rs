//! The index of a WARC file: a line a response, sorted, so that replay tools find a URL without reading the file.
//!
//! `com,example)/page 20260501120000 {"url": …, "mime": …, "status": …, "digest": …, "length": …, "offset": …, "filename": …}`

use serde_json::json;
use trapline_core::{Civil, Timestamp, parse_url};

use crate::digest::Digest;

/// What the index says of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    url: String,
    at: Timestamp,
    mime: String,
    status: Option<u16>,
    digest: Option<Digest>,
    /// It is not all there, so that it is no original of anything.
    truncated: bool,
    pub(super) offset: u64,
    length: u64,
}

impl Entry {
    pub(super) fn new(
        url: &str,
        at: Timestamp,
        (is_revisit, truncated, status, content_type): (bool, bool, Option<u16>, Option<&str>),
        digest: Option<Digest>,
        (offset, length): (u64, u64),
    ) -> Self {
        let mime =
            if is_revisit { "warc/revisit".to_owned() } else { mime(content_type.unwrap_or_default()) };
        Self { url: url.to_owned(), at, mime, status, digest, truncated, offset, length }
    }

    /// Its line, without an end.
    pub(super) fn line(&self, file: &str) -> String {
        let Civil { year, month, day, hour, minute, second, .. } = self.at.into();
        let mut fields = json!({
            "url": self.url,
            "mime": self.mime,
            "length": self.length.to_string(),
            "offset": self.offset.to_string(),
            "filename": file,
            "date": Civil::from(self.at).to_string(),
        });
        if let Some(status) = self.status {
            fields["status"] = status.to_string().into();
        }
        if self.truncated {
            fields["truncated"] = true.into();
        }
        if let Some(digest) = &self.digest {
            fields["digest"] = digest.to_string().into();
        }
        let key = sort_key(&self.url);
        format!("{key} {year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02} {fields}")
    }
}

/// A whole index.
pub(super) fn index(entries: &[Entry], file: &str) -> String {
    let mut lines: Vec<_> = entries.iter().map(|entry| entry.line(file)).collect();
    lines.sort_unstable();
    let mut text = lines.join("\n");
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// The media type alone, or the sign for none.
fn mime(content_type: &str) -> String {
    let mime = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let fits = |c: char| c.is_ascii_graphic() && c != '"';
    if mime.is_empty() || !mime.chars().all(fits) { "unk".to_owned() } else { mime }
}

/// A URL with its host turned around, so that what belongs together stands together: `com,example)/path?query`, in lower case and
/// without `www.`.
fn sort_key(url: &str) -> String {
    let Some(parsed) = parse_url(url, None).ok().filter(url::Url::has_host) else {
        return url.replace([' ', '\n', '\r'], "%20");
    };
    let host = parsed.host_str().unwrap_or_default();
    let mut key = match parsed.host() {
        Some(url::Host::Domain(_)) => {
            let host = host.strip_prefix("www.").unwrap_or(host).trim_end_matches('.');
            host.rsplit('.').collect::<Vec<_>>().join(",")
        }
        _ => host.to_owned(),
    };
    if let Some(port) = parsed.port() {
        key.push_str(&format!(":{port}"));
    }
    key.push(')');
    key.push_str(parsed.path());
    if let Some(query) = parsed.query() {
        key.push('?');
        key.push_str(query);
    }
    key.make_ascii_lowercase();
    key.replace(' ', "%20")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_turned_around() {
        let check = |url: &str, key: &str| assert_eq!(sort_key(url), key);
        check("https://www.Example.org/A/b?C=d", "org,example)/a/b?c=d");
        check("http://example.org:8080/", "org,example:8080)/");
        check("http://127.0.0.1:80/x", "127.0.0.1)/x");
        check("http://[::1]/x", "[::1])/x");
        check("no url\n", "no%20url%20");
    }

    #[test]
    fn a_line_says_where_a_response_is() {
        let digest = Digest::of(&[b"x"]);
        let at = Timestamp::from_millis(951_782_400_123);
        let entry = Entry::new(
            "http://a.example/\"x",
            at,
            (false, false, Some(200), Some("Text/HTML; charset=x")),
            Some(digest),
            (17, 400),
        );
        let line = entry.line("x.warc.gz");
        let (key, fields) = line.split_at(line.find('{').unwrap());
        assert_eq!(key, "example,a)/%22x 20000229000000 ");
        let fields: serde_json::Value = serde_json::from_str(fields).unwrap();
        assert_eq!(fields["url"], "http://a.example/\"x");
        assert_eq!((&fields["mime"], &fields["status"]), (&json!("text/html"), &json!("200")));
        assert_eq!((&fields["offset"], &fields["length"]), (&json!("17"), &json!("400")));
        assert_eq!(fields["digest"], digest.to_string());
        let mime = |content_type| Entry::new("x:", at, (false, true, None, content_type), None, (0, 0)).mime;
        assert_eq!(
            (mime(None), mime(Some("a\nb")), mime(Some(" a/b "))),
            ("unk".into(), "unk".into(), "a/b".into())
        );
    }
}
