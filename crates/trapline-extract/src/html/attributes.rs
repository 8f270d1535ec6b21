//! The attributes of one tag: where they stand in its text, found by the rules of the HTML Standard's tokenizer, and their
//! values on demand, with character references decoded. Not which of them are links.

use std::borrow::Cow;

/// Where an attribute stands. Positions fit: a tag is cut long before four gigabytes.
#[derive(Clone, Copy, Debug)]
struct Place {
    name: (u32, u32),
    value: (u32, u32),
}

/// Room for the places of attributes, used again for each tag.
#[derive(Debug, Default)]
pub(crate) struct Places {
    places: Vec<Place>,
    /// How many attributes of this tag were left out because there were too many.
    pub(crate) left_out: u64,
}

/// Which attributes are worth remembering.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wanted {
    /// None: an end tag.
    Nothing,
    /// Only `style`.
    Style,
    All,
}

/// Where a tag's text ends, and whether it said `/>`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TagEnd {
    pub(crate) end: usize,
    pub(crate) self_closing: bool,
}

const SPACE: u8 = 1;
const NAME_END: u8 = 2;
const UNQUOTED_END: u8 = 4;

/// What each byte is inside of a tag.
static CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let spaces = [b'\t', b'\n', 0x0c, b'\r', b' '];
    let mut at = 0;
    while at < spaces.len() {
        class[spaces[at] as usize] = SPACE | NAME_END | UNQUOTED_END;
        at += 1;
    }
    class[b'/' as usize] = NAME_END;
    class[b'>' as usize] = NAME_END | UNQUOTED_END;
    class[b'=' as usize] = NAME_END;
    class
};

#[inline]
fn is(class: u8, byte: u8) -> bool {
    CLASS[usize::from(byte)] & class != 0
}

/// Whether this byte is one of HTML's spaces.
pub(crate) fn is_space(byte: u8) -> bool {
    is(SPACE, byte)
}

impl Places {
    /// Finds the attributes in a tag's text from `start` on, which is where its name ends. None if the text ends before
    /// the tag does; the attributes that are complete are remembered then too.
    #[inline]
    pub(crate) fn read(
        &mut self,
        text: &[u8],
        start: usize,
        wanted: Wanted,
        count_max: usize,
    ) -> Option<TagEnd> {
        self.places.clear();
        self.left_out = 0;
        let mut at = start;
        loop {
            loop {
                match *text.get(at)? {
                    b'>' => return Some(TagEnd { end: at + 1, self_closing: false }),
                    b'/' => {
                        at += 1;
                        if *text.get(at)? == b'>' {
                            return Some(TagEnd { end: at + 1, self_closing: true });
                        }
                    }
                    byte if is(SPACE, byte) => at += 1,
                    _ => break,
                }
            }
            let name_start = at;
            // Whatever it is, an equals sign too, it begins the name.
            at += 1;
            while !is(NAME_END, *text.get(at)?) {
                at += 1;
            }
            let name_end = at;
            while is(SPACE, *text.get(at)?) {
                at += 1;
            }
            let mut value = (at, at);
            if text[at] == b'=' {
                at += 1;
                while is(SPACE, *text.get(at)?) {
                    at += 1;
                }
                match text[at] {
                    quote @ (b'"' | b'\'') => {
                        at += 1;
                        let length = memchr::memchr(quote, text.get(at..)?)?;
                        value = (at, at + length);
                        at += length + 1;
                    }
                    b'>' => value = (at, at),
                    _ => {
                        let value_start = at;
                        while !is(UNQUOTED_END, *text.get(at)?) {
                            at += 1;
                        }
                        value = (value_start, at);
                    }
                }
            }
            let keep = match wanted {
                Wanted::Nothing => false,
                Wanted::Style => text[name_start..name_end].eq_ignore_ascii_case(b"style"),
                Wanted::All => true,
            };
            if keep {
                if self.places.len() < count_max {
                    self.places.push(Place {
                        name: (name_start as u32, name_end as u32),
                        value: (value.0 as u32, value.1 as u32),
                    });
                } else {
                    self.left_out += 1;
                }
            }
        }
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.places.capacity() * size_of::<Place>()
    }

