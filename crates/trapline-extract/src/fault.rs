//! What was wrong with a page, or left out of it.

use std::fmt;

/// What kind of thing was wrong.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum FaultKind {
    /// References that are no URL, also against the page's base.
    Unresolvable,
    /// References that are too long.
    LongReferences,
    /// Links beyond the cap.
    LinksLeftOut,
    /// Tags of which only the beginning was looked at.
    TagsCut,
    /// Attributes beyond the cap.
    AttributesLeftOut,
    /// Visible text beyond the cap.
    TextCut,
    /// Style sheets of which only the beginning was looked at.
    StylesCut,
    /// Facts beyond the cap, or cut because they were too long.
    FactsCut,
    /// Labels of encodings that do not exist.
    UnknownCharset,
    /// Bytes that are not text in the page's encoding, at least one of them.
    Undecodable,
    /// A media type that is not what the bytes are.
    WrongType,
}

impl FaultKind {
    /// As it is called in output, stable.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unresolvable => "unresolvable",
            Self::LongReferences => "long_references",
            Self::LinksLeftOut => "links_left_out",
            Self::TagsCut => "tags_cut",
            Self::AttributesLeftOut => "attributes_left_out",
            Self::TextCut => "text_cut",
            Self::StylesCut => "styles_cut",
            Self::FactsCut => "facts_cut",
            Self::UnknownCharset => "unknown_charset",
            Self::Undecodable => "undecodable",
            Self::WrongType => "wrong_type",
        }
    }
}

/// What was wrong, and how often.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// How often, at least once.
    pub count: u64,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.kind.name(), self.count)
    }
}

/// Faults of one page while they are counted, each kind once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    pub(crate) fn count(&mut self, kind: FaultKind, count: u64) {
        if count == 0 {
            return;
        }
        match self.0.iter_mut().find(|fault| fault.kind == kind) {
            Some(fault) => fault.count += count,
            None => self.0.push(Fault { kind, count }),
        }
    }

    /// In the order of kinds.
    pub(crate) fn into_vec(mut self) -> Vec<Fault> {
        self.0.sort_unstable_by_key(|fault| fault.kind);
        self.0
    }
}
