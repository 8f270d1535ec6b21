//! The HTML Standard's tokenizer, as far as links, facts and visible text need it: pieces of text in, tags and text out.
//!
//! It works on decoded text in one pass and may be fed in pieces of any size: where the pieces are cut makes no difference.
//! What it holds back between two pieces is bounded: a few bytes of text, or the beginning of one tag up to a cap. It builds
//! no tree; what a tree would say about the state it must be in comes from the tag's name and from [`Foreign`]. Scripting
//! is off: what is in `noscript` is markup.
//!
//! Comments and document types are passed over. Errors are not reported: on the web they are the rule.

mod passed_over;
mod raw_text;

use memchr::memchr;

use super::attributes::{Attributes, EndFinder, Places, TagEnd, Wanted};
use super::foreign::Foreign;
use super::tag::Tag;

/// Who is told what the scanner finds.
pub(crate) trait Sink {
    /// Which attributes of this start tag are of interest. Fewer are faster.
    fn wanted(&self, tag: Tag) -> Wanted;
    /// A start tag. `is_html` is false inside of drawings and formulas.
    fn start_tag(&mut self, tag: Tag, attributes: &Attributes<'_>, is_html: bool);
    /// An end tag.
    fn end_tag(&mut self, tag: Tag);
    /// A run of text, undecoded. References are whole unless they are longer than [`REFERENCE_BYTES_MAX`].
    fn text(&mut self, text: &str, kind: TextKind);
}

/// What a run of text stands in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TextKind {
    /// Ordinary text, with references to decode.
    Text,
    /// Text of this element that holds references but no tags: `title`, `textarea`.
    Escapable(Tag),
    /// Text of this element that stands for itself: `style`, `script`, `xmp`, `plaintext` and others.
    Raw(Tag),
}

/// A reference in text that is longer than this is plain text. The longest name has 33 bytes; only leading zeros of numbers
/// can go on for ever.
pub(crate) const REFERENCE_BYTES_MAX: usize = 64;

/// How far a script is inside of what looks like an HTML comment, which hides end tags from old browsers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Escape {
    None,
    Once,
    Twice,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Data,
    /// Inside of an element whose text holds no tags but its own end tag.
    Raw(Tag),
    /// `dashes` counts up to two that stand immediately before.
    Script {
        escape: Escape,
        dashes: u8,
    },
    Plaintext,
    /// Inside of a tag that does not lie in one piece.
    Tag(EndFinder),
    /// The last three bytes so far, or as many as there are.
    Comment {
        tail: [u8; 3],
        length: u8,
    },
    /// A document type or something else that ends with the next `>`.
    Bogus,
    /// How many `]` stand immediately before, up to two.
    CData {
        brackets: u8,
    },
}

/// The tokenizer's place in a page.
#[derive(Debug)]
pub(crate) struct Scanner {
    state: State,
    foreign: Foreign,
    places: Places,
    /// Text that cannot be understood before more comes. Always short.
    held: String,
    /// The beginning of a tag that does not lie in one piece.
    tag: String,
    tag_is_cut: bool,
    limits: TagLimits,
    /// How many tags were longer than the cap.
    pub(crate) cut_tags: u64,
    /// How many attributes were not looked at because their tag had too many.
    pub(crate) left_out_attributes: u64,
}

/// The caps of a tag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TagLimits {
    pub(crate) tag_bytes_max: usize,
    pub(crate) attributes_max: usize,
}

impl Scanner {
    pub(crate) fn new(limits: TagLimits) -> Self {
        Self {
            state: State::Data,
            foreign: Foreign::default(),
            places: Places::default(),
            held: String::new(),
            tag: String::new(),
            tag_is_cut: false,
            limits,
            cut_tags: 0,
            left_out_attributes: 0,
        }
    }