    /// The attributes of the tag that was read last, whose text this is.
    pub(crate) fn of<'t>(&'t self, text: &'t str) -> Attributes<'t> {
        Attributes { text, places: &self.places }
    }
}

/// The attributes of one tag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes<'t> {
    text: &'t str,
    places: &'t [Place],
}

impl<'t> Attributes<'t> {
    /// The value of the first attribute of this name, which is in lower case. Later ones of the same name do not count.
    pub(crate) fn get(&self, name: &str) -> Option<Cow<'t, str>> {
        self.raw(name).map(decoded)
    }

    /// The same before anything in it is decoded: enough to see whether there is anything.
    pub(crate) fn raw(&self, name: &str) -> Option<&'t str> {
        let place = self.places.iter().find(|place| {
            (place.name.1 - place.name.0) as usize == name.len()
                && self.slice(place.name).as_bytes().eq_ignore_ascii_case(name.as_bytes())
        })?;
        Some(self.slice(place.value))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn slice(&self, place: (u32, u32)) -> &'t str {
        // Always within, and always between characters: names and values end at ASCII.
        self.text.get(place.0 as usize..place.1 as usize).unwrap_or_default()
    }

    /// All attributes, names in lower case, first ones only.
    #[cfg(test)]
    pub(crate) fn all(&self) -> Vec<(String, String)> {
        let mut all: Vec<(String, String)> = Vec::new();
        for place in self.places {
            let name = self.slice(place.name).to_ascii_lowercase().replace('\0', "\u{fffd}");
            if all.iter().all(|(known, _)| *known != name) {
                all.push((name, decoded(self.slice(place.value)).into_owned()));
            }
        }
        all
    }
}

/// The value of an attribute as the standard's parser gives it: line ends as LF, NUL as U+FFFD, references decoded.
pub(crate) fn decoded(raw: &str) -> Cow<'_, str> {
    let odd = raw.bytes().fold(false, |odd, byte| odd | matches!(byte, b'&' | b'\r' | 0));
    if !odd {
        return Cow::Borrowed(raw);
    }
    let plain = normalized(raw);
    if plain.contains('&') { Cow::Owned(htmlize::unescape_attribute(plain).into_owned()) } else { plain }
}

/// Line ends as LF and NUL as U+FFFD.
pub(crate) fn normalized(raw: &str) -> Cow<'_, str> {
    if memchr::memchr2(b'\r', 0, raw.as_bytes()).is_none() {
        return Cow::Borrowed(raw);
    }
    Cow::Owned(raw.replace("\r\n", "\n").replace('\r', "\n").replace('\0', "\u{fffd}"))
}

/// Finds where a tag ends that does not lie in one piece, keeping nothing but its place in the grammar.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum EndFinder {
    TagName,
    BeforeName,
    Slash,
    Name,
    AfterName,
    BeforeValue,
    Quoted(u8),
    Unquoted,
}

