//! The names of tags that make a difference to us, as numbers that are quick to compare. All others are
//! [`Tag::Other`]. What a tag means for links is said in `reader.rs`, what it means for the scanner's state in `foreign.rs`
//! and `scanner.rs`.

macro_rules! tags {
    (short { $($short:ident $short_name:literal,)* } long { $($long:ident $long_name:literal,)* }) => {
        /// A tag by name.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        #[repr(u8)]
        pub(crate) enum Tag {
            /// A name that means nothing to us.
            Other,
            $($short,)*
            $($long,)*
        }

        impl Tag {
            /// In lower case; empty for all that mean nothing to us.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    Self::Other => "",
                    $(Self::$short => $short_name,)*
                    $(Self::$long => $long_name,)*
                }
            }

            /// The tag of a name of more than eight bytes.
            fn of_long(name: &[u8]) -> Self {
                $(if name.eq_ignore_ascii_case($long_name.as_bytes()) {
                    return Self::$long;
                })*
                Self::Other
            }
        }

        const SHORT: &[(&str, Tag)] = &[$(($short_name, Tag::$short),)*];
    };
}

tags! {
    short {
        A "a", Abbr "abbr", Acronym "acronym", Area "area", Article "article", Aside "aside", Audio "audio", B "b",
        Base "base", Bdi "bdi", Bdo "bdo", Big "big", Body "body", Br "br", Button "button", Center "center",
        Cite "cite", Code "code", Data "data", Dd "dd", Del "del", Desc "desc", Dfn "dfn", Div "div", Dl "dl", Dt "dt",
        Em "em", Embed "embed", Fieldset "fieldset", Figure "figure", Font "font", Footer "footer", Form "form",
        Frame "frame", H1 "h1", H2 "h2", H3 "h3", H4 "h4", H5 "h5", H6 "h6", Head "head", Header "header", Hr "hr",
        Html "html", I "i", Iframe "iframe", Image "image", Img "img", Input "input", Ins "ins", Kbd "kbd",
        Label "label", Li "li", Link "link", Listing "listing", Main "main", Mark "mark", Math "math", Menu "menu",
        Meta "meta", Mi "mi", Mn "mn", Mo "mo", Ms "ms", Mtext "mtext", Nav "nav", Nobr "nobr", Noembed "noembed",
        Noframes "noframes", Object "object", Ol "ol", P "p", Pre "pre", Q "q", Ruby "ruby", S "s", Samp "samp",
        Script "script", Section "section", Select "select", Small "small", Source "source", Span "span",
        Strike "strike", Strong "strong", Style "style", Sub "sub", Sup "sup", Svg "svg", Table "table",
        Tbody "tbody", Td "td", Template "template", Textarea "textarea", Tfoot "tfoot", Th "th", Thead "thead",
        Time "time", Title "title", Tr "tr", Track "track", Tt "tt", U "u", Ul "ul", Use "use", Var "var",
        Video "video", Wbr "wbr", Xmp "xmp",
    }
    long {
        AnnotationXml "annotation-xml", Blockquote "blockquote", ForeignObject "foreignobject", Plaintext "plaintext",
    }
}

/// For each byte of a tag's name: itself in lower case, or zero where the name ends. NUL, which stands for U+FFFD there,
/// is none of the bytes of a name that we know.
static NAME: [u8; 256] = {
    let mut bytes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        bytes[byte] = match byte as u8 {
            b'\t' | b'\n' | 0x0c | b'\r' | b' ' | b'/' | b'>' => 0,
            0 => 0xff,
            other => other.to_ascii_lowercase(),
        };
        byte += 1;
    }
    bytes
};

const SLOTS: usize = 512;

const fn slot(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55) as usize
}

/// The short names by their bytes, each in its slot or in the next free one. Three slots in four are free, so that a name
/// that is not there is known not to be after a look or two.
static TABLE: [(u64, Tag); SLOTS] = {
    let mut table = [(0, Tag::Other); SLOTS];
    let mut at = 0;
    while at < SHORT.len() {
        let (name, tag) = SHORT[at];
        let name = name.as_bytes();
        let mut key = 0;
        let mut byte = 0;
        while byte < name.len() {
            key = key << 8 | name[byte] as u64;
            byte += 1;
        }
        let mut place = slot(key);
        while table[place].0 != 0 {
            place = (place + 1) % SLOTS;
        }
        table[place] = (key, tag);
        at += 1;
    }
    table
};

impl Tag {
    /// Reads the name of a tag that begins at `start`: which it is, and where the name ends (at the end of the bytes,
    /// if nothing ends it).
    #[inline]
    pub(crate) fn read(bytes: &[u8], start: usize) -> (Self, usize) {
        let mut key = 0u64;
        let mut end = start;
        while let Some(byte) = bytes.get(end) {
            let lower = NAME[usize::from(*byte)];
            if lower == 0 {
                break;
            }
            key = key << 8 | u64::from(lower);
            end += 1;
        }
        if end - start > 8 {
            return (Self::of_long(&bytes[start..end]), end);
        }
        let mut place = slot(key);
        loop {
            let (found, tag) = TABLE[place];
            if found == key {
                return (tag, end);
            }
            if found == 0 {
                return (Self::Other, end);
            }
            place = (place + 1) % SLOTS;
        }
    }

    /// Whether a word may go on across this tag: `<b>w</b>ord` is one word.
    pub(crate) fn is_inside_words(self) -> bool {
        use Tag::{
            A, Abbr, Acronym, B, Bdi, Bdo, Big, Cite, Code, Data, Del, Dfn, Em, Font, I, Ins, Kbd, Mark,
            Nobr, Q, S, Samp, Small, Span, Strike, Strong, Sub, Sup, Time, Tt, U, Var, Wbr,
        };
        matches!(
            self,
            A | Abbr
                | Acronym
                | B
                | Bdi
                | Bdo
                | Big
                | Cite
                | Code
                | Data
                | Del
                | Dfn
                | Em
                | Font
                | I
                | Ins
                | Kbd
                | Mark
                | Nobr
                | Q
                | S
                | Samp
                | Small
                | Span
                | Strike
                | Strong
                | Sub
                | Sup
                | Time
                | Tt
                | U
                | Var
                | Wbr
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_in_any_case_and_nothing_else_is() {
        let check = |text: &str, name: &str, end: usize| {
            let (tag, found_end) = Tag::read(text.as_bytes(), 1);
            assert_eq!((tag.name(), found_end), (name, end), "{text:?}");
        };
        for (name, tag) in SHORT {
            assert_eq!(tag.name(), *name);
            check(&format!("<{name}>"), name, 1 + name.len());
            check(&format!("<{}/>", name.to_uppercase()), name, 1 + name.len());
            check(&format!("<{name}\0>"), "", 2 + name.len());
            check(&format!("<{name}é >"), "", 3 + name.len());
        }
        check("<annotation-XML encoding=x>", "annotation-xml", 15);
        check("<blockquote", "blockquote", 11);
        check("<blockquotes", "", 12);
        check("<xxxxxxxxa>", "", 10);
        check("<a\u{c}>", "a", 2);
        check("<a", "a", 2);
        check("<a\"b>", "", 4);
    }
}
