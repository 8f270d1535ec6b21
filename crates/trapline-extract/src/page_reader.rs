//! Reads a response piece by piece, as it arrives. Where the pieces are cut makes no difference to what is found.

use encoding_rs::{Decoder, UTF_8};
use url::Url;

use crate::charset::{Charset, CharsetSource, Guess, declared};
use crate::fault::FaultKind;
use crate::html::{Harvest, HtmlReader, refresh_target};
use crate::limits::Limits;
use crate::link::{Alternate, Link, LinkKind, kind_of_rel, rel_tokens};
use crate::link_header::header_links;
use crate::mime::{Content, MimeType, SNIFF_BYTES, sniff};
use crate::page::{Head, Page};
use crate::references::Reference;
use crate::resolve::Resolver;

/// Text is decoded in steps of so many bytes.
const STEP_BYTES: usize = 16 << 10;

/// A response that is being read.
///
/// ```
/// use trapline_core::parse_url;
/// use trapline_extract::{Head, Limits, PageReader};
///
/// let url = parse_url("https://example.com/", None)?;
/// let mut reader = PageReader::new(&url, &Head::default(), &Limits::default());
/// reader.feed(b"<a hr");
/// reader.feed(b"ef=x>");
/// assert_eq!(reader.finish().links[0].url, "https://example.com/x");
/// # Ok::<(), url::ParseError>(())
/// ```
#[derive(Debug)]
pub struct PageReader {
    url: Url,
    content_type: Option<String>,
    http_label: Option<String>,
    hasher: Box<blake3::Hasher>,
    body_bytes: u64,
    stage: Stage,
    /// Bytes that wait: for more of the beginning, or for a guess.
    waiting: Vec<u8>,
    /// Room for a step of decoded text.
    decoded: String,
    mime: String,
    content: Content,
    charset: Charset,
    had_errors: bool,
    limits: Limits,
    sink: TextSink,
}

/// How far we are with the bytes.
enum Stage {
    /// Waiting for enough of the beginning to know type and encoding.
    Beginning,
    /// Nothing was declared, and all so far was ASCII.
    Ascii,
    /// Waiting for enough to guess.
    Guessing(Guess),
    Decoding(Box<Decoder>),
    /// Nothing to decode.
    Opaque,
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Beginning => "Beginning",
            Self::Ascii => "Ascii",
            Self::Guessing(_) => "Guessing",
            Self::Decoding(_) => "Decoding",
            Self::Opaque => "Opaque",
        })
    }
}

/// Who takes the decoded text.
#[derive(Debug)]
struct TextSink {
    html: HtmlReader,
    content: Content,
    /// A style sheet as far as it is looked at.
    css: String,
    css_is_cut: bool,
    css_bytes_max: usize,
}

impl TextSink {
    fn feed(&mut self, text: &str) {
        match self.content {
            Content::Html => self.html.feed(text),
            Content::Text => self.html.harvest.words.text(text),
            Content::Css => {
                let room = self.css_bytes_max - self.css.len();
                if !self.css_is_cut {
                    self.css.push_str(&text[..text.floor_char_boundary(room)]);
                    self.css_is_cut = text.len() > room;
                }
            }
            Content::Other => {}
        }
    }
}

impl PageReader {
    /// Begins to read a response of this address.
    pub fn new(url: &Url, head: &Head<'_>, limits: &Limits) -> Self {
        let mut harvest = Harvest::new(limits);
        for value in &head.link {
            add_header_links(value, &mut harvest);
        }
        if let Some(target) = head.refresh.and_then(refresh_target) {
            harvest.references.add(header_reference(target, "refresh", LinkKind::Redirect));
        }
        for value in &head.x_robots_tag {
            if !harvest.robots.header(value, limits.facts_max) {
                harvest.references.faults.count(FaultKind::FactsCut, 1);
            }
        }
        if let Some(language) = head.content_language {
            harvest.weak_language(language);
        }
        let declared = head.content_type.and_then(MimeType::parse);
        Self {
            url: url.clone(),
            content_type: head.content_type.map(str::to_owned),
            http_label: declared.and_then(|declared| declared.charset),
            hasher: Box::default(),
            body_bytes: 0,
            stage: Stage::Beginning,
            waiting: Vec::new(),
            decoded: String::new(),
            mime: String::new(),
            content: Content::Other,
            charset: Charset { name: UTF_8.name(), source: CharsetSource::Default },
            had_errors: false,
            limits: limits.clone(),
            sink: TextSink {
                html: HtmlReader::new(harvest),
                content: Content::Other,
                css: String::new(),
                css_is_cut: false,
                css_bytes_max: limits.style_bytes_max,
            },
        }
    }

