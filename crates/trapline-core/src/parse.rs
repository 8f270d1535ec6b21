//! The one way a text becomes a URL in Trapline: as the URL Standard says, to the letter.
//!
//! The `url` crate does the work. What it is known to read otherwise than the standard can be told from its answer,
//! at next to no cost, and only then the standard's own states are asked. Not canonical form: nothing here is a
//! matter of taste.

use url::{ParseError, Url};

use crate::exact_url::ExactUrl;

/// Parses a URL, or a reference against a base, as the URL Standard does.
///
/// Use it instead of [`Url::parse`] and [`Url::join`] for everything that ends in an identity: the crate alone
/// leaves `^` in paths, trips over `///host`, and keeps `/C:/../` in web URLs.
///
/// A [`Url`] cannot hold every `file:` URL. Those come as the nearest one it can hold; [`href`] writes them exactly.
///
/// ```
/// use trapline_core::parse_url;
///
/// let base = parse_url("https://example.com/a/b", None)?;
/// assert_eq!(parse_url("../c^2", Some(&base))?.as_str(), "https://example.com/c%5E2");
/// assert_eq!(parse_url("///example.org", Some(&base))?.as_str(), "https://example.org/");
/// # Ok::<(), url::ParseError>(())
/// ```
pub fn parse_url(input: &str, base: Option<&Url>) -> Result<Url, ParseError> {
    #[expect(clippy::disallowed_methods, reason = "here is where its answers are mended")]
    let parsed = Url::options().base_url(base).parse(input);
    if parsed.as_ref().is_ok_and(is_exact) { parsed } else { mended(input, base) }
}

/// The URL Standard's href of a URL, or of a reference against a base, also where a [`Url`] cannot hold it.
///
/// ```
/// use trapline_core::href;
///
/// assert_eq!(href("file:////server/share", None)?, "file:////server/share");
/// assert_eq!(href("C|/autoexec.bat", Some("file://server/D:/"))?, "file://server/C:/autoexec.bat");
/// # Ok::<(), url::ParseError>(())
/// ```
pub fn href(input: &str, base: Option<&str>) -> Result<String, ParseError> {
    let base_url = base.map(|base| parse_url(base, None)).transpose()?;
    let url = parse_url(input, base_url.as_ref())?;
    if url.scheme() != "file" {
        return Ok(url.into());
    }
    let base = base.map(|base| ExactUrl::parse(base, None)).transpose()?;
    Ok(ExactUrl::parse(input, base.as_ref())?.to_string())
}

/// Whether an answer of the crate is sure to be the standard's. It says no to some that are.
fn is_exact(url: &Url) -> bool {
    match url.scheme() {
        "http" | "https" | "ws" | "wss" | "ftp" => is_exact_path(url.path().as_bytes()),
        "file" => false,
        // The crate is at its loosest with hosts and backslashes of schemes it does not know.
        _ => url.cannot_be_a_base() && !url.path().ends_with(' '),
    }
}

/// No `^`, which should have been encoded, and nothing like a drive letter, from which the crate, as if it were in
/// a `file:` URL, finds no way up.
fn is_exact_path(path: &[u8]) -> bool {
    // Without an early end the compiler looks at many bytes at once.
    let odd = path.iter().fold(false, |odd, byte| odd | matches!(byte, b'^' | b':' | b'|'));
    !odd || !path.contains(&b'^') && !path.windows(3).any(|start| matches!(start, [b'/', _, b':' | b'|']))
}

