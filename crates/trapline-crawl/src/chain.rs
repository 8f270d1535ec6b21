//! Chains of processors: the places where a crawl's policies live.
//!
//! A chain hands one subject to each of its processors in turn, until one ends it. There are three, each with a subject of its
//! own: candidates (not yet scheduled), visits (being fetched) and dispositions (about to be settled). Processors hold what
//! they need and share nothing but the subject.

use std::sync::Arc;

use async_trait::async_trait;
use trapline_frontier::nearest;

use crate::options::ChainNames;
use crate::{candidate, disposition, fetch};

/// Whether the next processor has its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It has.
    Next,
    /// This was the last word.
    End,
}

/// A step of the fetch or disposition chain.
#[async_trait]
pub trait Processor<S: Send>: Send + Sync + 'static {
    /// Its name in configurations and logs.
    fn name(&self) -> &'static str;

    /// Does its part.
    async fn process(&self, subject: &mut S) -> Flow;
}

/// A step of the candidate chain. Pages have many links, so that this one neither waits nor allocates without need.
pub trait Rule<S>: Send + Sync + 'static {
    /// Its name in configurations and logs.
    fn name(&self) -> &'static str;

    /// Does its part.
    fn apply(&self, subject: &mut S) -> Flow;
}

/// Processors in order.
pub type Processors<S> = Vec<Arc<dyn Processor<S>>>;

/// Rules in order.
pub type Rules<S> = Vec<Arc<dyn Rule<S>>>;

/// Puts the parts of a chain into the order of a list of names.
///
/// Each name takes the part of that name. What is not named is left out.
pub(crate) fn in_order<P: ?Sized>(
    chain: &'static str,
    names: &[String],
    parts: &[Arc<P>],
    name_of: impl Fn(&P) -> &'static str,
) -> Result<Vec<Arc<P>>, ChainError> {
    let known: Vec<_> = parts.iter().map(|part| name_of(part)).collect();
    if let Some(wrong) = check(chain, names, &known).into_iter().next() {
        return Err(wrong);
    }
    let part = |name: &String| parts.iter().find(|part| name_of(part) == name).cloned();
    Ok(names.iter().filter_map(part).collect())
}

/// All reasons why a list of names makes no chain, if these are the parts that there are.
fn check(chain: &'static str, names: &[String], known: &[&'static str]) -> Vec<ChainError> {
    let mut wrong = Vec::new();
    for (place, name) in names.iter().enumerate() {
        if names[..place].contains(name) {
            if names[..place].iter().filter(|other| *other == name).count() == 1 {
                wrong.push(ChainError::Twice { chain, name: name.clone() });
            }
        } else if !known.contains(&name.as_str()) {
            let hint = match nearest(name, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", known.join(", ")),
            };
            wrong.push(ChainError::Unknown { chain, name: name.clone(), hint });
        }
    }
    let place = |name: &str| place(names, known, name);
    match chain {
        "fetch" if place("fetch").is_none() => {
            wrong.push(ChainError::Missing { chain, name: "fetch", why: "nothing would be fetched" });
        }
        "disposition" => {
            let early = disposition::ORDER.iter().filter_map(|name| place(name)).min();
            if place("outcome").is_none() || early != place("outcome") {
                let why = "the others go by what it decides, and it stands before them";
                wrong.push(ChainError::Missing { chain, name: "outcome", why });
            }
        }
        _ => {}
    }
    wrong
}

/// Where a part stands. What is misspelt stands for what was meant: nothing that follows from that need be told as well.
fn place(names: &[String], known: &[&'static str], part: &str) -> Option<usize> {
    let is_meant =
        |name: &String| name == part || !known.contains(&name.as_str()) && nearest(name, known) == Some(part);
    names.iter().position(is_meant)
}

/// What comes too late or too early to be of any use, or does harm there. A program's own processors may know better, so that it is only
/// told to those who bring none.
fn misplaced(names: &[String]) -> Vec<ChainError> {
    let place = |name: &str| place(names, &fetch::ORDER, name);
    let pairs = [
        ("scope", "fetch", "what does not belong to the crawl would be fetched"),
        ("strategy", "fetch", "what the strategy refuses would be fetched"),
        ("robots", "fetch", "what robots.txt forbids would be fetched"),
        ("conditional", "fetch", "it says what is to be asked for"),
        ("fetch", "extract", "nothing would be found in what has not come yet"),
        ("fetch", "archive", "nothing can be kept that has not come yet"),
    ];
    let is_wrong = |(first, then, _): &(&str, &str, _)| place(first) > place(then) && place(then).is_some();
    let error = |(first, then, why)| ChainError::Order { chain: "fetch", first, then, why };
    pairs.into_iter().filter(is_wrong).map(error).collect()
}

impl ChainNames {
    /// All reasons why no chains that make sense can be made of these names, by those who bring no processors of their own.
    pub fn mistakes(&self) -> Vec<ChainError> {
        let chains = [
            ("candidate", &self.candidate, &candidate::NAMES[..]),
            ("fetch", &self.fetch, &fetch::ORDER),
            ("disposition", &self.disposition, &disposition::ORDER),
        ];
        let checked = chains.into_iter().filter_map(|(chain, names, known)| {
            let names = names.as_deref()?;
            Some(check(chain, names, known))
        });
        let mut wrong: Vec<_> = checked.flatten().collect();
        wrong.extend(self.fetch.as_deref().map(misplaced).unwrap_or_default());
        wrong
    }
}

impl ChainError {
    /// Which chain it is.
    pub fn chain(&self) -> &'static str {
        match self {
            Self::Unknown { chain, .. }
            | Self::Missing { chain, .. }
            | Self::Order { chain, .. }
            | Self::Twice { chain, .. } => chain,
        }
    }
}

/// A chain that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// There is no such processor.
    #[error("the {chain} chain has no processor `{name}`; {hint}")]
    Unknown {
        /// Which chain.
        chain: &'static str,
        /// The name given.
        name: String,
        /// The nearest name, or those that there are.
        hint: String,
    },
    /// Without it there is no crawl.
    #[error("the {chain} chain needs `{name}`: {why}")]
    Missing {
        /// Which chain.
        chain: &'static str,
        /// The processor that it needs.
        name: &'static str,
        /// What for.
        why: &'static str,
    },
    /// One comes too late for another.
    #[error("the {chain} chain has `{first}` behind `{then}`, and it stands before it: {why}")]
    Order {
        /// Which chain.
        chain: &'static str,
        /// The processor that comes first.
        first: &'static str,
        /// And the one that comes later.
        then: &'static str,
        /// What would happen otherwise.
        why: &'static str,
    },
    /// A processor has one place.
    #[error("the {chain} chain names `{name}` twice; a processor has one place")]
    Twice {
        /// Which chain.
        chain: &'static str,
        /// The name given.
        name: String,
    },
}
