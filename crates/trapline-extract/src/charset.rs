//! Which encoding a page's bytes are in: its byte order mark, then the HTTP header, then what the page says of itself in
//! its first bytes, then a guess from the bytes. The encodings are those of the Encoding Standard, so UTF-7 is none.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// How many bytes at the beginning of a page may say what encoding it is in.
pub const PRESCAN_BYTES: usize = 1024;

/// How many bytes are looked at for a guess, counted from the first that is not ASCII.
pub(crate) const GUESS_BYTES: usize = 1 << 16;

/// Who said so.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum CharsetSource {
    /// A byte order mark.
    Bom,
    /// The `Content-Type` header.
    Http,
    /// The page itself: `meta`, the XML declaration, `@charset`.
    Document,
    /// A guess from the bytes.
    Guess,
    /// Nobody: all of it is ASCII, or there is no text.
    Default,
}

impl CharsetSource {
    /// As it is called in output, stable.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bom => "bom",
            Self::Http => "http",
            Self::Document => "document",
            Self::Guess => "guess",
            Self::Default => "default",
        }
    }
}

/// An encoding and who said so.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Charset {
    /// The encoding's name in the Encoding Standard: `UTF-8`, `windows-1252`.
    pub name: &'static str,
    /// Who said so.
    pub source: CharsetSource,
}

impl Charset {
    /// The encoding of a whole HTML page. `http_label` is the `charset` of its `Content-Type`.
    ///
    /// ```
    /// use trapline_extract::{Charset, CharsetSource};
    ///
    /// let page = "<meta charset=koi8-r>Привет";
    /// let charset = Charset::of_html(None, page.as_bytes());
    /// assert_eq!((charset.name, charset.source), ("KOI8-R", CharsetSource::Document));
    /// ```
    pub fn of_html(http_label: Option<&str>, bytes: &[u8]) -> Self {
        let (encoding, source) = declared(http_label, bytes, true).unwrap_or_else(|| {
            let mut guess = Guess::default();
            let is_enough = guess.feed(&bytes[Guess::ascii_length(bytes)..]);
            guess.finish(!is_enough)
        });
        Self { name: encoding.name(), source }
    }
}

/// The encoding that somebody declared. `bytes` are the first ones, at least [`PRESCAN_BYTES`] if there are as many.
pub(crate) fn declared(
    http_label: Option<&str>,
    bytes: &[u8],
    is_html: bool,
) -> Option<(&'static Encoding, CharsetSource)> {
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return Some((encoding, CharsetSource::Bom));
    }
    if let Some(encoding) = http_label.and_then(|label| Encoding::for_label(label.as_bytes())) {
        return Some((encoding, CharsetSource::Http));
    }
    let head = &bytes[..bytes.len().min(PRESCAN_BYTES)];
    let found = if is_html { prescan(head) } else { at_charset(head) };
    found.map(|encoding| (encoding, CharsetSource::Document))
}

/// The guess, for pages that declare nothing. What is ASCII to the end needs none.
#[derive(Default)]
pub(crate) struct Guess {
    /// Made when the first byte comes that is not ASCII: most pages never need one.
    detector: Option<Box<EncodingDetector>>,
    seen_bytes: usize,
}

impl Guess {
    /// How many of these bytes mean the same in every encoding that could be guessed.
    pub(crate) fn ascii_length(bytes: &[u8]) -> usize {
        let ascii = Encoding::ascii_valid_up_to(bytes);
        // An escape begins the other characters of ISO-2022-JP.
        memchr::memchr(0x1b, &bytes[..ascii]).unwrap_or(ascii)
    }

