//! Chains of processors: the places where a crawl's policies live.
//!
//! A chain hands one subject to each of its processors in turn, until one ends it. There are three, each with a subject of its
//! own: candidates (not yet scheduled), visits (being fetched) and dispositions (about to be settled). Processors hold what
//! they need and share nothing but the subject.

use std::sync::Arc;

use async_trait::async_trait;

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
    check(chain, names, &known)?;
    let part = |name: &String| parts.iter().find(|part| name_of(part) == name).cloned();
    Ok(names.iter().filter_map(part).collect())
}

/// Whether a list of names makes a chain, if these are the parts that there are.
fn check(chain: &'static str, names: &[String], known: &[&'static str]) -> Result<(), ChainError> {
    for (place, name) in names.iter().enumerate() {
        if !known.contains(&name.as_str()) {
            return Err(ChainError::Unknown { chain, name: name.clone(), known: known.join(", ") });
        }
        if names[..place].contains(name) {
            return Err(ChainError::Twice { chain, name: name.clone() });
        }
    }
    let place = |name: &str| names.iter().position(|named| named == name);
    match chain {
        "fetch" if place("fetch").is_none() => {
            Err(ChainError::Missing { chain, name: "fetch", why: "nothing would be fetched" })
        }
        "disposition" => {
            let early = disposition::ORDER.iter().filter_map(|name| place(name)).min();
            if place("outcome").is_some() && early == place("outcome") {
                return Ok(());
            }
            let why = "the others go by what it decides, and it stands before them";
            Err(ChainError::Missing { chain, name: "outcome", why })
        }
        _ => Ok(()),
    }
}

impl ChainNames {
    /// Whether chains can be made of these names, by those who bring no processors of their own; or which one cannot, and why.
    pub fn check(&self) -> Result<(), ChainError> {
        let chains = [
            ("candidate", &self.candidate, &candidate::NAMES[..]),
            ("fetch", &self.fetch, &fetch::ORDER),
            ("disposition", &self.disposition, &disposition::ORDER),
        ];
        chains.into_iter().try_for_each(|(chain, names, known)| match names {
            Some(names) => check(chain, names, known),
            None => Ok(()),
        })
    }
}

impl ChainError {
    /// Which chain it is.
    pub fn chain(&self) -> &'static str {
        match self {
            Self::Unknown { chain, .. } | Self::Missing { chain, .. } | Self::Twice { chain, .. } => chain,
        }
    }
}

/// A chain that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// There is no such processor.
    #[error("the {chain} chain has no processor `{name}`; there are {known}")]
    Unknown {
        /// Which chain.
        chain: &'static str,
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
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
    /// A processor has one place.
    #[error("the {chain} chain names `{name}` twice; a processor has one place")]
    Twice {
        /// Which chain.
        chain: &'static str,
        /// The name given.
        name: String,
    },
}
