//! What a response is: its media type as declared, and as its first bytes say where the declaration is missing or lies
//! (the MIME Sniffing Standard, with one deviation that [`sniff`] names).

use std::borrow::Cow;

/// How many bytes at the beginning decide.
pub const SNIFF_BYTES: usize = 1445;

/// A media type: `text/html; charset=utf-8`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MimeType {
    /// Type and subtype, in lower case: `text/html`.
    pub essence: String,
    /// The first `charset` parameter, as written.
    pub charset: Option<String>,
}

impl MimeType {
    /// Reads the value of a `Content-Type` header. None if it is none.
    ///
    /// ```
    /// use trapline_extract::MimeType;
    ///
    /// let html = MimeType::parse("Text/HTML;Charset=\"utf-8\"").unwrap();
    /// assert_eq!((&html.essence[..], html.charset.as_deref()), ("text/html", Some("utf-8")));
    /// ```
    pub fn parse(value: &str) -> Option<Self> {
        let (essence, mut rest) = value.split_once(';').unwrap_or((value, ""));
        let essence = essence.trim_matches(is_http_space);
        let (kind, subtype) = essence.split_once('/')?;
        if !is_token(kind) || !is_token(subtype) {
            return None;
        }
        let mut charset = None;
        while charset.is_none() && !rest.is_empty() {
            let name_end = rest.find([';', '=']).unwrap_or(rest.len());
            let name = rest[..name_end].trim_start_matches(is_http_space);
            let (value, after) = match rest[name_end..].strip_prefix('=') {
                Some(text) => parameter_value(text),
                None => (Cow::Borrowed(""), rest[name_end..].strip_prefix(';').unwrap_or_default()),
            };
            if name.eq_ignore_ascii_case("charset") && !value.is_empty() {
                charset = Some(value.into_owned());
            }
            rest = after;
        }
        Some(Self { essence: essence.to_ascii_lowercase(), charset })
    }
}

/// The value of a parameter, quoted or not, and what follows its semicolon.
fn parameter_value(text: &str) -> (Cow<'_, str>, &str) {
    let Some(inside) = text.strip_prefix('"') else {
        let (value, rest) = text.split_once(';').unwrap_or((text, ""));
        return (Cow::Borrowed(value.trim_end_matches(is_http_space)), rest);
    };
    let mut value = String::new();
    let mut characters = inside.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => {
                let rest = &inside[at + 1..];
                return (Cow::Owned(value), rest.split_once(';').map_or("", |(_, rest)| rest));
            }
            '\\' => value.push(characters.next().map_or('\\', |(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (Cow::Owned(value), "")
}

fn is_http_space(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' ')
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// What a page's bytes are read as.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Content {
    /// HTML, or XHTML, which is read as if it were HTML.
    Html,
    /// A style sheet.
    Css,
    /// Other text: it has words, but no links.
    Text,
    /// Anything else, of which only the digest is taken.
    Other,
}

impl Content {
    /// What this media type, in lower case and without parameters, is read as.
    pub fn of(essence: &str) -> Self {
        match essence {
            "text/html" | "application/xhtml+xml" => Self::Html,
            "text/css" => Self::Css,
            "application/json" | "application/javascript" | "application/xml" => Self::Text,
            _ if essence.starts_with("text/") || essence.ends_with("+xml") || essence.ends_with("+json") => {
                Self::Text
            }
            _ => Self::Other,
        }
    }

    /// As it is called in output, stable.
    pub fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Css => "css",
            Self::Text => "text",
            Self::Other => "other",
        }
    }
}

