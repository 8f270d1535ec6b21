//! What can be odd about a robots.txt. Nothing of it keeps the rest of the file from counting.

use std::fmt;

/// How many faults are listed.
pub(super) const FAULTS_MAX: usize = 1_000;

/// Something odd, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RobotsFault {
    /// The line, counted from 1.
    pub line: u32,
    /// What it is.
    pub kind: RobotsFaultKind,
}

/// What is odd about a line, and what was made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RobotsFaultKind {
    /// It is no `name: value`, and was passed over.
    NotALine,
    /// There is no colon between name and value. It was understood.
    MissingColon,
    /// The name is misspelled. It was understood.
    Misspelled,
    /// It is a rule or a delay before any `User-agent`, and was passed over.
    OutsideGroup,
    /// It is a `User-agent` without a name that could be one, and names nobody.
    NoAgent,
    /// The path begins with neither `/` nor `*`, so that it matches nothing.
    NoPath,
    /// The delay is no number of seconds, and was passed over.
    NoDelay,
    /// The delay is longer than the longest, which was taken instead.
    LongDelay,
    /// It is a `Sitemap` without an address, and was passed over.
    NoSitemap,
    /// The file is in UTF-16 instead of UTF-8. It was understood.
    Utf16,
    /// The file is longer than is read. This line and those after it were passed over.
    Cut,
}

impl RobotsFaultKind {
    /// A name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotALine => "not_a_line",
            Self::MissingColon => "missing_colon",
            Self::Misspelled => "misspelled",
            Self::OutsideGroup => "outside_group",
            Self::NoAgent => "no_agent",
            Self::NoPath => "no_path",
            Self::NoDelay => "no_delay",
            Self::LongDelay => "long_delay",
            Self::NoSitemap => "no_sitemap",
            Self::Utf16 => "utf16",
            Self::Cut => "cut",
        }
    }
}

impl fmt::Display for RobotsFaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotALine => "no `name: value`; passed over",
            Self::MissingColon => "no colon after the name; understood",
            Self::Misspelled => "the name is misspelled; understood",
            Self::OutsideGroup => "comes before any User-agent; passed over",
            Self::NoAgent => "names no agent; passed over",
            Self::NoPath => "the path begins with neither / nor *; it matches nothing",
            Self::NoDelay => "no number of seconds; passed over",
            Self::LongDelay => "more than a day; a day was taken",
            Self::NoSitemap => "has no address; passed over",
            Self::Utf16 => "the file is UTF-16 instead of UTF-8; understood",
            Self::Cut => "the file is longer than 500 KiB; passed over from this line on",
        })
    }
}