    /// How many bytes are held between two pieces.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held.capacity() + self.tag.capacity() + self.places.held_bytes()
    }

    /// Reads on.
    pub(crate) fn feed(&mut self, text: &str, sink: &mut impl Sink) {
        if self.held.is_empty() {
            let read = self.scan(text, false, sink);
            self.held.push_str(&text[read..]);
        } else {
            let mut whole = std::mem::take(&mut self.held);
            whole.push_str(text);
            let read = self.scan(&whole, false, sink);
            whole.drain(..read);
            whole.shrink_to(REFERENCE_BYTES_MAX);
            self.held = whole;
        }
    }

    /// Reads what was held back. A tag that is not finished is none.
    pub(crate) fn finish(&mut self, sink: &mut impl Sink) {
        let rest = std::mem::take(&mut self.held);
        self.scan(&rest, true, sink);
    }

    /// Reads as much as can be understood, and answers how much that was: all of it if it is the last.
    fn scan(&mut self, text: &str, last: bool, sink: &mut impl Sink) -> usize {
        let mut at = 0;
        while at < text.len() {
            let before = (at, self.state);
            at = match self.state {
                State::Data => self.data(text, at, last, sink),
                State::Raw(tag) => self.raw(text, at, last, tag, sink),
                State::Script { escape, dashes } => self.script(text, at, last, escape, dashes, sink),
                State::Plaintext => {
                    sink.text(&text[at..], TextKind::Raw(Tag::Plaintext));
                    text.len()
                }
                State::Tag(finder) => self.rest_of_tag(text, at, finder, sink),
                State::Comment { tail, length } => self.comment(text, at, tail, length),
                State::Bogus => match memchr(b'>', &text.as_bytes()[at..]) {
                    Some(length) => {
                        self.state = State::Data;
                        at + length + 1
                    }
                    None => text.len(),
                },
                State::CData { brackets } => self.cdata(text.as_bytes(), at, brackets),
            };
            if (at, self.state) == before {
                break;
            }
        }
        at
    }

    /// Text and the tags in it, until the state changes.
    fn data(&mut self, text: &str, start: usize, last: bool, sink: &mut impl Sink) -> usize {
        let bytes = text.as_bytes();
        let mut at = start;
        loop {
            let Some(length) = memchr(b'<', &bytes[at..]) else {
                let end = if last { text.len() } else { end_of_whole_references(bytes, at) };
                if end > at {
                    sink.text(&text[at..end], TextKind::Text);
                }
                return end;
            };
            let open = at + length;
            if open > at {
                sink.text(&text[at..open], TextKind::Text);
            }
            at = match bytes.get(open + 1) {
                Some(b'a'..=b'z' | b'A'..=b'Z') => self.tag(text, open, sink),
                Some(b'/') => match bytes.get(open + 2) {
                    Some(b'a'..=b'z' | b'A'..=b'Z') => self.tag(text, open, sink),
                    Some(b'>') => open + 3,
                    Some(_) => {
                        self.state = State::Bogus;
                        open + 2
                    }
                    None if last => {
                        sink.text("</", TextKind::Text);
                        return open + 2;
                    }
                    None => return open,
                },
                Some(b'!') => match self.declaration(&bytes[open + 2..], last) {
                    Some(length) => open + 2 + length,
                    None => return open,
                },
                Some(b'?') => {
                    self.state = State::Bogus;
                    open + 1
                }
                Some(_) => {
                    sink.text("<", TextKind::Text);
                    open + 1
                }
                None if last => {
                    sink.text("<", TextKind::Text);
                    return open + 1;
                }
                None => return open,
            };
            if self.state != State::Data {
                return at;
            }
        }
    }

    /// What follows `<!`: enters its state and answers how many bytes it took to know, or None if more are needed.
    fn declaration(&mut self, rest: &[u8], last: bool) -> Option<usize> {
        const CDATA: &[u8] = b"[CDATA[";
        let may_become = |word: &[u8]| !last && rest.len() < word.len() && word.starts_with(rest);
        if rest.starts_with(b"--") {
            self.state = State::Comment { tail: [0; 3], length: 0 };
            return Some(2);
        }
        let is_foreign = !self.foreign.is_html();
        if is_foreign && rest.starts_with(CDATA) {
            self.state = State::CData { brackets: 0 };
            return Some(CDATA.len());
        }
        if may_become(b"--") || is_foreign && may_become(CDATA) {
            return None;
        }
        self.state = State::Bogus;
        Some(0)
    }

    /// A tag that begins at `open`. Where it ends, if it lies in one piece; otherwise the state remembers where we are.
    #[inline]
    fn tag(&mut self, text: &str, open: usize, sink: &mut impl Sink) -> usize {
        let bytes = text.as_bytes();
        let within = if bytes.len() - open > self.limits.tag_bytes_max {
            text.floor_char_boundary(open + self.limits.tag_bytes_max)
        } else {
            bytes.len()
        };
        let is_end = bytes[open + 1] == b'/';
        let (tag, name_end) = Tag::read(&bytes[..within], open + 1 + usize::from(is_end));
        let wanted = if is_end { Wanted::Nothing } else { self.wanted(tag, sink) };
        match self.places.read(&bytes[open..within], name_end - open, wanted, self.limits.attributes_max) {
            Some(TagEnd { end, self_closing }) => {
                let end = open + end;
                if is_end {
                    self.end_tag(tag, sink);
                } else {
                    self.start_tag(tag, &text[open..end], self_closing, sink);
                }
                end
            }
            None => {
                self.tag.clear();
                self.tag_is_cut = false;
                self.tag.push('<');
                self.state = State::Tag(EndFinder::TagName);
                open + 1
            }
        }
    }

    /// The rest of a tag that does not lie in one piece.
    fn rest_of_tag(&mut self, text: &str, at: usize, mut finder: EndFinder, sink: &mut impl Sink) -> usize {
        // The slash of an end tag is not one that closes itself.
        let skip = usize::from(self.tag == "<" && text.as_bytes()[at] == b'/');
        let found = finder.read(&text.as_bytes()[at + skip..]);
        let end = found.map_or(text.len(), |found| at + skip + found.end);
        self.keep_of_tag(&text[at..end]);
        let Some(TagEnd { self_closing, .. }) = found else {
            self.state = State::Tag(finder);
            return end;
        };
        self.state = State::Data;
        let whole = std::mem::take(&mut self.tag);
        let bytes = whole.as_bytes();
        let is_end = bytes.get(1) == Some(&b'/');
        let (tag, name_end) = Tag::read(bytes, 1 + usize::from(is_end));
        let wanted = if is_end { Wanted::Nothing } else { self.wanted(tag, sink) };
        // A tag that was cut has no end, but the attributes before the cut count.
        let _ = self.places.read(bytes, name_end, wanted, self.limits.attributes_max);
        if is_end {
            self.end_tag(tag, sink);
        } else {
            self.start_tag(tag, &whole, self_closing, sink);
        }
        self.tag = whole;
        self.tag.clear();
        self.tag.shrink_to(1 << 16);
        end
    }

    fn keep_of_tag(&mut self, piece: &str) {
        if self.tag_is_cut {
            return;
        }
        let room = self.limits.tag_bytes_max.saturating_sub(self.tag.len());
        self.tag.push_str(&piece[..piece.floor_char_boundary(room)]);
        if piece.len() > room {
            self.tag_is_cut = true;
            self.cut_tags += 1;
        }
    }

    fn wanted(&self, tag: Tag, sink: &impl Sink) -> Wanted {
        // Inside of drawings some attributes decide what comes next.
        if self.foreign.concerns(tag) { Wanted::All } else { sink.wanted(tag) }
    }

    fn start_tag(&mut self, tag: Tag, text: &str, self_closing: bool, sink: &mut impl Sink) {
        self.left_out_attributes += self.places.left_out;
        let attributes = self.places.of(text);
        let is_html = !self.foreign.concerns(tag) || self.foreign.start(tag, &attributes, self_closing);
        sink.start_tag(tag, &attributes, is_html);
        self.state = State::Data;
        if !is_html {
            return;
        }
        self.state = match tag {
            Tag::Script => State::Script { escape: Escape::None, dashes: 0 },
            Tag::Title
            | Tag::Textarea
            | Tag::Style
            | Tag::Xmp
            | Tag::Iframe
            | Tag::Noembed
            | Tag::Noframes => State::Raw(tag),
            Tag::Plaintext => State::Plaintext,
            _ => return,
        };
    }

    fn end_tag(&mut self, tag: Tag, sink: &mut impl Sink) {
        self.state = State::Data;
        self.foreign.end(tag);
        sink.end_tag(tag);
    }
}

/// Where a run of text ends that is sure not to cut a reference in two.
fn end_of_whole_references(bytes: &[u8], start: usize) -> usize {
    let near = start.max(bytes.len().saturating_sub(REFERENCE_BYTES_MAX));
    match memchr::memrchr(b'&', &bytes[near..]) {
        Some(at)
            if bytes[near + at + 1..].iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'#') =>
        {
            near + at
        }
        _ => bytes.len(),
    }
}