    /// Takes bytes from the first that is not ASCII on. True if there were enough.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> bool {
        let room = GUESS_BYTES - self.seen_bytes;
        let bytes = &bytes[..bytes.len().min(room)];
        if self.detector.is_none() && Self::ascii_length(bytes) == bytes.len() {
            return false;
        }
        self.seen_bytes += bytes.len();
        let detector =
            self.detector.get_or_insert_with(|| Box::new(EncodingDetector::new(Iso2022JpDetection::Allow)));
        detector.feed(bytes, false);
        self.seen_bytes >= GUESS_BYTES
    }

    /// The guess. `is_all` says that no more bytes would have come.
    pub(crate) fn finish(&mut self, is_all: bool) -> (&'static Encoding, CharsetSource) {
        let Some(mut detector) = self.detector.take() else {
            return (UTF_8, CharsetSource::Default);
        };
        if is_all {
            detector.feed(b"", true);
        }
        (detector.guess(None, Utf8Detection::Allow), CharsetSource::Guess)
    }
}

/// `@charset "…";` at the very beginning of a style sheet, to the byte.
fn at_charset(bytes: &[u8]) -> Option<&'static Encoding> {
    let rest = bytes.strip_prefix(b"@charset \"")?;
    let end = memchr::memchr(b'"', rest)?;
    if rest.get(end + 1) != Some(&b';') {
        return None;
    }
    Encoding::for_label(&rest[..end]).map(usable)
}

/// A page that says in ASCII that it is UTF-16 is not.
fn usable(encoding: &'static Encoding) -> &'static Encoding {
    if encoding == UTF_16BE || encoding == UTF_16LE {
        UTF_8
    } else if encoding == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        encoding
    }
}

/// The HTML Standard's prescan of a byte stream to determine its encoding.
fn prescan(bytes: &[u8]) -> Option<&'static Encoding> {
    if bytes.starts_with(b"<\0?\0x\0") {
        return Some(UTF_16LE);
    }
    if bytes.starts_with(b"\0<\0?\0x") {
        return Some(UTF_16BE);
    }
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        at += memchr::memchr(b'<', rest)?;
        let rest = &bytes[at..];
        if rest.starts_with(b"<!--") {
            // The two dashes of the start may be those of the end.
            at += 2 + memchr::memmem::find(&rest[2..], b"-->")? + 3;
        } else if rest.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"<meta"))
            && rest.get(5).is_some_and(|byte| is_space(*byte) || *byte == b'/')
        {
            let (found, end) = meta(bytes, at + 5)?;
            if found.is_some() {
                return found;
            }
            at = end;
        } else {
            let is_end = rest.get(1) == Some(&b'/');
            match rest.get(1 + usize::from(is_end)) {
                Some(byte) if byte.is_ascii_alphabetic() => {
                    let name = rest.iter().position(|byte| is_space(*byte) || *byte == b'>')?;
                    at += name;
                    while let Some((_, _, end)) = attribute(bytes, at)? {
                        at = end;
                    }
                    at += 1;
                }
                _ if matches!(rest.get(1), Some(b'!' | b'/' | b'?')) => {
                    at += memchr::memchr(b'>', rest)? + 1;
                }
                _ => at += 1,
            }
        }
    }
    xml_declaration(bytes)
}

/// Reads the attributes of a `meta` from `start` on: the encoding it names, if any, and where it ends. None if the bytes end
/// before it does.
fn meta(bytes: &[u8], start: usize) -> Option<(Option<&'static Encoding>, usize)> {
    let mut at = start;
    let mut names: Vec<Vec<u8>> = Vec::new();
    let (mut got_pragma, mut need_pragma, mut charset) = (false, None, None);
    while let Some((name, value, end)) = attribute(bytes, at)? {
        at = end;
        if names.contains(&name) {
            continue;
        }
        match &name[..] {
            b"http-equiv" => got_pragma |= value == b"content-type",
            b"content" if charset.is_none() => {
                if let Some(label) = charset_in_content(&value) {
                    charset = Some(Encoding::for_label(label));
                    need_pragma = Some(true);
                }
            }
            b"charset" => {
                charset = Some(Encoding::for_label(&value));
                need_pragma = Some(false);
            }
            _ => {}
        }
        names.push(name);
    }
    let counts = need_pragma.is_some_and(|needed| !needed || got_pragma);
    Some((charset.flatten().filter(|_| counts).map(usable), at))
}

