//! A link and how it was written. Not whether it should be followed: that is for the crawl to decide.

/// What a page does with what it links to.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum LinkKind {
    /// Readers may go there.
    Navigation,
    /// It is a part of the page: images, scripts, style sheets, frames.
    Embed,
    /// Readers are sent there.
    Redirect,
}

impl LinkKind {
    /// As it is called in output, stable.
    pub fn name(self) -> &'static str {
        match self {
            Self::Navigation => "navigation",
            Self::Embed => "embed",
            Self::Redirect => "redirect",
        }
    }
}

/// A link of a page.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Link {
    /// Where it leads, resolved, fragment included. Any scheme.
    pub url: String,
    /// The tag it stands in, in lower case; `header` for links of HTTP headers, `css` for those of a style sheet by itself,
    /// `*` for a `style` attribute of a tag that has no links otherwise and no name we know.
    pub tag: &'static str,
    /// The attribute it stands in, in lower case. What is in a `style` element says `text`; headers say their name;
    /// style sheets say `url` or `import`.
    pub attribute: &'static str,
    /// The tokens of `rel`, in lower case, with one space between them. None if there are none.
    pub rel: Option<String>,
    /// The language of what is linked to, as `hreflang` says. Only for `link` and `Link`.
    pub hreflang: Option<String>,
    /// What the page does with it.
    pub kind: LinkKind,
}

impl Link {
    /// Whether `rel` has this token, which is in lower case.
    pub fn has_rel(&self, token: &str) -> bool {
        self.rel.as_deref().is_some_and(|rel| rel.split(' ').any(|its| its == token))
    }

    /// Whether the page asks not to follow it: `nofollow`, or `sponsored` or `ugc`, which say why.
    pub fn is_nofollow(&self) -> bool {
        ["nofollow", "sponsored", "ugc"].iter().any(|token| self.has_rel(token))
    }
}

/// Another language version of a page.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Alternate {
    /// The language, as it was written: `de`, `pt-BR`, `x-default`.
    pub hreflang: String,
    /// Where it is.
    pub url: String,
}

/// What makes a `link` with these tokens: None for mere hints to open a connection, which name no resource.
pub(crate) fn kind_of_rel(rel: &str) -> Option<LinkKind> {
    let mut kind = Some(LinkKind::Navigation);
    for token in rel.split(' ') {
        match token {
            "stylesheet"
            | "icon"
            | "apple-touch-icon"
            | "apple-touch-icon-precomposed"
            | "mask-icon"
            | "preload"
            | "modulepreload"
            | "manifest"
            | "apple-touch-startup-image"
            | "prefetch" => return Some(LinkKind::Embed),
            "dns-prefetch" | "preconnect" => kind = None,
            _ => {}
        }
    }
    kind
}

/// The tokens of a `rel` attribute in lower case, with one space between them.
pub(crate) fn rel_tokens(rel: &str) -> Option<String> {
    let mut tokens = rel.split_ascii_whitespace();
    let mut all = tokens.next()?.to_ascii_lowercase();
    for token in tokens {
        all.push(' ');
        all.push_str(&token.to_ascii_lowercase());
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rel_is_tokens_in_lower_case() {
        assert_eq!(rel_tokens(" NoFollow\n\tnoopener "), Some("nofollow noopener".to_owned()));
        assert_eq!(rel_tokens(" \n"), None);
    }

    #[test]
    fn rel_says_what_a_link_is_for() {
        assert_eq!(kind_of_rel("canonical"), Some(LinkKind::Navigation));
        assert_eq!(kind_of_rel("alternate stylesheet"), Some(LinkKind::Embed));
        assert_eq!(kind_of_rel("shortcut icon"), Some(LinkKind::Embed));
        assert_eq!(kind_of_rel("preconnect"), None);
        assert_eq!(kind_of_rel("preconnect stylesheet"), Some(LinkKind::Embed));
        assert_eq!(kind_of_rel(""), Some(LinkKind::Navigation));
    }
}
