//! Sitemaps and feeds in XML: the children of `url`, `sitemap`, `item` and `entry`, by their local names.
//!
//! There is no tree and no recursion: an entry begins with its tag, and only tags directly inside it count, so that the
//! `image:loc` of a page's picture is not taken for the page. No document type is read and no entity resolved but XML's five.
//! One piece of markup or text takes a bounded buffer; what is longer is broken.

use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

use super::collect::{Collection, Found};
use super::text::Text;
use super::{SitemapFaultKind, SitemapKind};

/// Bytes of one tag, comment or text.
const MARKUP_BYTES_MAX: usize = 128 << 10;

/// How often reading goes on behind broken XML.
const BREAKS_MAX: u32 = 1_000;

/// How many open elements the reader may remember before it is made anew: it keeps their names, and we have no use for them.
const OPEN_MAX: u32 = 1_000;

/// Bytes that are kept of a value that is no address.
const VALUE_BYTES_MAX: usize = 256;

pub(super) fn read<'a>(text: Text<'a>, found: &mut Collection<'_>) -> Text<'a> {
    let mut reader = reader(text);
    let mut buffer = Vec::new();
    let mut state = State::new(found);
    let (mut breaks, mut opened) = (0, 0);
    while !state.found.is_full() {
        buffer.clear();
        reader.get_mut().allow(MARKUP_BYTES_MAX);
        let before = reader.get_ref().position();
        let mut broken = false;
        match reader.read_event_into(&mut buffer) {
            Ok(Event::Eof) => {}
            Ok(event) => {
                opened += u32::from(matches!(event, Event::Start(_)));
                state.event(before, &event);
            }
            Err(_) => broken = true,
        }
        let text = reader.get_mut();
        if broken || text.is_held_back() {
            if text.is_at_end() {
                // Whatever it was, it has no end.
                state.found.fault(before, SitemapFaultKind::BrokenXml);
                break;
            }
            breaks += 1;
            if breaks > BREAKS_MAX {
                state.found.fault(before, SitemapFaultKind::TooBroken);
                state.found.cut();
                break;
            }
            state.found.fault(before, SitemapFaultKind::BrokenXml);
            if text.position() == before {
                text.advance(1);
            }
            text.skip_to_markup();
            opened = OPEN_MAX;
        } else if text.is_at_end() {
            break;
        }
        if opened >= OPEN_MAX {
            reader = self::reader(reader.into_inner());
            opened = 0;
        }
    }
    state.end(reader.get_ref().position());
    reader.into_inner()
}

fn reader(text: Text<'_>) -> Reader<Text<'_>> {
    let mut reader = Reader::from_reader(text);
    let config = reader.config_mut();
    config.allow_dangling_amp = true;
    config.allow_unmatched_ends = true;
    config.check_comments = false;
    config.check_end_names = false;
    reader
}

/// What a child of an entry is to us.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Url,
    /// An address that counts only if there is no better one.
    Guid,
    LastMod,
    /// A date that counts only if there is no better one.
    Published,
    ChangeFreq,
    Priority,
}

struct State<'a, 'b> {
    found: &'a mut Collection<'b>,
    /// The entry at hand.
    entry: Option<Found>,
    guid: String,
    published: String,
    /// Open elements between the entry and here that are not ours.
    depth: u32,
    /// Whose text is being read.
    field: Option<Field>,
    /// Whether there was an element yet.
    rooted: bool,
}

impl<'a, 'b> State<'a, 'b> {
    fn new(found: &'a mut Collection<'b>) -> Self {
        Self {
            found,
            entry: None,
            guid: String::new(),
            published: String::new(),
            depth: 0,
            field: None,
            rooted: false,
        }
    }

    fn event(&mut self, at: u64, event: &Event<'_>) {
        match event {
            Event::Start(tag) => self.start(at, tag, false),
            Event::Empty(tag) => self.start(at, tag, true),
            Event::End(tag) => self.close(at, tag.local_name().as_ref()),
            Event::Text(text) => self.text(text),
            Event::CData(text) => self.text(text),
            Event::GeneralRef(reference) => self.reference(at, reference),
            Event::DocType(_) => self.found.fault(at, SitemapFaultKind::DocType),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::Eof => {}
        }
    }

    fn start(&mut self, at: u64, tag: &BytesStart<'_>, empty: bool) {
        let name = tag.local_name();
        let name = name.as_ref();
        if !self.rooted {
            self.rooted = true;
            self.root(at, name);
        }
        if let Some(kind) = entry_kind(name)
            && !(self.entry.is_some() && self.depth > 0)
        {
            // The one before has no end.
            self.end(at);
            if self.found.kind == SitemapKind::Unknown {
                self.found.kind = kind;
            }
            self.entry = Some(Found::default());
            if empty {
                self.end(at);
            }
            return;
        }
        if self.entry.is_none() {
            return;
        }
        // A value has no elements. What comes inside it, or after it had no end, is looked at as if it were beside it.
        self.field = None;
        if self.depth == 0
            && let Some(field) = self.field_of(tag, name)
        {
            self.field = Some(field).filter(|_| !empty);
        } else if !empty {
            self.depth += 1;
        }
    }