/// The next attribute of a tag, in lower case, and where it ends. None inside if there is none before the tag ends; None
/// outside if the bytes end first.
#[expect(clippy::type_complexity, reason = "two kinds of nothing, and one place that reads them")]
fn attribute(bytes: &[u8], start: usize) -> Option<Option<(Vec<u8>, Vec<u8>, usize)>> {
    let mut at = start;
    while is_space(*bytes.get(at)?) || bytes[at] == b'/' {
        at += 1;
    }
    if bytes[at] == b'>' {
        return Some(None);
    }
    let name_start = at;
    at += 1;
    while !matches!(bytes.get(at)?, b'=' | b'/' | b'>') && !is_space(bytes[at]) {
        at += 1;
    }
    let name = bytes[name_start..at].to_ascii_lowercase();
    while is_space(*bytes.get(at)?) {
        at += 1;
    }
    if bytes[at] != b'=' {
        return Some(Some((name, Vec::new(), at)));
    }
    at += 1;
    while is_space(*bytes.get(at)?) {
        at += 1;
    }
    match bytes[at] {
        quote @ (b'"' | b'\'') => {
            at += 1;
            let length = memchr::memchr(quote, &bytes[at..])?;
            Some(Some((name, bytes[at..at + length].to_ascii_lowercase(), at + length + 1)))
        }
        b'>' => Some(Some((name, Vec::new(), at))),
        _ => {
            let value_start = at;
            while *bytes.get(at)? != b'>' && !is_space(bytes[at]) {
                at += 1;
            }
            Some(Some((name, bytes[value_start..at].to_ascii_lowercase(), at)))
        }
    }
}

/// The label in `text/html; charset=…`, in lower case.
fn charset_in_content(content: &[u8]) -> Option<&[u8]> {
    let mut rest = content;
    loop {
        rest = &rest[memchr::memmem::find(rest, b"charset")? + "charset".len()..];
        let after = trim_start(rest);
        let Some(value) = after.strip_prefix(b"=") else { continue };
        let value = trim_start(value);
        return match value.first()? {
            quote @ (b'"' | b'\'') => {
                let inside = &value[1..];
                memchr::memchr(*quote, inside).map(|end| &inside[..end])
            }
            _ => {
                let end = value.iter().position(|byte| is_space(*byte) || *byte == b';');
                Some(&value[..end.unwrap_or(value.len())])
            }
        };
    }
}

/// The encoding of an XML declaration, which pages have that were XHTML once.
fn xml_declaration(bytes: &[u8]) -> Option<&'static Encoding> {
    let rest = bytes.strip_prefix(b"<?xml")?;
    let rest = &rest[..memchr::memchr(b'>', rest)?];
    let mut rest = &rest[memchr::memmem::find(rest, b"encoding")? + "encoding".len()..];
    let trim = |bytes: &[u8]| bytes.iter().take_while(|byte| **byte <= b' ').count();
    rest = &rest[trim(rest)..];
    rest = rest.strip_prefix(b"=")?;
    rest = &rest[trim(rest)..];
    let (quote, inside) = rest.split_first()?;
    if !matches!(quote, b'"' | b'\'') {
        return None;
    }
    let label = &inside[..memchr::memchr(*quote, inside)?];
    if label.iter().any(|byte| *byte <= b' ') {
        return None;
    }
    Encoding::for_label(label).map(usable)
}

