//! What the jar keeps and sends, header by header.

use bytes::Bytes;
use trapline_core::parse_url;

use super::*;

const NOW: u64 = 1_800_000_000;

struct Try {
    jar: Jar,
}

impl Try {
    fn new(options: CookieOptions) -> Self {
        Self { jar: Jar::new(options) }
    }

    fn set(&self, url: &str, cookie: &str) -> &Self {
        let head = Bytes::from(format!("HTTP/1.1 200 OK\r\nSet-Cookie: {cookie}\r\n\r\n"));
        self.jar.store_at(&parse_url(url, None).unwrap(), &Headers::of_head(&head), NOW);
        self
    }

    #[track_caller]
    fn sends(&self, url: &str, expected: &str) -> &Self {
        self.sends_at(url, NOW, expected)
    }

    #[track_caller]
    fn sends_at(&self, url: &str, now: u64, expected: &str) -> &Self {
        let header = self.jar.header_at(&parse_url(url, None).unwrap(), now);
        let text = header.as_ref().map_or("", |header| header.to_str().unwrap());
        assert_eq!(text, expected, "{url}");
        self
    }
}

fn jar() -> Try {
    Try::new(CookieOptions::default())
}

#[test]
fn a_cookie_without_domain_goes_to_its_host_alone() {
    jar()
        .set("http://a.example.com/", "k=v")
        .sends("http://a.example.com/x", "k=v")
        .sends("http://a.example.com:8080/", "k=v")
        .sends("https://A.EXAMPLE.com./", "k=v")
        .sends("http://b.a.example.com/", "")
        .sends("http://example.com/", "");
}

#[test]
fn a_domain_cookie_goes_below_its_domain_and_nowhere_else() {
    jar()
        .set("http://a.example.com/", "k=v; Domain=.Example.com")
        .sends("http://example.com/", "k=v")
        .sends("http://x.y.example.com/", "k=v")
        .sends("http://notexample.com/", "")
        .sends("http://example.com.evil.net/", "");
}

#[test]
fn nobody_sets_cookies_for_others() {
    jar()
        .set("http://a.example.com/", "k=v; Domain=b.example.com")
        .set("http://a.example.com/", "k=v; Domain=com")
        .set("http://a.example.co.uk/", "k=v; Domain=co.uk")
        .set("http://a.github.io/", "k=v; Domain=github.io")
        .set("http://example.com/", "k=v; Domain=a.example.com")
        .set("http://10.0.0.1/", "k=v; Domain=0.0.1")
        .sends("http://a.example.com/", "")
        .sends("http://b.example.com/", "")
        .sends("http://b.example.co.uk/", "")
        .sends("http://b.github.io/", "")
        .sends("http://10.0.0.1/", "");
}

#[test]
fn who_is_a_public_suffix_has_cookies_of_its_own_only() {
    jar()
        .set("http://github.io/", "k=v; Domain=github.io")
        .sends("http://github.io/", "k=v")
        .sends("http://a.github.io/", "");
}

#[test]
fn addresses_have_cookies_of_their_own() {
    jar().set("http://127.0.0.1/", "k=v").sends("http://127.0.0.1:9/", "k=v").sends("http://127.0.0.2/", "");
}

#[test]
fn paths_bound_cookies_and_order_them() {
    jar()
        .set("http://a.example/shop/cart", "a=1")
        .set("http://a.example/shop/cart", "b=2; Path=/")
        .set("http://a.example/shop/cart", "c=3; Path=/shop/cart/")
        .set("http://a.example/shop/cart", "d=4; Path=nonsense")
        .sends("http://a.example/shop", "a=1; d=4; b=2")
        .sends("http://a.example/shop/cart/x", "c=3; a=1; d=4; b=2")
        .sends("http://a.example/shopping", "b=2");
}

#[test]
fn secure_cookies_stay_on_https() {
    jar()
        .set("https://a.example/", "s=1; Secure")
        .set("http://a.example/", "t=1; Secure")
        .set("https://a.example/", "__Secure-u=1")
        .set("https://a.example/", "__Host-v=1; Secure; Path=/")
        .set("https://a.b.example/", "__Host-w=1; Secure; Path=/; Domain=b.example")
        .sends("http://a.example/", "")
        .sends("https://a.example/", "s=1; __Host-v=1")
        .sends("https://a.b.example/", "");
}

#[test]
fn a_plain_connection_puts_nothing_in_the_place_of_a_secure_cookie() {
    jar()
        .set("https://a.example/", "s=1; Secure")
        .set("http://a.example/", "s=2")
        .set("http://a.example/", "s=; Max-Age=0")
        .sends("https://a.example/", "s=1")
        .set("https://a.example/", "s=3")
        .sends("http://a.example/", "s=3");
}

#[test]
fn cookies_end() {
    jar()
        .set("http://a.example/", "a=1; Max-Age=10")
        .set("http://a.example/", "b=2; Expires=Fri, 15 Jan 2027 08:00:10 GMT")
        .set("http://a.example/", "c=3; Max-Age=99999999999999999999")
        .set("http://a.example/", "d=4; Max-Age=5; Expires=Fri, 15 Jan 2039 08:00:10 GMT")
        .sends_at("http://a.example/", NOW + 9, "a=1; b=2; c=3")
        .sends_at("http://a.example/", NOW + 11, "c=3")
        .sends_at("http://a.example/", NOW + 31 * 86_400, "")
        .set("http://a.example/", "c=; Max-Age=0")
        .sends("http://a.example/", "a=1; b=2; d=4");
}

#[test]
fn what_is_set_again_replaces_and_keeps_its_place() {
    jar()
        .set("http://a.example/", "a=1")
        .set("http://a.example/", "b=2")
        .set("http://a.example/", "a=3")
        .sends("http://a.example/", "a=3; b=2");
}

#[test]
fn the_jar_has_bounds() {
    let small =
        CookieOptions { per_domain_max: 2, total_max: 3, cookie_bytes_max: 10, ..CookieOptions::default() };
    let jar = Try::new(small);
    jar.set("http://a.example/", "a=1").set("http://a.example/", "b=2").set("http://a.example/", "c=3");
    jar.sends("http://a.example/", "b=2; c=3");
    jar.set("http://b.example/", "d=4").set("http://c.example/", "e=5");
    jar.sends("http://a.example/", "c=3").sends("http://b.example/", "d=4").sends("http://c.example/", "e=5");
    jar.set("http://c.example/", "f=1234567890").sends("http://c.example/", "e=5");
    jar.set("http://c.example/", "f=1; Path=/1234567890").sends("http://c.example/1234567890", "e=5");
    for number in 0..1000 {
        jar.set(&format!("http://h{number}.example/"), "k=v");
    }
    assert_eq!(jar.jar.lock().ages.len(), 3);
    assert_eq!(jar.jar.lock().domains.len(), 3);
}

#[test]
fn cookies_that_are_not_ascii_do_not_keep_others_from_being_sent() {
    let jar = jar();
    jar.set("http://a.example/", "a=1").set("http://a.example/", "b=\u{e9}");
    let header = jar.jar.header_at(&parse_url("http://a.example/", None).unwrap(), NOW).unwrap();
    assert_eq!(header.as_bytes(), "a=1; b=\u{e9}".as_bytes());
}

#[test]
fn broken_cookies_are_left_out() {
    jar()
        .set("http://a.example/", "novalue")
        .set("http://a.example/", "=x")
        .set("http://a.example/", "a=b\u{1}c")
        .set("http://a.example/", "")
        .sends("http://a.example/", "");
}