impl EndFinder {
    /// Reads on. None if the tag goes on after this piece.
    pub(crate) fn read(&mut self, piece: &[u8]) -> Option<TagEnd> {
        let mut at = 0;
        while let Some(&byte) = piece.get(at) {
            if let Self::Quoted(quote) = *self {
                at += memchr::memchr(quote, &piece[at..])? + 1;
                *self = Self::BeforeName;
                continue;
            }
            if byte == b'>' {
                return Some(TagEnd { end: at + 1, self_closing: *self == Self::Slash });
            }
            *self = match (*self, byte) {
                (Self::Unquoted, _) if is(SPACE, byte) => Self::BeforeName,
                (Self::Unquoted, _) => Self::Unquoted,
                (Self::BeforeValue, b'"' | b'\'') => Self::Quoted(byte),
                (Self::BeforeValue, _) if is(SPACE, byte) => Self::BeforeValue,
                (Self::BeforeValue, _) => Self::Unquoted,
                (_, b'/') => Self::Slash,
                (Self::Name | Self::AfterName, b'=') => Self::BeforeValue,
                (Self::Name | Self::AfterName, _) if is(SPACE, byte) => Self::AfterName,
                (Self::TagName, _) if !is(SPACE, byte) => Self::TagName,
                (_, _) if is(SPACE, byte) => Self::BeforeName,
                (_, _) => Self::Name,
            };
            at += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tag: &str, expected: &[(&str, &str)]) {
        let mut places = Places::default();
        let start = 1 + tag[1..].find([' ', '/', '>', '\t', '\n', '\r', '\u{c}']).unwrap_or(tag.len() - 1);
        let end = places.read(tag.as_bytes(), start, Wanted::All, 100);
        let found = places.of(tag).all();
        let found = found.iter().map(|(name, value)| (&name[..], &value[..])).collect::<Vec<_>>();
        assert_eq!(found, expected, "{tag}");
        for split in 0..=tag.len() {
            let mut finder = EndFinder::TagName;
            let (first, second) = tag.as_bytes().split_at(split);
            let first_end = finder.read(first.get(1..).unwrap_or_default());
            let found = first_end.map(|found| TagEnd { end: found.end + 1, ..found }).or_else(|| {
                let skipped = usize::from(split == 0);
                let found = finder.read(&second[skipped..])?;
                Some(TagEnd { end: found.end + split + skipped, ..found })
            });
            assert_eq!(found, end, "{tag} split at {split}");
        }
    }

    #[test]
    fn attributes_are_read_as_the_standard_says() {
        check("<a>", &[]);
        check("<a/>", &[]);
        check("<a href=x>", &[("href", "x")]);
        check("<a HREF = 'x' >", &[("href", "x")]);
        check("<a href=\"a>b\"id=c>", &[("href", "a>b"), ("id", "c")]);
        check("<a href='a>b' id='>'>", &[("href", "a>b"), ("id", ">")]);
        check("<a href=x/>", &[("href", "x/")]);
        check("<a b/c=d / e>", &[("b", ""), ("c", "d"), ("e", "")]);
        check("<a =b=c ==d>", &[("=b", "c"), ("=", "d")]);
        check("<a b=>", &[("b", "")]);
        check("<a b= >", &[("b", "")]);
        check("<a b='' c>", &[("b", ""), ("c", "")]);
        check("<a b\"c='d\"'>", &[("b\"c", "d\"")]);
        check("<a b=c\"d'e<f=g>", &[("b", "c\"d'e<f=g")]);
        check("<a b=1 B=2 b>", &[("b", "1")]);
        check("<a\u{c}b\r=\n\tc>", &[("b", "c")]);
        check("<a b\0='\0\r\n\r'>", &[("b\u{fffd}", "\u{fffd}\n\n")]);
        check("<a é=ü>", &[("é", "ü")]);
        check("<a/ /b/=/c>", &[("b", ""), ("=", ""), ("c", "")]);
    }

    #[test]
    fn what_is_complete_counts_though_the_tag_is_not() {
        check("<a b=c d='e' f='g", &[("b", "c"), ("d", "e")]);
        check("<a b", &[]);
        check("<a b=\"", &[]);
        check("<a", &[]);
        check("<a b /", &[("b", "")]);
    }

    #[test]
    fn references_are_decoded_by_the_rules_for_attributes() {
        let check = |raw: &str, expected: &str| assert_eq!(decoded(raw), expected, "{raw}");
        check("plain", "plain");
        check("a?b&amp;c=1&copy=2&copyd&copy;", "a?b&c=1&copy=2&copyd©");
        check("&#65;&#x42;&#67&#x;&#;&", "ABC&#x;&#;&");
        check("&#0;&#x110000;&#xd800;&#128;&#x9f;", "\u{fffd}\u{fffd}\u{fffd}€Ÿ");
        check("&notit;&notin;&NotEqualTilde;", "&notit;∉≂\u{338}");
        check("&amp", "&");
        check("&AMP;&LT;&nosuch;", "&<&nosuch;");
        check("&#99999999999999999999;", "\u{fffd}");
    }

    #[test]
    fn only_so_many_attributes_are_remembered() {
        let tag = format!("<a {}>", "b ".repeat(10));
        let mut places = Places::default();
        assert!(places.read(tag.as_bytes(), 2, Wanted::All, 4).is_some());
        assert_eq!((places.places.len(), places.left_out), (4, 6));
    }
}
