//! What is found in the tags of a page, and kept until the page is over: its references, as they were written, and its facts.
//! Which tags and texts come here, and in which order, is for the reader to say.

use super::attributes::Attributes;
use super::refresh::refresh_target;
use super::srcset::srcset;
use super::tag::Tag;
use super::visible::collapsed;
use crate::directives::PageRobots;
use crate::fault::FaultKind;
use crate::limits::Limits;
use crate::link::{LinkKind, kind_of_rel, rel_tokens};
use crate::references::{Reference, References};
use crate::simhash::Words;

/// What a page says of itself, beside its links.
#[derive(Debug)]
pub(crate) struct Harvest {
    pub(crate) references: References,
    /// The first `base`, as written.
    pub(crate) base: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) language: Option<String>,
    pub(crate) robots: PageRobots,
    pub(crate) open_graph: Vec<(String, String)>,
    pub(crate) json_ld: Vec<String>,
    pub(crate) words: Words,
    pub(super) limits: Limits,
    /// The text of an element that is collected whole, as far as it goes.
    pub(super) collected: String,
    collected_is_cut: bool,
    pub(super) collecting: Option<Tag>,
    /// An element of a drawing whose text nobody sees.
    pub(super) hidden_in: Option<Tag>,
    pub(super) template_depth: u64,
    language_is_weak: bool,
}