#[cold]
fn mended(input: &str, base: Option<&Url>) -> Result<Url, ParseError> {
    let base = base.map(|base| ExactUrl::parse(base.as_str(), None)).transpose()?;
    ExactUrl::parse(input, base.as_ref())?.nearest()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    /// Checks the href, and everything else that must hold for any input. An empty base is none, an empty href a
    /// failure.
    #[track_caller]
    fn check(input: &str, base: &str, expected: &str) {
        let base = Some(base).filter(|base| !base.is_empty());
        let found = href(input, base).unwrap_or_default();
        assert_eq!(found, expected, "{input:?} against {base:?}");
        holds_for(input, base).unwrap();
    }

    fn holds_for(input: &str, base: Option<&str>) -> Result<(), TestCaseError> {
        let base_url = base.and_then(|base| parse_url(base, None).ok());
        let url = parse_url(input, base_url.as_ref());
        let Ok(written) = href(input, base) else {
            prop_assert!(url.is_err() || base.is_some() && base_url.is_none());
            return Ok(());
        };
        prop_assert_eq!(href(&written, None), Ok(written.clone()), "twice");
        let url = url.unwrap();
        prop_assert_eq!(parse_url(url.as_str(), None), Ok(url.clone()), "twice, as Url");
        if url.scheme() != "file" {
            prop_assert_eq!(url.as_str(), &written);
            let base = base.map(|base| ExactUrl::parse(base, None).unwrap());
            let exact = ExactUrl::parse(input, base.as_ref()).unwrap().to_string();
            prop_assert_eq!(exact, written, "slow and fast");
        }
        Ok(())
    }

    #[test]
    fn ordinary_urls_are_as_ever() {
        check(
            "HTTP://User:pw@EXAMPLE.com:80/a/./b/../c?d e#f g",
            "",
            "http://User:pw@example.com/a/c?d%20e#f%20g",
        );
        check("https://bücher.example", "", "https://xn--bcher-kva.example/");
        check("../x?y", "https://a.example/b/c/d?e#f", "https://a.example/b/x?y");
        check("", "https://a.example/b?c#d", "https://a.example/b?c");
        check("#f", "mailto:a@b.example", "mailto:a@b.example#f");
        check("https:c", "https://a.example/b", "https://a.example/c");
        check("http:c", "https://a.example/b", "http://c/");
        check("x", "mailto:a@b.example", "");
        check("x", "", "");
        check("https://", "https://a.example/", "");
        check("https://a.example:99999/", "", "");
        check("x", "no base", "");
    }

    #[test]
    fn any_number_of_slashes_leads_to_a_host() {
        let base = "https://a.example/b/c";
        check("//h/p", base, "https://h/p");
        check("///h/p", base, "https://h/p");
        check("//////h/p", base, "https://h/p");
        check("//\\h/p", base, "https://h/p");
        check("\\//\\/h\\p", base, "https://h/p");
        check(" \u{1}/\t/\n/\rh/p ", base, "https://h/p");
        check("///u:p@h:81/p?q#f", base, "https://u:p@h:81/p?q#f");
        check("///h/../../p/./", "ws://a.example/b", "ws://h/p/");
        check("///", base, "");
        check("///?q", base, "");
        check("https:///h", base, "https://h/");
        check("///h/p", "x://a.example/b", "x:///h/p");
        check("///h/p", "", "");
    }

    #[test]
    fn carets_are_encoded_in_paths_and_nowhere_else() {
        check("https://a.example/^/b^?c^#d^", "", "https://a.example/%5E/b%5E?c^#d^");
        check("^", "https://a.example/b?^", "https://a.example/%5E");
        check("?^", "https://a.example/b", "https://a.example/b?^");
        check("x://h/^/%5e", "", "x://h/%5E/%5e");
        check("x:/^", "", "x:/%5E");
        check("x:^#^", "", "x:^#^");
        check("https://u^@a.example/", "", "https://u%5E@a.example/");
        check("https://a^.example/", "", "");
        check("file:///^?^", "", "file:///%5E?^");
    }

    #[test]
    fn the_last_space_of_an_opaque_path_is_kept_if_anything_follows() {
        check("x:a  ?b", "", "x:a %20?b");
        check("x:a \t #", "", "x:a %20#");
        check("x:a b #c ", "", "x:a b%20#c");
        check("x: ?", "", "x:%20?");
        check("x:a  ", "", "x:a");
        check("data:text/plain,a  b?c #d", "", "data:text/plain,a  b?c%20#d");
        check("#e", "x:a  #d", "x:a %20#e");
        check("x:/a #b", "", "x:/a%20#b");
    }

    #[test]
    fn only_files_have_drives() {
        check("https://a.example/C:/../b", "", "https://a.example/b");
        check("https://a.example/b/c|/..", "", "https://a.example/b/");
        check("../..", "https://a.example/C:/d/e", "https://a.example/");
        check("https://a.example/C|/Talk:D", "", "https://a.example/C|/Talk:D");
        check("x:/C:/../b", "", "x:/b");
        check("file:///C:/../b", "", "file:///C:/b");
    }

    #[test]
    fn backslashes_are_slashes_only_in_schemes_with_hosts() {
        check("\\x", "https://a.example/b/c", "https://a.example/x");
        check("\\x", "x://h/a/b", "x://h/a/\\x");
        check("/\\x", "x://h/a/b", "x://h/\\x");
        check("x://h:80\\p", "", "");
        check("x://u\\@h/", "", "x://u%5C@h/");
    }

    #[test]
    fn user_info_wants_a_host() {
        check("x://@", "", "");
        check("x://:@/p", "", "");
        check("x://u@", "", "");
        check("x://", "", "x://");
        check("x://@h", "", "x://h");
    }

    #[test]
    fn a_path_is_never_mistaken_for_a_host() {
        check("x:/.//p", "", "x:/.//p");
        check("x:/a/..//p", "", "x:/.//p");
        check("..//p", "x:/a/b", "x:/.//p");
        check("q", "x:/.//p", "x:/.//q");
        check("/q", "x:/.//p", "x:/q");
        check("?q", "x:/.//p", "x:/.//p?q");
    }

    #[test]
    fn files_keep_their_slashes() {
        check("file:", "", "file:///");
        check("file:a\\b c", "", "file:///a/b%20c");
        check("file:/a/./b/%2E%2e/c", "", "file:///a/c");
        check("file:////a", "", "file:////a");
        check("file:\\\\\\\\a", "", "file:////a");
        check("file://///", "", "file://///");
        check("file:.//a", "", "file:////a");
        check("file:///a/..//..//b", "", "file:////b");
        check("file:..", "", "file:///");
        check("////a", "file:///b", "file:////a");
        check("..", "file:////a/b", "file:////");
        check("c?'\"`{^#'\"`{^", "file:////a/b", "file:////a/c?%27%22`{^#'%22%60{^");
        check("file:c", "file:////a/b", "file:////a/c");
        check("file:c", "https://a.example/b", "file:///c");
        check("", "file:////a?b#c", "file:////a?b");
        check("?d", "file:////a?b#c", "file:////a?d");
        check("#d", "file:////a?b#c", "file:////a?b#d");
        check("https://a.example", "file:////b", "https://a.example/");
        check(" f\tile\n:///\r/a\u{0} ", "", "file:////a");
    }

    #[test]
    fn hosts_of_files_are_hosts() {
        check("file://Server/a", "", "file://server/a");
        check("file://server", "", "file://server/");
        check("file://server?q", "", "file://server/?q");
        check("file://server//a", "", "file://server//a");
        check("file://LOCALHOST//a", "", "file:////a");
        check("file://%6c%6Fcalhost/a", "", "file:///a");
        check("file://0x7f.1/a", "", "file://127.0.0.1/a");
        check("file://[1:0::8]/a", "", "file://[1::8]/a");
        check("file://bücher.example/", "", "file://xn--bcher-kva.example/");
        check("file://server:80/", "", "");
        check("file://u@server/", "", "");
        check("file://a b/", "", "");
        check("file://\u{ad}/", "", "");
        check("//other/a", "file://server/b", "file://other/a");
        check("//localhost/a", "file://server/b", "file:///a");
        check("///a", "file://server/b", "file:///a");
        check("/a", "file://server/b/c", "file://server/a");
        check("a", "file://server/b/c", "file://server/b/a");
    }

    #[test]
    fn drives_stay_where_they_are() {
        check("file:///w|/m", "", "file:///w:/m");
        check("file:c|", "", "file:///c:");
        check("file:c|d", "", "file:///c|d");
        check("file://c|/d", "", "file:///c:/d");
        check("file://c%7C/d", "", "");
        check("file:///c%7C/d", "", "file:///c%7C/d");
        check("file:////c|/d", "", "file:////c|/d");
        check("file:///d/c|/", "", "file:///d/c|/");
        check("file:///C:/../../a", "", "file:///C:/a");
        check("file://server/C:/a", "", "file://server/C:/a");
        check("..", "file://server/C:/", "file://server/C:/");
        check("/", "file://server/C:/a/b", "file://server/C:/");
        check("/D:/", "file://server/C:/a/b", "file://server/D:/");
        check("/D|?", "file://server/C:/a", "file://server/D:?");
        check("d|", "file://server/C:/a", "file://server/d:");
        check("d|\n\\a", "file://server/b/c", "file://server/d:/a");
        check("d|e", "file://server/C:/a", "file://server/C:/d|e");
        check("//d:/a", "file://server/C:/b", "file:///d:/a");
        check("d:/a", "file://server/C:/b", "d:/a");
        check("file:d:/a", "file://server/C:/b", "file://server/d:/a");
    }

    /// What a `Url` cannot hold comes as the nearest it can.
    #[test]
    fn a_file_url_is_near_the_href() {
        let check = |input: &str, expected: &str| {
            assert_eq!(parse_url(input, None).unwrap().as_str(), expected, "{input}");
        };
        check("file:////a", "file:///a");
        check("file://server//a", "file://server/a");
        check("file://server/C|/a", "file:///C:/a");
        check("file:////w|/m", "file:///w:/m");
        check("file:///a^#f", "file:///a%5E#f");
    }

    #[test]
    fn a_megabyte_of_anything_is_no_trouble() {
        for piece in ["/", "\\", "../", "a/", "a/../", "^", " ", "C|/", "%2e/", "@", ":", "é", "\t", "?", "#"]
        {
            let text = piece.repeat(1_000_000 / piece.len());
            for start in ["http://a.example/", "http:", "file:", "file://", "x:", "x:/", "x://"] {
                let url = format!("{start}{text}?");
                if let Ok(once) = href(&url, None) {
                    assert_eq!(href(&once, None).as_ref(), Ok(&once));
                }
            }
            let _ = href(&text, Some("file://h/C:/"));
            let _ = href(&text, Some("http://h/"));
        }
    }

    /// Texts made of what the standard has a rule for.
    fn nasty(first: &[&'static str]) -> impl Strategy<Value = String> {
        let pieces = vec![
            "/",
            "/",
            "//",
            "\\",
            "?",
            "#",
            ":",
            "@",
            "|",
            "^",
            " ",
            "\t",
            "\n",
            "\u{0}",
            ".",
            "..",
            "%2e",
            "%2E.",
            "%",
            "%5e",
            "C",
            "C:",
            "C|",
            "d|/",
            "a",
            "b",
            "localhost",
            "h.example",
            "1.2",
            "[::1]",
            ":80",
            ":443",
            "é",
            "\u{ad}",
            "\u{7f}",
            "'",
            "\"",
            "<",
            "`",
            "{",
            "file:",
            "http:",
            "x:",
            "\u{fffd}",
        ];
        let start = prop::sample::select(first.to_vec());
        let piece =
            prop_oneof![20 => prop::sample::select(pieces).prop_map(str::to_owned), 1 => any::<String>()];
        (start, prop::collection::vec(piece, 0..9))
            .prop_map(|(start, rest)| start.to_owned() + &rest.concat())
    }

    fn nasty_input() -> impl Strategy<Value = String> {
        nasty(&[
            "",
            "",
            "/",
            "//",
            "///",
            "file:",
            "FILE:/",
            "file://",
            "http:",
            "https://h",
            "x:",
            "x:/",
            "x://h",
        ])
    }

    fn nasty_base() -> impl Strategy<Value = Option<String>> {
        prop::option::of(nasty(&[
            "file:",
            "file://",
            "file://h/",
            "http://h/",
            "wss://h",
            "x:",
            "x:/",
            "x://h/",
            "",
        ]))
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 20_000,
            failure_persistence: None,
            rng_seed: RngSeed::Fixed(0), // the same cases each time; another number looks further
            ..ProptestConfig::default()
        })]

        #[test]
        fn nothing_panics_and_hrefs_are_their_own(input in nasty_input(), base in nasty_base()) {
            holds_for(&input, base.as_deref())?;
        }

        #[test]
        fn noise_does_no_harm(input in any::<String>(), base in nasty_base()) {
            holds_for(&input, base.as_deref())?;
        }
    }
}
