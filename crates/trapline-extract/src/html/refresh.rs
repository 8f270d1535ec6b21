//! `<meta http-equiv=refresh>` and the `Refresh` header: where readers are sent after a while.

/// Where a refresh leads, as the HTML Standard reads it. None if it is broken or only loads the page again.
pub(crate) fn refresh_target(value: &str) -> Option<&str> {
    let is_space = |character: char| matches!(character, '\t' | '\n' | '\u{c}' | '\r' | ' ');
    let rest = value.trim_start_matches(is_space);
    let digits = rest.len() - rest.trim_start_matches(|character: char| character.is_ascii_digit()).len();
    if digits == 0 && !rest.starts_with('.') {
        return None;
    }
    let rest =
        rest[digits..].trim_start_matches(|character: char| character.is_ascii_digit() || character == '.');
    if !rest.starts_with(|character| is_space(character) || matches!(character, ';' | ',')) {
        return None;
    }
    let rest = rest.trim_start_matches(is_space);
    let rest = rest.strip_prefix([';', ',']).unwrap_or(rest).trim_start_matches(is_space);
    if rest.is_empty() {
        return None;
    }
    let mut target = rest;
    if rest.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("url"))
        && let Some(after) = rest[3..].trim_start_matches(is_space).strip_prefix('=')
    {
        target = after.trim_start_matches(is_space);
    }
    match target.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let inside = &target[1..];
            Some(inside.split(quote).next().unwrap_or(inside))
        }
        _ => Some(target),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_as_the_standard_says() {
        let check =
            |value: &str, expected: Option<&str>| assert_eq!(refresh_target(value), expected, "{value}");
        check("0;url=a", Some("a"));
        check(" 5 ; URL = 'a b' c", Some("a b"));
        check("0;url=\"a", Some("a"));
        check("1.5,a", Some("a"));
        check(".;a", Some("a"));
        check("0 a", Some("a"));
        check("0;urla", Some("urla"));
        check("0;'a'", Some("a"));
        check("0;é", Some("é"));
        check("0;url é", Some("url é"));
        check("5", None);
        check("5;", None);
        check("5a;b", None);
        check("a;url=b", None);
        check("-1;url=b", None);
        check("", None);
    }
}
