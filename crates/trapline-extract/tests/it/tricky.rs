//! Pages written by hand to mislead: their links are those of html5ever's tree too.

use crate::real_pages::check;

#[test]
fn tricky_pages_have_the_links_that_a_browser_sees() {
    for (name, page, links) in [
        ("comments", include_str!("pages/comments.html"), 9),
        ("scripts", include_str!("pages/scripts.html"), 6),
        ("attributes", include_str!("pages/attributes.html"), 14),
        ("drawings", include_str!("pages/drawings.html"), 8),
        ("unclosed", include_str!("pages/unclosed.html"), 4),
    ] {
        assert_eq!(check(name, page.as_bytes()), links, "{name}");
    }
}
