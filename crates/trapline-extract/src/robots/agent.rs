//! Product tokens: the names by which a robots.txt calls crawlers, and crawlers call themselves.

/// The product token at the beginning of an agent's name: up to the first byte that belongs to no token, such as the `/`
/// before a version. `*` stands for everybody; nothing is no token.
///
/// RFC 9309 knows only letters, `_` and `-`. Digits and dots are tokens to us too, because crawlers have them in their names.
pub(super) fn token(name: &[u8]) -> &str {
    let name = name.trim_ascii_start();
    if let [b'*', rest @ ..] = name
        && rest.first().is_none_or(|byte| !is_token(*byte))
    {
        return "*";
    }
    let end = name.iter().position(|byte| !is_token(*byte)).unwrap_or(name.len());
    // Tokens are ASCII.
    std::str::from_utf8(&name[..end]).unwrap_or_default()
}

pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_ends_where_the_version_begins() {
        let check = |name: &str, expected| assert_eq!(token(name.as_bytes()), expected, "{name}");
        check("FooBot", "FooBot");
        check(" FooBot/1.2", "FooBot");
        check("FooBot 1.2", "FooBot");
        check("Foo Bot", "Foo");
        check("foo-bot_news*", "foo-bot_news");
        check("360Spider", "360Spider");
        check("Mail.RU_Bot/2", "Mail.RU_Bot");
        check("*", "*");
        check("* # all", "*");
        check("*/1", "*");
        check("*bot", "");
        check("", "");
        check("/1.0", "");
        check("bücher", "b");
    }
}
