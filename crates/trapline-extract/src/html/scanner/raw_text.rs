//! Text in which tags are no tags: up to the end tag of its element, with the odd rules of scripts.

use memchr::{memchr, memchr3};

use super::{Escape, Scanner, Sink, State, TextKind, end_of_whole_references};
use crate::html::attributes::is_space;
use crate::html::tag::Tag;

impl Scanner {
    /// Text up to the end tag of its element.
    pub(super) fn raw(
        &mut self,
        text: &str,
        start: usize,
        last: bool,
        tag: Tag,
        sink: &mut impl Sink,
    ) -> usize {
        let kind = match tag {
            Tag::Title | Tag::Textarea => TextKind::Escapable(tag),
            _ => TextKind::Raw(tag),
        };
        let bytes = text.as_bytes();
        let mut from = start;
        while let Some(length) = memchr(b'<', &bytes[from..]) {
            let open = from + length;
            match ends_with_tag(&bytes[open..], b"</", tag.name(), last) {
                Match::Yes => {
                    if open > start {
                        sink.text(&text[start..open], kind);
                    }
                    return self.tag(text, open, sink);
                }
                Match::No => from = open + 1,
                Match::Unknown => {
                    if open > start {
                        sink.text(&text[start..open], kind);
                    }
                    return open;
                }
            }
        }
        let whole = last || !matches!(kind, TextKind::Escapable(_));
        let end = if whole { text.len() } else { end_of_whole_references(bytes, start) };
        if end > start {
            sink.text(&text[start..end], kind);
        }
        end
    }

    /// A script, up to its end tag.
    pub(super) fn script(
        &mut self,
        text: &str,
        start: usize,
        last: bool,
        mut escape: Escape,
        mut dashes: u8,
        sink: &mut impl Sink,
    ) -> usize {
        let bytes = text.as_bytes();
        let mut at = start;
        let mut tell_to = |end: usize| {
            if end > start {
                sink.text(&text[start..end], TextKind::Raw(Tag::Script));
            }
        };
        loop {
            let rest = &bytes[at..];
            let next = match escape {
                Escape::None => memchr(b'<', rest),
                _ => memchr3(b'<', b'-', b'>', rest),
            };
            let Some(length) = next else {
                let dashes = if rest.is_empty() { dashes } else { 0 };
                self.state = State::Script { escape, dashes };
                tell_to(text.len());
                return text.len();
            };
            if length > 0 {
                dashes = 0;
            }
            at += length;
            match bytes[at] {
                b'-' => {
                    dashes = (dashes + 1).min(2);
                    at += 1;
                    continue;
                }
                b'>' => {
                    if dashes == 2 {
                        escape = Escape::None;
                    }
                    dashes = 0;
                    at += 1;
                    continue;
                }
                _ => dashes = 0,
            }
            let rest = &bytes[at..];
            let (opening, after) = match escape {
                Escape::None if is_prefix_of_comment(rest, last) == Match::Yes => {
                    (escape, dashes) = (Escape::Once, 2);
                    at += 4;
                    continue;
                }
                Escape::None if is_prefix_of_comment(rest, last) == Match::Unknown => {
                    self.state = State::Script { escape, dashes };
                    tell_to(at);
                    return at;
                }
                Escape::None => (&b"</"[..], None),
                Escape::Once if rest.get(1).is_some_and(u8::is_ascii_alphabetic) => {
                    (&b"<"[..], Some(Escape::Twice))
                }
                Escape::Once => (&b"</"[..], None),
                Escape::Twice => (&b"</"[..], Some(Escape::Once)),
            };
            match (ends_with_tag(rest, opening, "script", last), after) {
                (Match::Yes, Some(after)) => {
                    escape = after;
                    // The byte that ended the name is part of the text, and not of any end of a comment.
                    at += opening.len() + "script".len() + 1;
                }
                (Match::Yes, None) => {
                    tell_to(at);
                    return self.tag(text, at, sink);
                }
                (Match::No, _) => at += 1,
                (Match::Unknown, _) => {
                    self.state = State::Script { escape, dashes };
                    tell_to(at);
                    return at;
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Match {
    Yes,
    No,
    /// More text would tell.
    Unknown,
}

/// Whether the bytes begin with `opening` and this name and something that ends a name.
fn ends_with_tag(bytes: &[u8], opening: &[u8], name: &str, last: bool) -> Match {
    let length = opening.len() + name.len();
    let known = &bytes[..bytes.len().min(length)];
    let (start, rest) = known.split_at(known.len().min(opening.len()));
    let matches = opening.starts_with(start) && name.as_bytes()[..rest.len()].eq_ignore_ascii_case(rest);
    if !matches {
        return Match::No;
    }
    match bytes.get(length) {
        Some(byte) if is_space(*byte) || matches!(byte, b'/' | b'>') => Match::Yes,
        Some(_) => Match::No,
        None if last => Match::No,
        None => Match::Unknown,
    }
}

fn is_prefix_of_comment(bytes: &[u8], last: bool) -> Match {
    if bytes.starts_with(b"<!--") {
        Match::Yes
    } else if !last && b"<!--".starts_with(bytes) && bytes.len() > 1 {
        Match::Unknown
    } else {
        Match::No
    }
}
