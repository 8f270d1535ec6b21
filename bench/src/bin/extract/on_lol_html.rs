//! lol_html's rewriter with a handler for each tag that can hold a link, which takes the values of the attributes that are
//! links. It resolves nothing and, but for the last form, looks at no text.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};

use lol_html::html_content::Element;
use lol_html::{ElementContentHandlers, HtmlRewriter, Selector, Settings, doc_text};

/// The tags that our reader looks at, and the attributes of each.
const TAGS: [(&str, &[&str]); 21] = [
    ("a", &["href", "rel"]),
    ("area", &["href", "rel"]),
    ("link", &["href", "rel", "hreflang"]),
    ("base", &["href"]),
    ("img", &["src", "srcset"]),
    ("source", &["src", "srcset"]),
    ("script", &["src", "type"]),
    ("iframe", &["src"]),
    ("frame", &["src"]),
    ("form", &["action", "method"]),
    ("video", &["src", "poster"]),
    ("audio", &["src"]),
    ("track", &["src"]),
    ("input", &["src"]),
    ("embed", &["src"]),
    ("object", &["data"]),
    ("meta", &["name", "content", "http-equiv"]),
    ("title", &[]),
    ("style", &[]),
    ("html", &["lang"]),
    ("body", &["background"]),
];

pub(crate) fn links(page: &[u8]) -> usize {
    read(page, false)
}

pub(crate) fn links_and_text(page: &[u8]) -> usize {
    read(page, true)
}

thread_local! {
    /// Parsed once, which a page should not pay for.
    static SELECTORS: Vec<(Selector, &'static [&'static str])> = TAGS
        .iter()
        .map(|(tag, names)| (tag.parse().expect("a tag's name is a selector"), *names))
        .collect();
}

fn read(page: &[u8], with_text: bool) -> usize {
    SELECTORS.with(|selectors| read_with(selectors, page, with_text))
}

fn read_with(selectors: &[(Selector, &'static [&'static str])], page: &[u8], with_text: bool) -> usize {
    let found = RefCell::new(Vec::<String>::new());
    let text_bytes = Cell::new(0);
    let mut settings = Settings::new().with_strict(false);
    for (selector, names) in selectors {
        let found = &found;
        let handler = move |element: &mut Element<'_, '_>| {
            for name in *names {
                if let Some(value) = element.get_attribute(name) {
                    found.borrow_mut().push(value);
                }
            }
            Ok(())
        };
        let handlers = ElementContentHandlers::default().element(handler);
        settings = settings.append_element_content_handler((Cow::Borrowed(selector), handlers));
    }
    if with_text {
        let text_bytes = &text_bytes;
        settings = settings.append_document_content_handler(doc_text!(move |text| {
            text_bytes.set(text_bytes.get() + text.as_str().len());
            Ok(())
        }));
    }
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
    let done = rewriter.write(page).and_then(|()| rewriter.end());
    std::hint::black_box(text_bytes.get());
    if done.is_err() {
        return 0;
    }
    found.into_inner().len()
}