/// The media type of a response, from its `Content-Type` header, if any, and its first [`SNIFF_BYTES`] bytes.
///
/// As the MIME Sniffing Standard says: without a type, or with one that says nothing, the bytes decide; plain text that is
/// no text is binary; images, audio and video are what they look like; HTML that looks like a feed is one. Plain text never
/// becomes HTML.
///
/// One deviation: what is declared as text of any kind but begins like a picture, a PDF, an archive or a recording is that.
/// A browser would show rubbish; a crawler would take links from it.
pub fn sniff(content_type: Option<&str>, bytes: &[u8]) -> Cow<'static, str> {
    let bytes = &bytes[..bytes.len().min(SNIFF_BYTES)];
    let declared = content_type.and_then(MimeType::parse).map(|declared| declared.essence);
    let Some(declared) = declared else {
        return Cow::Borrowed(unknown(bytes));
    };
    match &declared[..] {
        "unknown/unknown" | "application/unknown" | "*/*" => Cow::Borrowed(unknown(bytes)),
        "text/plain" if content_type.is_some_and(is_apache_default) => {
            let looks_binary = !has_text_bom(bytes) && bytes.iter().any(|byte| is_binary(*byte));
            if looks_binary {
                Cow::Borrowed(signature(bytes).unwrap_or("application/octet-stream"))
            } else {
                Cow::Borrowed("text/plain")
            }
        }
        "text/html" => {
            let found = signature(bytes).or_else(|| feed(bytes));
            found.map_or(Cow::Owned(declared), Cow::Borrowed)
        }
        essence => {
            let is_media = ["image/", "audio/", "video/"].iter().any(|kind| essence.starts_with(kind));
            let may_be_other = is_media && !is_xml(essence)
                || matches!(Content::of(essence), Content::Css | Content::Html | Content::Text)
                    && !is_xml(essence)
                || essence == "application/ogg";
            match signature(bytes).filter(|_| may_be_other) {
                Some(found) => Cow::Borrowed(found),
                None => Cow::Owned(declared),
            }
        }
    }
}

fn is_xml(essence: &str) -> bool {
    essence.ends_with("+xml") || matches!(essence, "text/xml" | "application/xml")
}

/// Headers that old servers send for everything they do not know.
fn is_apache_default(content_type: &str) -> bool {
    matches!(
        content_type,
        "text/plain"
            | "text/plain; charset=ISO-8859-1"
            | "text/plain; charset=iso-8859-1"
            | "text/plain; charset=UTF-8"
    )
}

/// Of no declared type.
fn unknown(bytes: &[u8]) -> &'static str {
    let start = after_space(bytes);
    if HTML_STARTS.iter().any(|tag| is_tag(start, tag)) || start.starts_with(b"<!--") {
        return "text/html";
    }
    if start.starts_with(b"<?xml") {
        return "text/xml";
    }
    if let Some(found) = signature(bytes) {
        return found;
    }
    if has_text_bom(bytes) || !bytes.iter().any(|byte| is_binary(*byte)) {
        return "text/plain";
    }
    "application/octet-stream"
}

const HTML_STARTS: [&[u8]; 16] = [
    b"<!DOCTYPE HTML",
    b"<HTML",
    b"<HEAD",
    b"<SCRIPT",
    b"<IFRAME",
    b"<H1",
    b"<DIV",
    b"<FONT",
    b"<TABLE",
    b"<A",
    b"<STYLE",
    b"<TITLE",
    b"<B",
    b"<BODY",
    b"<BR",
    b"<P",
];

/// Whether the bytes begin with this tag, in any case, and a byte that ends its name.
fn is_tag(bytes: &[u8], tag: &[u8]) -> bool {
    let start = bytes.get(..tag.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(tag))
        && matches!(bytes.get(tag.len()), Some(b' ' | b'>'))
}

