//! Shorthand: URLs in about half of their bytes, for texts that stay.
//!
//! A byte stands for one of 255 pieces of text that are frequent in URLs; the last one says that the byte behind it stands for
//! itself. Each text can be read by itself, which blocks that are compressed as a whole cannot.
//!
//! The pieces are the same for every store and for ever: what is written with them has to be read.

use std::sync::LazyLock;

/// What each byte stands for. Chosen by what some 1,800 URLs of 800 hosts have in common, without the names of hosts.
const PIECES: [&str; 255] = [
    "#", "%", "&", "+", ",", "-", ".", "/", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", ":", "=", "?",
    "A", "B", "C", "D", "E", "F", "G", "H", "I", "L", "M", "N", "P", "R", "S", "T", "W", "_", "a", "b", "c",
    "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t", "u", "v", "w", "x",
    "y", "z", "~", "-c", "-m", "-s", ".c", ".p", "/0", "/1", "/a", "/c", "/i", "/p", "/s", "00", "1.", "12",
    "2.", "2/", "20", "4.", "ad", "al", "am", "an", "ar", "at", "ba", "ce", "ch", "co", "ct", "d.", "de",
    "do", "e-", "e.", "e/", "ec", "en", "er", "es", "fr", "ge", "gi", "go", "ho", "ia", "ic", "id", "ie",
    "il", "in", "is", "it", "ke", "la", "le", "li", "ll", "lo", "ma", "me", "na", "ne", "nt", "od", "ol",
    "om", "on", "oo", "or", "pa", "pe", "pr", "ra", "re", "ri", "ro", "s-", "s.", "s/", "se", "si", "so",
    "sp", "ss", "st", "ta", "te", "th", "ti", "to", "tr", "ts", "um", "un", "ur", "us", "ut", "ve", "wi",
    "%2F", "-in", ".de", "/co", "and", "con", "ds/", "for", "id=", "ide", "ing", "ity", "lin", "net", "ter",
    "the", "tic", "ts/", "ust", "ver", "&id=", ".com", ".fr/", ".io/", ".jpg", ".pdf", ".php", ".png",
    ".uk/", "/201", "/en/", "?id=", "blog", "com/", "home", "html", "inte", "list", "load", "ment", "news",
    "nter", "open", "org/", "tion", "user", "utm_", "view", "www.", ".aspx", ".com/", ".html", ".net/",
    ".org/", "/img/", "ation", "docs.", "docs/", "event", "forum", "index", "media", "topic", "&page=",
    "/2024/", "/2025/", "/news/", "/page/", "?page=", "github", "s.com/", "s.html", "search", "source",
    "static", "thread", ".co.jp/", ".co.uk/", "/index.", "article", "develop", "http://", "images/",
    "product", "category", "https://", "nt/uploa", "research", "wp-conte",
];

/// The byte behind it stands for itself.
const ITSELF: u8 = 255;

/// The numbers of the pieces that begin with each byte, the longest first.
static BY_FIRST: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut by_first = vec![Vec::new(); 256];
    for (number, piece) in (0..ITSELF).zip(PIECES) {
        by_first[usize::from(piece.as_bytes()[0])].push(number);
    }
    for numbers in &mut by_first {
        numbers.sort_by_key(|number: &u8| std::cmp::Reverse(PIECES[usize::from(*number)].len()));
    }
    by_first
});

/// Bytes in shorthand; None if that is not shorter.
pub(crate) fn write(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut short = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(first) = rest.first() {
        if short.len() + 1 >= bytes.len() {
            return None;
        }
        let numbers = &BY_FIRST[usize::from(*first)];
        let piece = numbers.iter().find(|number| rest.starts_with(PIECES[usize::from(**number)].as_bytes()));
        let taken = match piece {
            Some(number) => {
                short.push(*number);
                PIECES[usize::from(*number)].len()
            }
            None => {
                short.extend([ITSELF, *first]);
                1
            }
        };
        rest = &rest[taken..];
    }
    (short.len() < bytes.len()).then_some(short)
}

/// The bytes that were written so; None if nothing was.
pub(crate) fn read(short: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(short.len() * 3);
    let mut numbers = short.iter();
    while let Some(number) = numbers.next() {
        match PIECES.get(usize::from(*number)) {
            Some(piece) => bytes.extend_from_slice(piece.as_bytes()),
            None => bytes.push(*numbers.next()?),
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_short_and_differ() {
        let mut pieces = PIECES.to_vec();
        pieces.sort_unstable();
        pieces.dedup();
        assert_eq!(pieces.len(), 255);
        assert!(pieces.iter().all(|piece| (1..=8).contains(&piece.len())));
    }

    /// What is in anybody's log was written with these.
    #[test]
    fn pieces_stay_as_they_are() {
        let all = PIECES.join("\n");
        assert_eq!(
            xxhash_rust::xxh3::xxh3_64(all.as_bytes()),
            0xacdf_a274_925c_c8b5,
            "write another table beside this one"
        );
    }

    #[test]
    fn whatever_is_written_is_read_again() {
        let mut bytes: Vec<u8> = (0..=255).collect();
        bytes.extend(b"https://www.example.com/2025/index.html?page=12&id=7".repeat(9));
        for begin in 0..bytes.len() {
            for end in begin..bytes.len().min(begin + 90) {
                let some = &bytes[begin..end];
                if let Some(short) = write(some) {
                    assert!(short.len() < some.len());
                    assert_eq!(read(&short).as_deref(), Some(some));
                }
            }
        }
        assert_eq!(write(b""), None);
        assert_eq!(write(&[7; 50]), None, "what is no URL does not grow");
    }

    #[test]
    fn any_bytes_are_something_or_nothing() {
        assert_eq!(read(&[ITSELF]), None);
        assert_eq!(read(&[0, ITSELF]), None);
        assert_eq!(read(&[ITSELF, ITSELF]).as_deref(), Some(&[255][..]));
        for first in 0..=255 {
            for second in 0..=255 {
                let _ = read(&[first, second]);
            }
        }
    }

    /// Of sites that had no part in choosing the pieces.
    #[test]
    fn usual_urls_take_about_half() {
        let urls = [
            "https://www.stadtwerke-muenchen.de/privatkunden/energie/strom/tarife-vergleichen",
            "https://www.bbc.co.uk/news/articles/c3r4knl2nd5o",
            "http://forum.heimwerker-tipps.example/viewtopic.php?f=12&t=48213&start=75",
            "https://shop.example-outdoor.com/collections/tents/products/two-person-tent-green",
            "https://www.lemonde.fr/planete/article/2025/11/14/le-climat-change_6583124_3244.html",
            "https://cdn.example.net/wp-content/uploads/2024/05/IMG_20240512_101530-1024x768.jpg",
            "https://developer.mozilla.org/en-US/docs/Web/API/Document_Object_Model/Introduction",
        ];
        let bytes: usize = urls.iter().map(|url| url.len()).sum();
        let short: usize = urls.iter().map(|url| write(url.as_bytes()).expect("shorter").len()).sum();
        assert!(short * 5 <= bytes * 3, "{short} of {bytes} bytes");
    }
}