    /// Reads on.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.body_bytes += bytes.len() as u64;
        if !matches!(self.stage, Stage::Beginning) {
            return self.text(bytes);
        }
        if self.waiting.is_empty() && bytes.len() >= SNIFF_BYTES {
            self.begin(bytes);
            return self.text(bytes);
        }
        let (needed, rest) = bytes.split_at(bytes.len().min(SNIFF_BYTES - self.waiting.len()));
        self.waiting.extend_from_slice(needed);
        if self.waiting.len() == SNIFF_BYTES {
            let waiting = std::mem::take(&mut self.waiting);
            self.begin(&waiting);
            self.text(&waiting);
            self.text(rest);
        }
    }

    /// How many bytes are held at the moment: what waits to be understood, and the references and facts so far. Bounded by
    /// the limits, whatever was fed.
    pub fn held_bytes(&self) -> usize {
        let bytes = self.waiting.capacity() + self.decoded.capacity();
        bytes + self.sink.css.capacity() + self.sink.html.held_bytes()
    }

    /// All was fed: what was found.
    pub fn finish(mut self) -> Page {
        if matches!(self.stage, Stage::Beginning) {
            let waiting = std::mem::take(&mut self.waiting);
            self.begin(&waiting);
            self.text(&waiting);
        }
        if let Stage::Guessing(guess) = &mut self.stage {
            let (encoding, source) = guess.finish(true);
            self.decode_waiting(encoding, source);
        }
        if matches!(self.stage, Stage::Decoding(_)) {
            self.decode(b"", true);
        }
        self.page()
    }

    /// Finds out type and encoding from the beginning, which is all there is if it is short.
    fn begin(&mut self, head: &[u8]) {
        let head = &head[..head.len().min(SNIFF_BYTES)];
        let mime = sniff(self.content_type.as_deref(), head);
        let declared_type = self.content_type.as_deref().and_then(MimeType::parse);
        let faults = &mut self.sink.html.harvest.references.faults;
        if declared_type.is_some_and(|declared| declared.essence != *mime) {
            faults.count(FaultKind::WrongType, 1);
        }
        let is_unknown = |label: &&str| encoding_rs::Encoding::for_label(label.as_bytes()).is_none();
        if self.http_label.as_deref().filter(is_unknown).is_some() {
            faults.count(FaultKind::UnknownCharset, 1);
        }
        self.content = Content::of(&mime);
        self.mime = mime.into_owned();
        self.sink.content = self.content;
        if self.content == Content::Other {
            self.stage = Stage::Opaque;
            return;
        }
        let is_html = self.content == Content::Html;
        match declared(self.http_label.as_deref(), head, is_html) {
            Some((encoding, source)) => {
                self.charset = Charset { name: encoding.name(), source };
                self.stage = Stage::Decoding(Box::new(encoding.new_decoder()));
            }
            None => self.stage = Stage::Ascii,
        }
    }

    /// Bytes of which type and encoding are known, or about to be.
    fn text(&mut self, bytes: &[u8]) {
        match &mut self.stage {
            Stage::Beginning | Stage::Opaque => {}
            Stage::Decoding(_) => self.decode(bytes, false),
            Stage::Ascii => {
                let ascii = Guess::ascii_length(bytes);
                let (plain, rest) = bytes.split_at(ascii);
                if let Ok(text) = std::str::from_utf8(plain) {
                    self.sink.feed(text);
                }
                if !rest.is_empty() {
                    self.stage = Stage::Guessing(Guess::default());
                    self.text(rest);
                }
            }
            Stage::Guessing(guess) => {
                if guess.feed(bytes) {
                    let (encoding, source) = guess.finish(false);
                    self.decode_waiting(encoding, source);
                    self.decode(bytes, false);
                } else {
                    self.waiting.extend_from_slice(bytes);
                }
            }
        }
    }

    fn decode_waiting(&mut self, encoding: &'static encoding_rs::Encoding, source: CharsetSource) {
        self.charset = Charset { name: encoding.name(), source };
        self.stage = Stage::Decoding(Box::new(encoding.new_decoder_without_bom_handling()));
        let waiting = std::mem::take(&mut self.waiting);
        self.decode(&waiting, false);
    }

    fn decode(&mut self, mut bytes: &[u8], last: bool) {
        let Stage::Decoding(decoder) = &mut self.stage else { return };
        let text = &mut self.decoded;
        text.clear();
        text.reserve(STEP_BYTES);
        loop {
            text.clear();
            let (result, read, had_errors) = decoder.decode_to_string(bytes, text, last);
            self.had_errors |= had_errors;
            if !text.is_empty() {
                self.sink.feed(text);
            }
            bytes = &bytes[read..];
            if result == encoding_rs::CoderResult::InputEmpty {
                return;
            }
        }
    }

    fn page(self) -> Page {
        let TextSink { html, css, css_is_cut, .. } = self.sink;
        let mut harvest = html.finish();
        if self.content == Content::Css {
            harvest.references.css(&css, "css", None);
            harvest.references.faults.count(FaultKind::StylesCut, u64::from(css_is_cut));
        }
        let resolver = Resolver::new(&self.url, harvest.base.as_deref());
        // Headers know nothing of what the page calls its base.
        let header_resolver = Resolver::new(&self.url, None);
        let (text, found) = harvest.references.take();
        let mut faults = harvest.references.faults;
        let mut links = Vec::with_capacity(found.len());
        let mut room_bytes = self.limits.links_bytes_max;
        for found in found {
            if room_bytes == 0 {
                faults.count(FaultKind::LinksLeftOut, 1);
                continue;
            }
            let resolver = if found.tag == "header" { &header_resolver } else { &resolver };
            let Some(url) = resolver.resolve(found.reference(&text)) else {
                faults.count(FaultKind::Unresolvable, 1);
                continue;
            };
            let Some(room) = room_bytes.checked_sub(url.len()) else {
                faults.count(FaultKind::LinksLeftOut, 1);
                room_bytes = 0;
                continue;
            };
            room_bytes = room;
            let (rel, hreflang) = found.more.map_or((None, None), |more| *more);
            links.push(Link {
                url,
                tag: found.tag,
                attribute: found.attribute,
                rel,
                hreflang,
                kind: found.kind,
            });
        }
        faults.count(FaultKind::TextCut, u64::from(harvest.words.is_cut));
        faults.count(FaultKind::Undecodable, u64::from(self.had_errors));
        let (canonical, alternates) = relations(&links, &self.limits, &mut faults);
        let text_bytes = harvest.words.text_bytes;
        Page {
            base: resolver.base().clone(),
            mime: self.mime,
            content: self.content,
            charset: self.charset,
            links,
            title: harvest.title.filter(|title| !title.is_empty()),
            description: harvest.description,
            language: harvest.language,
            canonical,
            robots: harvest.robots,
            open_graph: harvest.open_graph,
            json_ld: harvest.json_ld,
            alternates,
            simhash: harvest.words.finish(),
            text_bytes,
            digest: *self.hasher.finalize().as_bytes(),
            body_bytes: self.body_bytes,
            faults: faults.into_vec(),
        }
    }
}

