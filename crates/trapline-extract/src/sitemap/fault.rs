//! What can be wrong with a sitemap. Nothing of it keeps the rest from being read.

use std::fmt;

/// Something wrong, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SitemapFault {
    /// How many bytes of the text, unpacked and as UTF-8, had been read by then.
    pub at: u64,
    /// What it is.
    pub kind: SitemapFaultKind,
}

/// What is wrong with a sitemap, and what was made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SitemapFaultKind {
    /// There is nothing in it.
    Empty,
    /// The gzip stream is broken. What came out of it counts.
    Gzip,
    /// It has bytes that are not text in its encoding. They became U+FFFD.
    NotText,
    /// It is longer than is read.
    TooLong,
    /// It has more entries than are read.
    TooManyEntries,
    /// It is XML, but nothing that lists pages.
    UnknownRoot,
    /// The XML is broken here. Reading went on behind it.
    BrokenXml,
    /// The XML is broken so often that reading stopped.
    TooBroken,
    /// It has a document type, which was passed over.
    DocType,
    /// It names an entity that XML does not have. It became the text that it was.
    Entity,
    /// An entry has no address.
    NoUrl,
    /// An address is longer than is taken.
    LongUrl,
    /// An address is none.
    BadUrl,
    /// An address is not of the web.
    OtherScheme,
    /// A date cannot be read.
    BadDate,
    /// A priority is no number from 0 to 1.
    BadPriority,
    /// A change frequency is none of the protocol's words.
    BadFrequency,
}

impl SitemapFaultKind {
    /// A name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Gzip => "gzip",
            Self::NotText => "not_text",
            Self::TooLong => "too_long",
            Self::TooManyEntries => "too_many_entries",
            Self::UnknownRoot => "unknown_root",
            Self::BrokenXml => "broken_xml",
            Self::TooBroken => "too_broken",
            Self::DocType => "doctype",
            Self::Entity => "entity",
            Self::NoUrl => "no_url",
            Self::LongUrl => "long_url",
            Self::BadUrl => "bad_url",
            Self::OtherScheme => "other_scheme",
            Self::BadDate => "bad_date",
            Self::BadPriority => "bad_priority",
            Self::BadFrequency => "bad_frequency",
        }
    }
}

impl fmt::Display for SitemapFaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "there is nothing in it",
            Self::Gzip => "the gzip stream is broken; what came out of it counts",
            Self::NotText => "bytes that are not text in its encoding became U+FFFD",
            Self::TooLong => "longer than is read; the rest was left off",
            Self::TooManyEntries => "more entries than are read; the rest was left off",
            Self::UnknownRoot => "XML, but neither sitemap nor feed",
            Self::BrokenXml => "broken XML; reading went on behind it",
            Self::TooBroken => "broken XML again and again; the rest was left off",
            Self::DocType => "a document type; passed over",
            Self::Entity => "an entity that XML does not have; kept as text",
            Self::NoUrl => "an entry without address; passed over",
            Self::LongUrl => "an address that is too long; passed over",
            Self::BadUrl => "an address that is none; passed over",
            Self::OtherScheme => "an address that is not http or https; passed over",
            Self::BadDate => "a date that cannot be read; left off",
            Self::BadPriority => "a priority that is no number from 0 to 1; left off",
            Self::BadFrequency => "a change frequency that is none; left off",
        })
    }
}
