//! What `Content-Encoding` says: which codings, in which order.

use crate::head::Headers;

/// A content coding that can be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// `gzip`, also spelled `x-gzip`.
    Gzip,
    /// `deflate`, with the header that belongs there or without.
    Deflate,
    /// `br`.
    Brotli,
    /// `zstd`.
    Zstd,
}

/// The codings of a body, in the order in which they were applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Codings {
    known: Vec<Coding>,
    unknown: bool,
}

impl Codings {
    /// Those that a response names.
    pub fn of(headers: &Headers) -> Self {
        let mut codings = Self::default();
        for value in headers.all("content-encoding") {
            for name in value.split(|byte| *byte == b',') {
                match name.trim_ascii().to_ascii_lowercase().as_slice() {
                    b"" | b"identity" | b"none" => {}
                    b"gzip" | b"x-gzip" => codings.known.push(Coding::Gzip),
                    b"deflate" => codings.known.push(Coding::Deflate),
                    b"br" => codings.known.push(Coding::Brotli),
                    b"zstd" => codings.known.push(Coding::Zstd),
                    _ => codings.unknown = true,
                }
            }
        }
        codings
    }

    /// Those that can be undone.
    pub fn known(&self) -> &[Coding] {
        &self.known
    }

    /// Whether there are others.
    pub fn has_unknown(&self) -> bool {
        self.unknown
    }
}
