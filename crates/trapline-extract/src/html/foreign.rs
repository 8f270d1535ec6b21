//! Where in a page SVG and MathML reign, as far as that can be known without building a tree: there `<title>`, `<style>`
//! and `<script>` are tags like any other, and `<![CDATA[` begins text.
//!
//! Only the elements that change the answer are remembered: roots (`svg`, `math`) and the places inside of them where HTML
//! begins again. Which HTML elements are open is not known, so an end tag of HTML inside of a drawing is taken to close
//! something around the drawing, as it nearly always does.

use super::attributes::Attributes;
use super::tag::Tag;

/// Which rules hold inside of an element.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Rules {
    Html,
    Svg,
    MathMl,
}

/// An open element that changed the rules.
#[derive(Clone, Copy, Debug)]
struct Frame {
    rules: Rules,
    opened_by: Tag,
}

/// So many of them inside of each other are remembered; nobody draws more.
const DEPTH_MAX: usize = 256;

/// The open elements that changed the rules, outermost first.
#[derive(Debug, Default)]
pub(crate) struct Foreign {
    frames: Vec<Frame>,
}

impl Foreign {
    /// Whether the rules of HTML hold.
    #[inline]
    pub(crate) fn is_html(&self) -> bool {
        self.frames.last().is_none_or(|frame| frame.rules == Rules::Html)
    }

    /// Whether a start tag needs to be told: most pages have none that does.
    #[inline]
    pub(crate) fn concerns(&self, tag: Tag) -> bool {
        !self.frames.is_empty() || matches!(tag, Tag::Svg | Tag::Math)
    }

    /// Takes note of a start tag; afterwards [`Foreign::is_html`] says whether the *content* of this element is HTML.
    /// Answers whether the element itself is one of HTML.
    pub(crate) fn start(&mut self, tag: Tag, attributes: &Attributes<'_>, self_closing: bool) -> bool {
        let rules = self.frames.last().map_or(Rules::Html, |frame| frame.rules);
        if rules != Rules::Html && breaks_out(tag, attributes) {
            self.break_out();
            return true;
        }
        let inside = match (rules, tag) {
            (Rules::Html, Tag::Svg) => Rules::Svg,
            (Rules::Html, Tag::Math) => Rules::MathMl,
            (Rules::Html, _) => return true,
            // An SVG drawing is one inside of an annotation too, and nowhere else in MathML.
            (Rules::MathMl, Tag::Svg) if self.opened_by() == Tag::AnnotationXml => Rules::Svg,
            (rules, Tag::Svg | Tag::Math) => rules,
            (Rules::Svg, Tag::ForeignObject | Tag::Desc | Tag::Title) => Rules::Html,
            (Rules::MathMl, Tag::Mi | Tag::Mn | Tag::Mo | Tag::Ms | Tag::Mtext) => Rules::Html,
            (Rules::MathMl, Tag::AnnotationXml) => {
                let encoding = attributes.get("encoding").unwrap_or_default();
                let is_html = ["text/html", "application/xhtml+xml"]
                    .iter()
                    .any(|encoded| encoding.eq_ignore_ascii_case(encoded));
                if is_html { Rules::Html } else { Rules::MathMl }
            }
            (_, _) => return false,
        };
        if !self_closing && self.frames.len() < DEPTH_MAX {
            self.frames.push(Frame { rules: inside, opened_by: tag });
        }
        false
    }

    /// Takes note of an end tag.
    pub(crate) fn end(&mut self, tag: Tag) {
        let Some(frame) = self.frames.last() else { return };
        if frame.rules == Rules::Html {
            if frame.opened_by == tag {
                self.frames.pop();
            }
            return;
        }
        let foreign = self.frames.iter().rev().take_while(|frame| frame.rules != Rules::Html);
        if let Some(depth) = foreign.clone().position(|frame| frame.opened_by == tag) {
            self.frames.truncate(self.frames.len() - depth - 1);
        } else if is_around_drawings(tag) {
            self.break_out();
        }
    }

    fn opened_by(&self) -> Tag {
        self.frames.last().map_or(Tag::Other, |frame| frame.opened_by)
    }

    fn break_out(&mut self) {
        while self.frames.last().is_some_and(|frame| frame.rules != Rules::Html) {
            self.frames.pop();
        }
    }
}

/// The start tags that the standard's parser takes as proof that a drawing was never closed.
fn breaks_out(tag: Tag, attributes: &Attributes<'_>) -> bool {
    use Tag::{
        B, Big, Blockquote, Body, Br, Center, Code, Dd, Div, Dl, Dt, Em, Embed, Font, H1, H2, H3, H4, H5, H6,
        Head, Hr, I, Img, Li, Listing, Menu, Meta, Nobr, Ol, P, Pre, Ruby, S, Small, Span, Strike, Strong,
        Sub, Sup, Table, Tt, U, Ul, Var,
    };
    match tag {
        B | Big | Blockquote | Body | Br | Center | Code | Dd | Div | Dl | Dt | Em | Embed | H1 | H2 | H3
        | H4 | H5 | H6 | Head | Hr | I | Img | Li | Listing | Menu | Meta | Nobr | Ol | P | Pre | Ruby
        | S | Small | Span | Strong | Strike | Sub | Sup | Table | Tt | U | Ul | Var => true,
        Font => ["color", "face", "size"].iter().any(|name| attributes.raw(name).is_some()),
        _ => false,
    }
}

/// Elements of HTML whose end tag, met inside of a drawing, closes the drawing along with them.
fn is_around_drawings(tag: Tag) -> bool {
    use Tag::{
        Article, Aside, B, Big, Blockquote, Body, Br, Button, Center, Code, Dd, Div, Dl, Dt, Em, Fieldset,
        Figure, Footer, Form, H1, H2, H3, H4, H5, H6, Header, Html, I, Label, Li, Main, Nav, Ol, P, Pre,
        Section, Small, Span, Strong, Sub, Sup, Table, Tbody, Td, Tfoot, Th, Thead, Tr, Ul,
    };
    matches!(
        tag,
        Article
            | Aside
            | B
            | Big
            | Blockquote
            | Body
            | Br
            | Button
            | Center
            | Code
            | Dd
            | Div
            | Dl
            | Dt
            | Em
            | Fieldset
            | Figure
            | Footer
            | Form
            | H1
            | H2
            | H3
            | H4
            | H5
            | H6
            | Header
            | Html
            | I
            | Label
            | Li
            | Main
            | Nav
            | Ol
            | P
            | Pre
            | Section
            | Small
            | Span
            | Strong
            | Sub
            | Sup
            | Table
            | Tbody
            | Td
            | Tfoot
            | Th
            | Thead
            | Tr
            | Ul
    )
}
