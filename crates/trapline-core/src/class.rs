//! Which URLs of a queue go first: the policies that map what a caller knows to a class, an unsigned byte,
//! lower first.

use std::fmt;

use crate::Request;

/// The class of a URL about which nothing is known: that of priority 0.
pub const DEFAULT_CLASS: u8 = 127;

/// How a crawl classes URLs. A caller with a rule of its own sets [`Candidate::class`](crate::Candidate::class).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClassPolicy {
    /// By [`Request::priority`], higher first.
    #[default]
    Priority,
    /// By [`Request::score`], higher first.
    Score,
    /// By depth, shallower first: breadth first.
    Depth,
    /// By depth, deeper first: depth first.
    DepthFirst,
    /// By cost, cheaper first.
    Cost,
}

impl ClassPolicy {
    /// Every policy, with the name it has in the configuration.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("priority", Self::Priority),
        ("score", Self::Score),
        ("depth", Self::Depth),
        ("depth_first", Self::DepthFirst),
        ("cost", Self::Cost),
    ];

    /// The class of a request that costs `cost`.
    pub fn class(self, request: &Request, cost: u32) -> u8 {
        let clipped = |number: u32| u8::try_from(number).unwrap_or(u8::MAX);
        match self {
            Self::Priority => request.priority.map_or(DEFAULT_CLASS, class_of_priority),
            Self::Score => request.score.map_or(DEFAULT_CLASS, class_of_score),
            Self::Depth => clipped(request.depth),
            Self::DepthFirst => u8::MAX - clipped(request.depth),
            Self::Cost => clipped(cost),
        }
    }
}

impl fmt::Display for ClassPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES.iter().find(|(_, policy)| policy == self).map_or("", |(name, _)| name))
    }
}

/// 127 - priority.
pub fn class_of_priority(priority: i8) -> u8 {
    u8::try_from(127 - i16::from(priority)).expect("127 - (-128…127) is 0…255")
}

/// Score 1.0 is class 0, score 0.0 class 255; what lies outside is clipped, and NaN counts as 0.
pub fn class_of_score(score: f32) -> u8 {
    let score = if score.is_nan() { 0.0 } else { score.clamp(0.0, 1.0) };
    u8::MAX - (score * 255.0).round() as u8
}

/// Heritrix's scheduling directives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Directive {
    /// Prerequisites.
    Highest,
    /// What depth preferences pull forward.
    High,
    /// Seeds, redirects and near embeds.
    Medium,
    /// Everything else.
    Normal,
}

/// Heritrix's order inside a queue, directive first, then precedence, in one byte: precedences above 63 count
/// as 63.
pub fn class_of_directive(directive: Directive, precedence: u8) -> u8 {
    (directive as u8) * 64 + precedence.min(63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_map_to_classes() {
        let check = |policy: ClassPolicy, request: Request, cost, class| {
            assert_eq!(policy.class(&request, cost), class, "{policy} of {request:?}");
        };
        let get = || Request::get("http://a.example/");
        check(ClassPolicy::Priority, get(), 1, 127);
        check(ClassPolicy::Priority, Request { priority: Some(127), ..get() }, 1, 0);
        check(ClassPolicy::Priority, Request { priority: Some(-128), ..get() }, 1, 255);
        check(ClassPolicy::Score, get(), 1, 127);
        for (score, class) in [(1.0, 0), (0.0, 255), (2.0, 0), (-1.0, 255), (f32::NAN, 255), (0.5, 127)] {
            check(ClassPolicy::Score, Request { score: Some(score), ..get() }, 1, class);
        }
        for (depth, class) in [(0, 0), (7, 7), (255, 255), (70_000, 255)] {
            check(ClassPolicy::Depth, Request { depth, ..get() }, 1, class);
            check(ClassPolicy::DepthFirst, Request { depth, ..get() }, 1, 255 - class);
        }
        check(ClassPolicy::Cost, get(), 3, 3);
        check(ClassPolicy::Cost, get(), 999, 255);
    }

    #[test]
    fn directives_come_before_precedence() {
        assert_eq!(class_of_directive(Directive::Highest, 0), 0);
        assert_eq!(class_of_directive(Directive::Highest, 200), 63);
        assert_eq!(class_of_directive(Directive::High, 0), 64);
        assert_eq!(class_of_directive(Directive::Normal, 255), 255);
    }
}
