//! The byte form: what comes back is what went in, and nothing else comes in.

use trapline_extract::{BytesError, Robots};

const FILE: &[u8] = b"User-agent: a\nUser-agent: *\nCrawl-delay: 2.5\nDisallow: /\xc3\xa4*b$\nAllow: /c\n\
                      User-agent: b\nDisallow:\nSitemap: https://a.example/s.xml\n";

#[test]
fn what_was_kept_comes_back() {
    for robots in [
        Robots::parse(FILE),
        Robots::parse(b""),
        Robots::parse(&b"User-agent: x\nDisallow: /y\n".repeat(30_000)),
        Robots::allow_all(),
        Robots::disallow_all(),
    ] {
        let bytes = robots.to_bytes();
        assert_eq!(bytes[0], 1, "the version");
        let back = Robots::from_bytes(&bytes).unwrap();
        assert_eq!(back.to_bytes(), bytes);
        assert_eq!(back.is_truncated(), robots.is_truncated());
        assert!(back.faults().is_empty());
        for path in ["/", "/äxb", "/c"] {
            for agent in ["a", "b", "c"] {
                let (one, other) = (robots.for_agent(agent), back.for_agent(agent));
                assert_eq!(one.check_path(path), other.check_path(path));
                assert_eq!(one.crawl_delay(), other.crawl_delay());
            }
        }
        assert!(back.sitemaps().eq(robots.sitemaps()));
    }
}

#[test]
fn the_form_is_compact() {
    let robots = Robots::parse(FILE);
    assert!(robots.to_bytes().len() < FILE.len(), "{}", robots.to_bytes().len());
}

#[test]
fn no_changed_or_cut_form_makes_trouble() {
    let bytes = Robots::parse(FILE).to_bytes();
    for end in 0..bytes.len() {
        assert_eq!(Robots::from_bytes(&bytes[..end]), Err(BytesError::Damaged), "{end}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert_eq!(Robots::from_bytes(&longer), Err(BytesError::Damaged));
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[place] ^= 1 << bit;
            if let Ok(robots) = Robots::from_bytes(&changed) {
                // Something else that could have been written, then.
                assert_eq!(robots.to_bytes(), changed, "{place} {bit}");
                robots.for_agent("a").check_path("/äxb");
            }
        }
    }
}

#[test]
fn refusals_say_what_to_do() {
    let check = |bytes: &[u8], message| assert_eq!(Robots::from_bytes(bytes).unwrap_err().to_string(), message);
    check(
        &[2, 0, 0],
        "cannot read a kept robots.txt of version 2: this build knows version 1; fetch the file anew",
    );
    check(b"", "cannot read a kept robots.txt: it is damaged; fetch the file anew");
    // A count that promises more than there is.
    check(&[1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f], "cannot read a kept robots.txt: it is damaged; fetch the file anew");
    check(&vec![1; 5 << 20], "cannot read a kept robots.txt: it is damaged; fetch the file anew");
}