fn after_space(bytes: &[u8]) -> &[u8] {
    let spaces = bytes.iter().take_while(|byte| matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ')).count();
    &bytes[spaces..]
}

fn has_text_bom(bytes: &[u8]) -> bool {
    [&b"\xfe\xff"[..], b"\xff\xfe", b"\xef\xbb\xbf"].iter().any(|bom| bytes.starts_with(bom))
}

/// The standard's binary data bytes.
fn is_binary(byte: u8) -> bool {
    matches!(byte, 0x00..=0x08 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f)
}

/// What these bytes can only be, by how they begin: the tables of the standard (§6), and gaps in them as `None`.
fn signature(bytes: &[u8]) -> Option<&'static str> {
    const PLAIN: [(&[u8], &str); 20] = [
        (b"%PDF-", "application/pdf"),
        (b"%!PS-Adobe-", "application/postscript"),
        (b"\0\0\x01\0", "image/x-icon"),
        (b"\0\0\x02\0", "image/x-icon"),
        (b"BM", "image/bmp"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"ID3", "audio/mpeg"),
        (b"OggS\0", "application/ogg"),
        (b"MThd\0\0\0\x06", "audio/midi"),
        (b"\x1a\x45\xdf\xa3", "video/webm"),
        (b"\x1f\x8b\x08", "application/x-gzip"),
        (b"PK\x03\x04", "application/zip"),
        (b"Rar!\x1a\x07\0", "application/x-rar-compressed"),
        (b"wOFF", "font/woff"),
        (b"wOF2", "font/woff2"),
        (b"OTTO", "font/otf"),
        (b"\0\x01\0\0", "font/ttf"),
    ];
    if let Some((start, found)) = PLAIN.iter().find(|(start, _)| bytes.starts_with(start)) {
        // Three of them are ordinary letters, with which a text may begin too.
        let is_word = matches!(*start, b"BM" | b"ID3" | b"OTTO" | b"wOFF" | b"wOF2");
        if !is_word || bytes.iter().any(|byte| is_binary(*byte)) {
            return Some(found);
        }
    }
    let kind = bytes.get(8..12);
    match bytes.get(..4) {
        Some(b"RIFF") if bytes.get(8..14) == Some(b"WEBPVP") => return Some("image/webp"),
        Some(b"RIFF") if kind == Some(b"AVI ") => return Some("video/avi"),
        Some(b"RIFF") if kind == Some(b"WAVE") => return Some("audio/wave"),
        Some(b"FORM") if kind == Some(b"AIFF") => return Some("audio/aiff"),
        _ => {}
    }
    is_mp4(bytes).then_some("video/mp4")
}

/// The standard's signature for MP4: a box `ftyp` with a brand that begins with `mp4`.
fn is_mp4(bytes: &[u8]) -> bool {
    let Some((size, rest)) = bytes.split_first_chunk::<4>() else { return false };
    let size = u32::from_be_bytes(*size) as usize;
    if !size.is_multiple_of(4) || bytes.len() < size || size < 12 || !rest.starts_with(b"ftyp") {
        return false;
    }
    // The major brand, then, after the version, the compatible ones.
    bytes.get(8..11) == Some(b"mp4")
        || bytes[..size].chunks_exact(4).skip(4).any(|brand| brand.starts_with(b"mp4"))
}

