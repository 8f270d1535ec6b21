//! Reads the tags and texts of a page into its harvest. References are kept as they were written and resolved at the end:
//! the first `base` of a page counts for what stands before it too.

use super::attributes::{Attributes, Wanted};
use super::harvest::Harvest;
use super::scanner::{Scanner, Sink, TagLimits, TextKind};
use super::tag::Tag;
use super::visible::add_text;
use crate::fault::FaultKind;

impl Sink for Harvest {
    #[inline]
    fn wanted(&self, tag: Tag) -> Wanted {
        match tag {
            Tag::A
            | Tag::Area
            | Tag::Audio
            | Tag::Base
            | Tag::Body
            | Tag::Embed
            | Tag::Form
            | Tag::Frame
            | Tag::Html
            | Tag::Iframe
            | Tag::Image
            | Tag::Img
            | Tag::Input
            | Tag::Link
            | Tag::Meta
            | Tag::Object
            | Tag::Script
            | Tag::Source
            | Tag::Track
            | Tag::Video => Wanted::All,
            _ => Wanted::Style,
        }
    }

    #[inline]
    fn start_tag(&mut self, tag: Tag, attributes: &Attributes<'_>, is_html: bool) {
        if !tag.is_inside_words() {
            self.words.end_word();
        }
        if is_html {
            // Whatever was hidden in a drawing is over with the drawing.
            self.hidden_in = None;
            self.html_tag(tag, attributes);
        } else {
            match tag {
                Tag::A => self.anchor(tag, attributes, false),
                Tag::Image | Tag::Use => {
                    let name = if attributes.raw("href").is_some() { "href" } else { "xlink:href" };
                    if attributes.raw(name).is_some_and(|reference| !reference.starts_with('#')) {
                        self.embed(tag, attributes, name);
                    }
                }
                Tag::Style | Tag::Script => self.hidden_in = Some(tag),
                _ => {}
            }
        }
        if !attributes.is_empty()
            && let Some(style) = attributes.raw("style")
            && memchr::memchr(b'(', style.as_bytes()).is_some()
            && let Some(style) = attributes.get("style")
        {
            let name = if tag == Tag::Other { "*" } else { tag.name() };
            self.references.css(&style, name, Some("style"));
        }
    }

    #[inline]
    fn end_tag(&mut self, tag: Tag) {
        if !tag.is_inside_words() {
            self.words.end_word();
        }
        if self.collecting == Some(tag) {
            self.end_collecting();
        }
        if self.hidden_in == Some(tag) {
            self.hidden_in = None;
        }
        if tag == Tag::Template {
            self.template_depth = self.template_depth.saturating_sub(1);
        }
    }

    #[inline]
    fn text(&mut self, text: &str, kind: TextKind) {
        match kind {
            TextKind::Text | TextKind::Escapable(Tag::Textarea) => {
                if self.template_depth == 0 && self.hidden_in.is_none() {
                    add_text(text, &mut self.words);
                }
            }
            TextKind::Escapable(tag) | TextKind::Raw(tag) if self.collecting == Some(tag) => {
                self.keep(tag, text);
            }
            TextKind::Raw(Tag::Xmp | Tag::Plaintext) => self.words.text(text),
            TextKind::Escapable(_) | TextKind::Raw(_) => {}
        }
    }
}

/// A page of HTML that is read in pieces.
#[derive(Debug)]
pub(crate) struct HtmlReader {
    scanner: Scanner,
    pub(crate) harvest: Harvest,
}

impl HtmlReader {
    pub(crate) fn new(harvest: Harvest) -> Self {
        let limits = TagLimits {
            // Positions inside of a tag are kept in 32 bits.
            tag_bytes_max: harvest.limits.tag_bytes_max.clamp(1, u32::MAX as usize),
            attributes_max: harvest.limits.attributes_max,
        };
        Self { scanner: Scanner::new(limits), harvest }
    }

    pub(crate) fn held_bytes(&self) -> usize {
        let harvest = &self.harvest;
        let graph = harvest.open_graph.iter().map(|(name, value)| name.capacity() + value.capacity());
        self.scanner.held_bytes()
            + harvest.references.held_bytes()
            + harvest.collected.capacity()
            + harvest.json_ld.iter().map(String::capacity).sum::<usize>()
            + graph.sum::<usize>()
    }

    pub(crate) fn feed(&mut self, text: &str) {
        self.scanner.feed(text, &mut self.harvest);
    }

    pub(crate) fn finish(mut self) -> Harvest {
        self.scanner.finish(&mut self.harvest);
        self.harvest.end_collecting();
        let faults = &mut self.harvest.references.faults;
        faults.count(FaultKind::TagsCut, self.scanner.cut_tags);
        faults.count(FaultKind::AttributesLeftOut, self.scanner.left_out_attributes);
        self.harvest
    }
}
