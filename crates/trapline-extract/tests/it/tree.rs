//! The links of a page by html5ever: its tokenizer and its tree builder, scripting off, as a crawler that runs no scripts
//! would have it. What we find is compared with this.
//!
//! No tree is kept: every element that the builder creates is one of the page, but for those that a late `frameset` removes.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeBuilderOpts, TreeSink};
use html5ever::{Attribute, ExpandedName, ParseOpts, QualName, local_name, ns, parse_document};

/// The tag and the value of `href` of each `a` and `area`, those of drawings included.
pub(crate) type Links = BTreeSet<(String, String)>;

#[derive(Default)]
struct Found {
    links: RefCell<Links>,
    /// The first `base` that has one.
    base: RefCell<Option<String>>,
}

#[derive(Debug)]
struct Element {
    name: QualName,
    is_integration_point: bool,
}

type Handle = Rc<Element>;

impl Found {
    fn node() -> Handle {
        let name = QualName::new(None, ns!(html), local_name!(""));
        Rc::new(Element { name, is_integration_point: false })
    }
}

impl TreeSink for Found {
    type Handle = Handle;
    type Output = Self;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> Self {
        self
    }
    fn parse_error(&self, _: Cow<'static, str>) {}
    fn get_document(&self) -> Handle {
        Self::node()
    }
    fn elem_name<'a>(&'a self, target: &'a Handle) -> ExpandedName<'a> {
        target.name.expanded()
    }
    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, flags: ElementFlags) -> Handle {
        let href = attributes
            .iter()
            .find(|attribute| attribute.name.ns == ns!() && attribute.name.local == local_name!("href"))
            .map(|attribute| attribute.value.to_string());
        if let Some(href) = href {
            if matches!(name.local, local_name!("a") | local_name!("area")) {
                self.links.borrow_mut().insert((name.local.to_string(), href));
            } else if name.local == local_name!("base") && name.ns == ns!(html) {
                self.base.borrow_mut().get_or_insert(href);
            }
        }
        let is_integration_point = flags.mathml_annotation_xml_integration_point;
        Rc::new(Element { name, is_integration_point })
    }
    fn create_comment(&self, _: StrTendril) -> Handle {
        Self::node()
    }
    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Handle {
        Self::node()
    }
    fn append(&self, _: &Handle, _: NodeOrText<Handle>) {}
    fn append_based_on_parent_node(&self, _: &Handle, _: &Handle, _: NodeOrText<Handle>) {}
    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}
    fn get_template_contents(&self, _: &Handle) -> Handle {
        Self::node()
    }
    fn same_node(&self, one: &Handle, other: &Handle) -> bool {
        Rc::ptr_eq(one, other)
    }
    fn set_quirks_mode(&self, _: QuirksMode) {}
    fn append_before_sibling(&self, _: &Handle, _: NodeOrText<Handle>) {}
    fn add_attrs_if_missing(&self, _: &Handle, _: Vec<Attribute>) {}
    fn remove_from_parent(&self, _: &Handle) {}
    fn reparent_children(&self, _: &Handle, _: &Handle) {}
    fn is_mathml_annotation_xml_integration_point(&self, handle: &Handle) -> bool {
        handle.is_integration_point
    }
}

/// The links and the first base of a page.
pub(crate) fn links(html: &str) -> (Links, Option<String>) {
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let options = ParseOpts { tree_builder, ..ParseOpts::default() };
    let found = parse_document(Found::default(), options).one(StrTendril::from(html));
    (found.links.into_inner(), found.base.into_inner())
}