/// What `link` elements and `Link` headers say about the page itself.
fn relations(
    links: &[Link],
    limits: &Limits,
    faults: &mut crate::fault::Faults,
) -> (Option<String>, Vec<Alternate>) {
    let mut canonical = None;
    let mut alternates = Vec::new();
    for link in links.iter().filter(|link| link.rel.is_some() && matches!(link.tag, "link" | "header")) {
        if canonical.is_none() && link.has_rel("canonical") {
            canonical = Some(link.url.clone());
        }
        let Some(hreflang) = link.hreflang.as_ref().filter(|_| link.has_rel("alternate")) else { continue };
        if alternates.len() < limits.facts_max {
            alternates.push(Alternate { hreflang: hreflang.clone(), url: link.url.clone() });
        } else {
            faults.count(FaultKind::FactsCut, 1);
        }
    }
    (canonical, alternates)
}

fn add_header_links(value: &str, harvest: &mut Harvest) {
    // A link with an anchor is one of something else.
    for link in header_links(value).into_iter().filter(|link| link.anchor.is_none()) {
        let rel = rel_tokens(&link.rel);
        let Some(kind) = kind_of_rel(rel.as_deref().unwrap_or_default()) else { continue };
        let reference =
            Reference { rel, hreflang: link.hreflang, ..header_reference(&link.reference, "link", kind) };
        harvest.references.add(reference);
    }
}

fn header_reference<'r>(reference: &'r str, name: &'static str, kind: LinkKind) -> Reference<'r> {
    Reference { reference, tag: "header", attribute: name, kind, rel: None, hreflang: None }
}