/// Whether what is declared as HTML is a feed.
fn feed(bytes: &[u8]) -> Option<&'static str> {
    let mut rest = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    loop {
        rest = after_space(rest);
        let after = |end: &[u8]| memchr::memmem::find(rest, end).map(|at| &rest[at + end.len()..]);
        rest = if rest.starts_with(b"<!--") {
            after(b"-->")?
        } else if rest.starts_with(b"<!") {
            after(b">")?
        } else if rest.starts_with(b"<?") {
            after(b"?>")?
        } else if rest.starts_with(b"<rss") {
            return Some("application/rss+xml");
        } else if rest.starts_with(b"<feed") {
            return Some("application/atom+xml");
        } else {
            let is_rdf = rest.starts_with(b"<rdf:RDF")
                && [&b"http://purl.org/rss/1.0/"[..], b"http://www.w3.org/1999/02/22-rdf-syntax-ns#"]
                    .iter()
                    .all(|name| memchr::memmem::find(rest, name).is_some());
            return is_rdf.then_some("application/rss+xml");
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_leniently_but_not_invented() {
        let check = |value: &str, essence: &str, charset: Option<&str>| {
            let found = MimeType::parse(value);
            let found = found.as_ref().map(|found| (&found.essence[..], found.charset.as_deref()));
            assert_eq!(found, (!essence.is_empty()).then_some((essence, charset)), "{value}");
        };
        check("text/html", "text/html", None);
        check(" TEXT/HTML ; charset = x ; Charset=\"a\\\"b\" ", "text/html", Some("a\"b"));
        check("text/html;charset=utf-8;charset=x", "text/html", Some("utf-8"));
        check("text/html;;x;y=\"z;charset=no\";charset=yes", "text/html", Some("yes"));
        check("text/html;charset=\"unclosed", "text/html", Some("unclosed"));
        check("text/html; charset=", "text/html", None);
        check("text", "", None);
        check("text/", "", None);
        check("text/ht ml", "", None);
        check("", "", None);
        check("tést/html", "", None);
    }

    #[test]
    fn bytes_decide_where_the_header_says_nothing() {
        let check = |content_type: Option<&str>, bytes: &[u8], expected: &str| {
            assert_eq!(sniff(content_type, bytes), expected, "{content_type:?} {bytes:?}");
        };
        check(None, b" \n<!doctype HTML>", "text/html");
        check(None, b"<html>", "text/html");
        check(None, b"<htmlx>", "text/plain");
        check(None, b"<!-- x", "text/html");
        check(None, b"<?xml version", "text/xml");
        check(None, b"%PDF-1.7", "application/pdf");
        check(None, b"\x89PNG\r\n\x1a\n", "image/png");
        check(None, b"RIFF....WEBPVP8", "image/webp");
        check(None, b"\0\0\0\x14ftypisom\0\0\0\0mp41", "video/mp4");
        check(None, b"\0\0\0\x14ftypisom\0\0\0\0avc1", "application/octet-stream");
        check(None, b"hello", "text/plain");
        check(None, b"", "text/plain");
        check(None, b"he\0llo", "application/octet-stream");
        check(None, b"\xff\xfeh\0", "text/plain");
        check(None, b"BMW builds cars", "text/plain");
        check(Some("*/*"), b"<p>", "text/html");
        check(Some("nonsense"), b"<p>", "text/html");
    }

    #[test]
    fn headers_that_lie_are_not_believed() {
        let check = |content_type: &str, bytes: &[u8], expected: &str| {
            assert_eq!(sniff(Some(content_type), bytes), expected, "{content_type} {bytes:?}");
        };
        check("text/html", b"<p>", "text/html");
        check("text/html", b"%PDF-1.4", "application/pdf");
        check("text/html; charset=utf-8", b"\x1f\x8b\x08", "application/x-gzip");
        check("text/html", b"<?xml version='1.0'?><!-- c --><rss>", "application/rss+xml");
        check("text/html", b"\xef\xbb\xbf<feed xmlns=", "application/atom+xml");
        check(
            "text/html",
            b"<rdf:RDF a='http://purl.org/rss/1.0/' b='http://www.w3.org/1999/02/22-rdf-syntax-ns#'",
            "application/rss+xml",
        );
        check("text/html", b"<rdf:RDF", "text/html");
        check("image/png", b"GIF89a", "image/gif");
        check("image/svg+xml", b"<svg>", "image/svg+xml");
        check("text/plain", b"a\0b", "application/octet-stream");
        check("text/plain", b"<html>", "text/plain");
        check("text/css", b"GIF89a", "image/gif");
        check("text/css", b"a{}", "text/css");
        check("application/octet-stream", b"<html>", "application/octet-stream");
        check("application/xml", b"%PDF-", "application/xml");
        check("Text/CSS;x", b"", "text/css");
    }
}