fn trim_start(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.iter().take_while(|byte| is_space(**byte)).count()..]
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(http: Option<&str>, bytes: &[u8], name: &'static str, source: CharsetSource) {
        assert_eq!(Charset::of_html(http, bytes), Charset { name, source }, "{http:?} {bytes:?}");
    }

    #[test]
    fn bom_then_http_then_document_then_guess() {
        use CharsetSource::{Bom, Default, Document, Guess, Http};
        let meta = b"<meta charset=koi8-r>\xe9";
        check(Some("latin1"), b"\xef\xbb\xbf<meta charset=koi8-r>", "UTF-8", Bom);
        check(Some("utf-8"), b"\xff\xfea\0", "UTF-16LE", Bom);
        check(None, b"\xfe\xff\0a", "UTF-16BE", Bom);
        check(Some("Latin1"), meta, "windows-1252", Http);
        check(Some("utf-16"), b"a\0", "UTF-16LE", Http);
        check(Some("utf-7"), meta, "KOI8-R", Document);
        check(None, meta, "KOI8-R", Document);
        check(None, "Grüße aus Österreich, schöne Häuser".as_bytes(), "UTF-8", Guess);
        check(None, b"Gr\xfc\xdfe aus \xd6sterreich, sch\xf6ne H\xe4user", "windows-1252", Guess);
        check(None, "Привет, это страница на русском языке".as_bytes(), "UTF-8", Guess);
        check(
            None,
            b"\xcf\xf0\xe8\xe2\xe5\xf2, \xfd\xf2\xee \xf1\xf2\xf0\xe0\xed\xe8\xf6\xe0",
            "windows-1251",
            Guess,
        );
        check(None, b"only ASCII", "UTF-8", Default);
        check(None, b"", "UTF-8", Default);
        check(None, b"\x1b$B$3$s$K$A$O\x1b(B", "ISO-2022-JP", Guess);
    }

    #[test]
    fn the_prescan_reads_what_the_standard_reads() {
        let found = |html: &str| prescan(html.as_bytes()).map_or("", Encoding::name);
        let check = |html: &str, expected: &str| assert_eq!(found(html), expected, "{html}");
        check("<meta charset='big5'>", "Big5");
        check("<META CharSet = gbk />", "GBK");
        check("<meta http-equiv=Content-Type content='text/html; charset=shift_jis'>", "Shift_JIS");
        check("<meta content='text/html; charset=\"euc-kr\"' http-equiv=content-type>", "EUC-KR");
        check("<meta content='text/html; charset=euc-kr'>", "");
        check("<meta http-equiv=content-type content='charset charset=euc-jp;x'>", "EUC-JP");
        check("<!-- <meta charset=gbk> --><meta charset=big5>", "Big5");
        check("<!--><meta charset=gbk>", "GBK");
        check("<a title='<meta charset=gbk>'><meta charset=big5>", "Big5");
        check("</a x='<meta charset=gbk>'><meta charset=big5>", "Big5");
        check("<? x ><! y ></ z ><meta charset=big5>", "Big5");
        check("<meta charset=utf-16le>", "UTF-8");
        check("<meta charset=x-user-defined>", "windows-1252");
        check("<meta charset=nonsense><meta charset=gbk>", "GBK");
        check("<meta charset=utf-7>", "");
        check("<metax charset=gbk>", "");
        check("<meta charset=gbk", "");
        check("<meta charset='gbk", "");
        check("<?xml version='1.0' encoding='gbk'?><p>", "GBK");
        check("<?xml encoding='gb k'?>", "");
        check("<meta charset=a charset=gbk>", "");
        check("<", "");
        check("<meta ", "");
        assert_eq!(prescan(b"<\0?\0x\0m\0"), Some(UTF_16LE));
    }

    #[test]
    fn style_sheets_say_it_to_the_byte() {
        assert_eq!(at_charset(b"@charset \"gbk\"; a{}").map(Encoding::name), Some("GBK"));
        assert_eq!(at_charset(b"@charset 'gbk';"), None);
        assert_eq!(at_charset(b" @charset \"gbk\";"), None);
        assert_eq!(at_charset(b"@charset \"utf-16\";"), Some(UTF_8));
        assert_eq!(at_charset(b"@charset \"gbk\""), None);
    }
}
