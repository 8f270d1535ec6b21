//! `Link` headers (RFC 8288): the references in them, with their relations and languages.

use std::borrow::Cow;

/// A link of a `Link` header, not yet resolved.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HeaderLink {
    /// What stands between `<` and `>`.
    pub reference: String,
    /// The first `rel`, in lower case, or empty.
    pub rel: String,
    /// The first `hreflang`.
    pub hreflang: Option<String>,
    /// What the link is of, if not of the page itself.
    pub anchor: Option<String>,
}

/// More links of one header than this are left out.
const LINKS_MAX: usize = 1000;

/// Reads the value of a `Link` header, which may hold several. What is broken is left out up to the next comma.
///
/// ```
/// use trapline_extract::header_links;
///
/// let links = header_links(r#"</style.css>; rel=preload, <?page=2>; rel="next""#);
/// assert_eq!(links[1].reference, "?page=2");
/// assert_eq!(links[1].rel, "next");
/// ```
pub fn header_links(value: &str) -> Vec<HeaderLink> {
    let mut links = Vec::new();
    let mut rest = value;
    while links.len() < LINKS_MAX {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() {
            break;
        }
        let Some(inside) = rest.strip_prefix('<') else {
            rest = rest.split_once(',').map_or("", |(_, rest)| rest);
            continue;
        };
        // Without an end for this one there is none for any that follows, and looking again would take long.
        let Some((reference, after)) = inside.split_once('>') else { break };
        let mut link = HeaderLink { reference: reference.trim().to_owned(), ..HeaderLink::default() };
        rest = parameters(after, &mut link);
        links.push(link);
    }
    links
}

/// Reads parameters up to the comma that ends the link; answers what follows it.
fn parameters<'v>(text: &'v str, link: &mut HeaderLink) -> &'v str {
    let mut rest = text;
    let mut has_rel = false;
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        let Some(after) = rest.strip_prefix(';') else {
            return rest.find(',').map_or("", |comma| &rest[comma + 1..]);
        };
        rest = after.trim_start_matches([' ', '\t']);
        let name_end = rest.find(['=', ';', ',', ' ', '\t']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(name_end);
        rest = after.trim_start_matches([' ', '\t']);
        let value = match rest.strip_prefix('=') {
            Some(after) => {
                let (value, after) = parameter_value(after.trim_start_matches([' ', '\t']));
                rest = after;
                value
            }
            None => Cow::Borrowed(""),
        };
        // Of a parameter that is there twice the first counts.
        if name.eq_ignore_ascii_case("rel") && !has_rel {
            has_rel = true;
            link.rel = value.to_ascii_lowercase();
        } else if name.eq_ignore_ascii_case("hreflang") && link.hreflang.is_none() {
            link.hreflang = Some(value.into_owned());
        } else if name.eq_ignore_ascii_case("anchor") && link.anchor.is_none() {
            link.anchor = Some(value.into_owned());
        }
    }
}

/// A value, quoted or not, and what follows it.
fn parameter_value(text: &str) -> (Cow<'_, str>, &str) {
    let Some(inside) = text.strip_prefix('"') else {
        let end = text.find([';', ',']).unwrap_or(text.len());
        return (Cow::Borrowed(text[..end].trim_end()), &text[end..]);
    };
    let mut value = String::new();
    let mut characters = inside.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (Cow::Owned(value), &inside[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (Cow::Owned(value), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, expected: &[(&str, &str, Option<&str>)]) {
        let links = header_links(value);
        let found = links.iter().map(|link| (&link.reference[..], &link.rel[..], link.hreflang.as_deref()));
        assert_eq!(found.collect::<Vec<_>>(), expected, "{value:?}");
    }

    #[test]
    fn links_are_parted_at_commas_that_part_them() {
        check("<a>; rel=next", &[("a", "next", None)]);
        check("<a,b>;REL = \"Next Prev\" , <c>", &[("a,b", "next prev", None), ("c", "", None)]);
        check(r#"<a>;title="x, <y>; rel=z";rel=up;hreflang=de;hreflang=en"#, &[("a", "up", Some("de"))]);
        check(r#"<a>; rel="a\"b", <>;rel"#, &[("a", "a\"b", None), ("", "", None)]);
        check("<a>; rel=next; rel=prev", &[("a", "next", None)]);
    }

    #[test]
    fn what_is_broken_costs_itself_only() {
        check("", &[]);
        check(", ,", &[]);
        check("a; rel=b, <c>; rel=d", &[("c", "d", None)]);
        check("<a", &[]);
        check("<a>; rel=\"b", &[("a", "b", None)]);
        check("<a> rel=b, <c>", &[("a", "", None), ("c", "", None)]);
        check("<a>;;;rel=b", &[("a", "b", None)]);
        check("<é>; rel=ü\\", &[("é", "ü\\", None)]);
    }

    /// Looking for the end of each would read this header a million times.
    #[test]
    fn references_without_end_are_looked_at_once() {
        check(&"<,".repeat(1 << 20), &[]);
        check(&format!("<a>; rel=next, {}", "<,".repeat(1 << 20)), &[("a", "next", None)]);
    }

    #[test]
    fn anchors_are_kept() {
        assert_eq!(header_links("<a>; anchor=\"#b\"")[0].anchor.as_deref(), Some("#b"));
    }
}