impl Harvest {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            references: References::new(limits),
            base: None,
            title: None,
            description: None,
            language: None,
            robots: PageRobots::default(),
            open_graph: Vec::new(),
            json_ld: Vec::new(),
            words: Words::new(limits.text_bytes_max),
            limits: limits.clone(),
            collected: String::new(),
            collected_is_cut: false,
            collecting: None,
            hidden_in: None,
            template_depth: 0,
            language_is_weak: true,
        }
    }

    fn fault(&mut self, kind: FaultKind) {
        self.references.faults.count(kind, 1);
    }

    /// A fact, space collapsed and cut to its cap.
    fn fact(&mut self, text: &str) -> String {
        let (text, is_cut) = collapsed(text, self.limits.fact_bytes_max, false);
        if is_cut {
            self.fault(FaultKind::FactsCut);
        }
        text
    }

    /// The language of the page, from its weakest source to its strongest: header, `meta`, the root's `lang`.
    pub(crate) fn weak_language(&mut self, language: &str) {
        // The header may list several; a page in several languages has none.
        let language = language.trim();
        if self.language_is_weak && !language.is_empty() && !language.contains([',', ' ']) {
            self.language = Some(self.fact(language));
        }
    }

    pub(super) fn anchor(&mut self, tag: Tag, attributes: &Attributes<'_>, is_html: bool) {
        let Some(href) = attributes.get("href") else {
            if !is_html && let Some(href) = attributes.get("xlink:href") {
                self.references.plain(&href, tag.name(), "xlink:href", LinkKind::Navigation);
            }
            return;
        };
        let rel = attributes.get("rel").and_then(|rel| rel_tokens(&rel));
        let (tag, attribute, kind) = (tag.name(), "href", LinkKind::Navigation);
        self.references.add(Reference { reference: &href, tag, attribute, kind, rel, hreflang: None });
    }

    fn link(&mut self, attributes: &Attributes<'_>) {
        let Some(href) = attributes.get("href").filter(|href| !is_blank(href)) else { return };
        let rel = attributes.get("rel").and_then(|rel| rel_tokens(&rel));
        let hreflang = attributes.get("hreflang").map(|hreflang| self.fact(&hreflang));
        let hreflang = hreflang.filter(|hreflang| !hreflang.is_empty());
        let Some(kind) = kind_of_rel(rel.as_deref().unwrap_or_default()) else { return };
        self.references.add(Reference {
            reference: &href,
            tag: "link",
            attribute: "href",
            kind,
            rel,
            hreflang,
        });
    }

    pub(super) fn embed(&mut self, tag: Tag, attributes: &Attributes<'_>, name: &'static str) {
        if let Some(value) = attributes.get(name).filter(|value| !is_blank(value)) {
            self.references.plain(&value, tag.name(), name, LinkKind::Embed);
        }
    }

    fn srcset(&mut self, tag: Tag, attributes: &Attributes<'_>) {
        if let Some(value) = attributes.get("srcset") {
            srcset(&value, |image| self.references.plain(image, tag.name(), "srcset", LinkKind::Embed));
        }
    }

    fn form(&mut self, attributes: &Attributes<'_>) {
        let method = attributes.get("method").unwrap_or_default();
        let is_get = !method.eq_ignore_ascii_case("post") && !method.eq_ignore_ascii_case("dialog");
        if let Some(action) = attributes.get("action").filter(|action| is_get && !is_blank(action)) {
            self.references.plain(&action, "form", "action", LinkKind::Navigation);
        }
    }

    fn meta(&mut self, attributes: &Attributes<'_>) {
        let Some(content) = attributes.get("content") else { return };
        if let Some(pragma) = attributes.get("http-equiv") {
            if pragma.eq_ignore_ascii_case("refresh")
                && let Some(target) = refresh_target(&content)
            {
                self.references.plain(target, "meta", "content", LinkKind::Redirect);
            } else if pragma.eq_ignore_ascii_case("content-language") {
                self.weak_language(&content);
            }
        }
        let property = attributes.get("property");
        if let Some(name) = attributes.get("name") {
            if name.eq_ignore_ascii_case("description") {
                if self.description.is_none() {
                    self.description = Some(self.fact(&content)).filter(|content| !content.is_empty());
                }
            } else if name.len() <= self.limits.fact_bytes_max {
                let end = content.floor_char_boundary(self.limits.fact_bytes_max);
                let is_cut = end < content.len() && name.trim().eq_ignore_ascii_case("robots");
                if !self.robots.meta(&name, &content[..end], self.limits.facts_max) || is_cut {
                    self.fault(FaultKind::FactsCut);
                }
            }
        }
        let graph = property.or_else(|| attributes.get("name")).unwrap_or_default();
        if graph.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("og:")) {
            if self.open_graph.len() < self.limits.facts_max {
                let entry = (self.fact(&graph.to_ascii_lowercase()), self.fact(&content));
                self.open_graph.push(entry);
            } else {
                self.fault(FaultKind::FactsCut);
            }
        }
    }

    fn html(&mut self, attributes: &Attributes<'_>) {
        if self.language_is_weak
            && let Some(language) = attributes.get("lang").or_else(|| attributes.get("xml:lang"))
            && !is_blank(&language)
        {
            self.language = Some(self.fact(&language));
            self.language_is_weak = false;
        }
    }

    /// Begins to collect the text of an element.
    fn collect(&mut self, tag: Tag) {
        self.collecting = Some(tag);
        self.collected.clear();
        self.collected_is_cut = false;
    }

    fn collected_bytes_max(&self, tag: Tag) -> usize {
        match tag {
            Tag::Style => self.limits.style_bytes_max,
            Tag::Script => self.limits.json_ld_bytes_max,
            // A title may be full of references, which are longer than what they stand for.
            _ => self.limits.fact_bytes_max.saturating_mul(8),
        }
    }

    pub(super) fn keep(&mut self, tag: Tag, text: &str) {
        let room = self.collected_bytes_max(tag).saturating_sub(self.collected.len());
        if self.collected_is_cut {
            return;
        }
        self.collected.push_str(&text[..text.floor_char_boundary(room)]);
        self.collected_is_cut = text.len() > room;
    }

    /// The element whose text was collected is over, by its end tag or with the page.
    pub(super) fn end_collecting(&mut self) {
        let Some(tag) = self.collecting.take() else { return };
        let text = std::mem::take(&mut self.collected);
        match tag {
            Tag::Style => {
                self.references.css(&text, "style", Some("text"));
                if self.collected_is_cut {
                    self.fault(FaultKind::StylesCut);
                }
            }
            Tag::Script if self.collected_is_cut || self.json_ld.len() >= self.limits.facts_max => {
                self.fault(FaultKind::FactsCut);
            }
            Tag::Script => {
                self.json_ld.extend(Some(text.trim().to_owned()).filter(|block| !block.is_empty()));
            }
            _ => {
                let (title, is_cut) = collapsed(&text, self.limits.fact_bytes_max, true);
                if is_cut || self.collected_is_cut {
                    self.fault(FaultKind::FactsCut);
                }
                self.title = Some(title);
            }
        }
        self.collected = text;
        self.collected.clear();
        self.collected.shrink_to(1 << 16);
    }

    /// The links and facts of a start tag of HTML.
    pub(super) fn html_tag(&mut self, tag: Tag, attributes: &Attributes<'_>) {
        match tag {
            Tag::A | Tag::Area => self.anchor(tag, attributes, true),
            Tag::Link => self.link(attributes),
            Tag::Img | Tag::Image => {
                self.embed(Tag::Img, attributes, "src");
                self.srcset(Tag::Img, attributes);
            }
            Tag::Source => {
                self.embed(tag, attributes, "src");
                self.srcset(tag, attributes);
            }
            Tag::Script => {
                self.embed(tag, attributes, "src");
                let kind = attributes.get("type").unwrap_or_default();
                let kind = kind.split(';').next().unwrap_or_default().trim();
                if kind.eq_ignore_ascii_case("application/ld+json") {
                    self.collect(tag);
                }
            }
            Tag::Iframe | Tag::Frame | Tag::Embed | Tag::Audio | Tag::Track => {
                self.embed(tag, attributes, "src");
            }
            Tag::Video => {
                self.embed(tag, attributes, "src");
                self.embed(tag, attributes, "poster");
            }
            Tag::Object => self.embed(tag, attributes, "data"),
            Tag::Input if attributes.get("type").is_some_and(|kind| kind.eq_ignore_ascii_case("image")) => {
                self.embed(tag, attributes, "src");
            }
            Tag::Body => self.embed(tag, attributes, "background"),
            Tag::Form => self.form(attributes),
            Tag::Meta => self.meta(attributes),
            Tag::Base => {
                if self.base.is_none()
                    && let Some(href) = attributes.get("href")
                {
                    let is_too_long = href.len() > self.limits.reference_bytes_max;
                    self.references.faults.count(FaultKind::LongReferences, u64::from(is_too_long));
                    // It counts as the first one, and leads nowhere else.
                    self.base = Some(if is_too_long { String::new() } else { href.into_owned() });
                }
            }
            Tag::Html => self.html(attributes),
            Tag::Title if self.title.is_none() => self.collect(tag),
            Tag::Style => self.collect(tag),
            Tag::Template => self.template_depth += 1,
            _ => {}
        }
    }
}

fn is_blank(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_whitespace())
}