    fn root(&mut self, at: u64, name: &str) {
        self.found.kind = match name {
            "urlset" => SitemapKind::UrlSet,
            "sitemapindex" => SitemapKind::Index,
            "rss" | "RDF" => SitemapKind::Rss,
            "feed" => SitemapKind::Atom,
            _ => {
                if entry_kind(name).is_none() {
                    self.found.fault(at, SitemapFaultKind::UnknownRoot);
                }
                SitemapKind::Unknown
            }
        };
    }

    fn field_of(&mut self, tag: &BytesStart<'_>, name: &str) -> Option<Field> {
        match (name, self.found.kind) {
            ("loc", SitemapKind::UrlSet | SitemapKind::Index) => Some(Field::Url),
            ("lastmod", SitemapKind::UrlSet | SitemapKind::Index) => Some(Field::LastMod),
            ("changefreq", SitemapKind::UrlSet) => Some(Field::ChangeFreq),
            ("priority", SitemapKind::UrlSet) => Some(Field::Priority),
            // With an address in it, it is Atom's link in another feed.
            ("link", SitemapKind::Rss) if attribute(tag, "href").is_none() => Some(Field::Url),
            ("guid", SitemapKind::Rss)
                if !attribute(tag, "isPermaLink").is_some_and(|value| value.eq_ignore_ascii_case("false")) =>
            {
                Some(Field::Guid)
            }
            ("pubDate" | "date", SitemapKind::Rss) => Some(Field::LastMod),
            ("link", SitemapKind::Atom) => {
                self.link(tag);
                None
            }
            ("updated" | "modified", SitemapKind::Atom) => Some(Field::LastMod),
            ("published" | "issued", SitemapKind::Atom) => Some(Field::Published),
            _ => None,
        }
    }

    /// Atom's link: the first one that leads to the page itself.
    fn link(&mut self, tag: &BytesStart<'_>) {
        let itself = attribute(tag, "rel").is_none_or(|rel| rel.trim().eq_ignore_ascii_case("alternate"));
        let max = self.found.limits.url_bytes_max;
        if let Some(entry) = &mut self.entry
            && itself
            && entry.url.is_empty()
            && let Some(href) = attribute(tag, "href")
        {
            push(&mut entry.url, &href, max);
        }
    }

    fn text(&mut self, text: &str) {
        let max = match self.field {
            Some(Field::Url | Field::Guid) => self.found.limits.url_bytes_max,
            _ => VALUE_BYTES_MAX,
        };
        let (Some(entry), Some(field)) = (&mut self.entry, self.field) else { return };
        let value = match field {
            Field::Url => &mut entry.url,
            Field::Guid => &mut self.guid,
            Field::LastMod => &mut entry.lastmod,
            Field::Published => &mut self.published,
            Field::ChangeFreq => &mut entry.changefreq,
            Field::Priority => &mut entry.priority,
        };
        let text = if value.is_empty() { text.trim_start() } else { text };
        push(value, text, max);
    }

    fn reference(&mut self, at: u64, reference: &BytesRef<'_>) {
        if self.field.is_none() {
            return;
        }
        if let Ok(Some(character)) = reference.resolve_char_ref() {
            return self.text(character.encode_utf8(&mut [0; 4]));
        }
        match resolve_xml_entity(reference) {
            Some(text) => self.text(text),
            None => {
                self.found.fault(at, SitemapFaultKind::Entity);
                self.text(&format!("&{}", &**reference));
                self.text(";");
            }
        }
    }

    fn close(&mut self, at: u64, name: &str) {
        if self.entry.is_none() {
            return;
        }
        if entry_kind(name).is_some() && self.depth == 0 || is_root(name) {
            return self.end(at);
        }
        if self.field.take().is_none() {
            self.depth = self.depth.saturating_sub(1);
        }
    }

    /// Ends the entry at hand, if there is one.
    fn end(&mut self, at: u64) {
        self.depth = 0;
        self.field = None;
        let (guid, published) = (std::mem::take(&mut self.guid), std::mem::take(&mut self.published));
        let Some(mut entry) = self.entry.take() else { return };
        if entry.url.trim().is_empty() {
            // One that stands for an address stands on its own.
            entry.absolute = !guid.is_empty();
            entry.url = guid;
        }
        if entry.lastmod.is_empty() {
            entry.lastmod = published;
        }
        self.found.add(at, entry);
    }
}

/// Adds to a value, up to one byte more than it may have at least, so that it can be told that it is too long.
fn push(value: &mut String, text: &str, max: usize) {
    let room = (max + 1).saturating_sub(value.len());
    let end = text.char_indices().map(|(place, character)| place + character.len_utf8()).find(|end| *end >= room);
    value.push_str(if room == 0 { "" } else { &text[..end.unwrap_or(text.len())] });
}

fn entry_kind(name: &str) -> Option<SitemapKind> {
    match name {
        "url" => Some(SitemapKind::UrlSet),
        "sitemap" => Some(SitemapKind::Index),
        "item" => Some(SitemapKind::Rss),
        "entry" => Some(SitemapKind::Atom),
        _ => None,
    }
}

fn is_root(name: &str) -> bool {
    matches!(name, "urlset" | "sitemapindex" | "rss" | "RDF" | "feed")
}

/// An attribute's value by its local name, with XML's own entities resolved.
fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let attributes = tag.html_attributes();
    let mut named = attributes.filter_map(Result::ok).filter(|attribute| attribute.key.local_name().as_ref() == name);
    let value = named.next()?.value;
    Some(quick_xml::escape::unescape(&value).map_or_else(|_| value.to_string(), |text| text.into_owned()))
}
