//! Strategies: what a crawl wants, one a file.
//!
//! A strategy is asked and answers decisions; it holds no handle to anything, and looks at no clock. So it can be tried on recorded
//! pages, and exchanged while a crawl runs. What it remembers of a site is given to it and taken from it with each call, and kept in the
//! store together with the settlement that changed it.

mod arguments;
mod basic;
mod breadth_first;
mod by_host;
mod depth_first;
mod discovery;
mod fifo;
mod lifo;
mod memory;
mod processors;
mod revisit;
mod score;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use trapline_core::{DEFAULT_CLASS, Request, Timestamp, class_of_score, registrable_domain};
use trapline_extract::Page;
use trapline_frontier::{Order, PageRecord, UrlState, nearest};
use url::Url;

use arguments::wrong;
pub use arguments::{ArgumentError, Arguments};
pub use by_host::Strategies;
pub use memory::Memory;
pub(crate) use memory::{Memories, SiteMemory};
pub(crate) use processors::{Ask, Decide, consider, inferred, wished};

use crate::tally::Tally;

/// Decides what a crawl wants.
///
/// Everything has an answer already, that of the basic strategy: fetch all there is, once, in the order of the crawl. Whoever writes
/// one answers only what is to be different.
pub trait Strategy: fmt::Debug + Send + Sync + 'static {
    /// Its name in configurations.
    fn name(&self) -> &'static str;

    /// In which order URLs of one class are served, if that matters to it. The order of a crawl is fixed when it begins.
    fn order(&self) -> Option<Order> {
        None
    }

    /// Whether it remembers something of sites. If not, every memory that it is given is empty.
    fn remembers(&self) -> bool {
        false
    }

    /// Whether it wants to know the states of links: a question to the store for each page. If not, all are told to be unknown.
    fn sees_states(&self) -> bool {
        false
    }

    /// What to make of a seed.
    fn seed(&self, _seed: &Request, _memory: &mut Memory) -> Seeding {
        Seeding::default()
    }

    /// Why a URL whose turn has come is not to be fetched after all, if so.
    fn refuses(&self, _request: &Request, _memory: &Memory) -> Option<String> {
        None
    }

    /// Why a link of a page is left out, if it is: asked before states are looked up.
    fn leaves_out(&self, _seen: &Seen<'_>, _link: &Request) -> Option<String> {
        None
    }

    /// What to make of the links that are left, redirects, sitemaps and what those list among them: a wish for each, in their order. For
    /// what none is given, the usual place will do.
    fn links(&self, _seen: &Seen<'_>, _links: &[FoundLink<'_>], _memory: &mut Memory) -> Vec<Wish> {
        Vec::new()
    }

    /// What to do after a page, whatever its status; once its links have been asked about.
    fn page(&self, _seen: &Seen<'_>, _memory: &mut Memory) -> After {
        After::default()
    }

    /// What to do after a visit that brought no page: it will be tried again, or is given up, unless the strategy knows better.
    fn error(&self, _seen: &Seen<'_>, _memory: &mut Memory) -> After {
        After::default()
    }

    /// Whether the goal is reached, in words. Then nothing more is fetched, and the crawl ends.
    fn goal(&self, _so_far: &Tally) -> Option<String> {
        None
    }

    /// What it has to say at the end.
    fn last_words(&self, _so_far: &Tally) -> Option<String> {
        None
    }
}

/// A visit, as a strategy sees it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'v> {
    /// What was asked for.
    pub request: &'v Request,
    /// Its URL.
    pub url: &'v Url,
    /// When the visit ended.
    pub now: Timestamp,
    /// The status of the response, if there was one.
    pub status: Option<u16>,
    /// Why there was none, in a word: `dns_no_such_name`.
    pub error: Option<&'v str>,
    /// What was found in it.
    pub page: Option<&'v Page>,
    /// What earlier visits have found.
    pub before: Option<&'v PageRecord>,
    /// How often it was tried before.
    pub retries: u32,
    /// After an error: it will be tried again, unless the strategy knows better.
    pub tries_again: bool,
}

/// A link of a page, as a strategy sees it.
#[derive(Clone, Copy, Debug)]
pub struct FoundLink<'l> {
    /// What would be asked for. The last letter of its `hop_path` says how it was found.
    pub request: &'l Request,
    /// What the frontier knows of it; nothing, unless the strategy [sees states](Strategy::sees_states).
    pub state: UrlState,
}

/// What is to become of a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wish {
    /// Fetch it, in the place that the crawl's own policy has for it.
    #[default]
    Usual,
    /// Fetch it, in this class: lower first.
    Class(u8),
    /// The same; and if it waits in a worse class already, move it.
    Better(u8),
    /// Do not, because of this.
    Leave(Cow<'static, str>),
}

impl Wish {
    /// Fetch it, with a score between 0 and 1: higher first.
    pub fn score(score: f32) -> Self {
        Self::Class(class_of_score(score))
    }

    /// The same; and if it waits with a lower score already, move it.
    pub fn better(score: f32) -> Self {
        Self::Better(class_of_score(score))
    }
}

/// What to make of a seed.
#[derive(Clone, Debug, Default)]
pub struct Seeding {
    /// The seed itself.
    pub wish: Wish,
    /// Requests beside it.
    pub requests: Vec<(Request, Wish)>,
}

/// What to do after a visit.
#[derive(Clone, Debug, Default)]
pub struct After {
    /// After a page: when it is visited once more. None leaves it to the crawl.
    pub next: Option<Timestamp>,
    /// After an error: when it is tried again, however often it was.
    pub again: Option<Timestamp>,
    /// After an error: why it is given up now.
    pub give_up: Option<String>,
    /// Requests that are no links of the page. What is known already and comes with [`Wish::Better`] only gets its score.
    pub requests: Vec<(Request, Wish)>,
}

/// Which strategy, and with what arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrategyChoice {
    /// Its name.
    pub name: String,
    /// What it is told, in order: names and values.
    pub arguments: Vec<(String, String)>,
}

impl Default for StrategyChoice {
    fn default() -> Self {
        Self { name: "basic".to_owned(), arguments: Vec::new() }
    }
}

/// Makes a strategy of its arguments.
pub type MakeStrategy = fn(&mut Arguments) -> Result<Arc<dyn Strategy>, ArgumentError>;

/// The strategies that are built in, with what they are for.
pub const BUILT_IN: [(&str, MakeStrategy, &str); 8] = [
    ("basic", basic::make, "everything once, in the order of the crawl"),
    ("breadth_first", breadth_first::make, "what is nearest to a seed first"),
    ("depth_first", depth_first::make, "what is farthest from a seed first"),
    ("fifo", fifo::make, "what was found first"),
    ("lifo", lifo::make, "what was found last"),
    ("score", score::make, "by a list of rules that give scores"),
    ("discovery", discovery::make, "some pages of each site: sitemaps, home page, what interests, the rest"),
    ("revisit", revisit::make, "everything again and again, at a fixed interval"),
];

/// A strategy that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StrategyError {
    /// There is none of that name.
    #[error("there is no strategy `{name}`{hint}")]
    Unknown {
        /// The name given.
        name: String,
        /// The nearest name, or those that there are.
        hint: String,
    },
    /// It cannot do with its arguments.
    #[error("the strategy `{name}` {error}")]
    Argument {
        /// Which strategy.
        name: String,
        /// What is wrong.
        error: ArgumentError,
    },
    /// It cannot do with what it is told of some hosts.
    #[error("for {hosts}: {error}")]
    Host {
        /// Which hosts.
        hosts: String,
        /// What is wrong.
        error: Box<StrategyError>,
    },
    /// The crawl has another order.
    #[error(
        "the strategy `{name}` needs the order `{wanted}`, and this crawl has `{has}`, which was fixed when it began: begin another \
         crawl for it"
    )]
    Order {
        /// Which strategy.
        name: String,
        /// What it needs.
        wanted: &'static str,
        /// What the crawl has.
        has: &'static str,
    },
}

/// All strategies that there are: those that are built in, and a program's own.
#[derive(Clone, Default)]
pub struct StrategyShelf {
    own: BTreeMap<&'static str, MakeStrategy>,
}

impl StrategyShelf {
    /// Adds one, or puts it in the place of that of the same name.
    pub fn add(&mut self, name: &'static str, make: MakeStrategy) {
        self.own.insert(name, make);
    }

    /// The names of all.
    pub fn names(&self) -> Vec<&'static str> {
        let built_in = BUILT_IN.iter().map(|(name, ..)| *name);
        built_in.chain(self.own.keys().copied().filter(|name| is_own(name))).collect()
    }

    /// Makes one.
    pub fn make(&self, choice: &StrategyChoice) -> Result<Arc<dyn Strategy>, StrategyError> {
        let name = choice.name.as_str();
        let built_in = BUILT_IN.iter().find(|(built_in, ..)| *built_in == name).map(|(_, make, _)| *make);
        let Some(make) = self.own.get(name).copied().or(built_in) else {
            let names = self.names();
            let hint = nearest(name, &names).map_or_else(
                || format!("; there are {}", names.join(", ")),
                |near| format!("; did you mean `{near}`?"),
            );
            return Err(StrategyError::Unknown { name: name.to_owned(), hint });
        };
        let wrong = |error| StrategyError::Argument { name: name.to_owned(), error };
        let mut arguments = Arguments::new(&choice.arguments);
        let made = make(&mut arguments).map_err(wrong)?;
        arguments.end().map_err(wrong)?;
        Ok(made)
    }
}

fn is_own(name: &str) -> bool {
    !BUILT_IN.iter().any(|(built_in, ..)| *built_in == name)
}

/// Whether a strategy can do with the order of a crawl.
pub fn check_order(strategy: &dyn Strategy, has: Order) -> Result<(), StrategyError> {
    let name_of = |order| Order::NAMES.iter().find(|(_, other)| *other == order).map_or("", |(name, _)| name);
    match strategy.order() {
        Some(wanted) if wanted != has => Err(StrategyError::Order {
            name: strategy.name().to_owned(),
            wanted: name_of(wanted),
            has: name_of(has),
        }),
        _ => Ok(()),
    }
}

/// What counts as one site for the memory of strategies: a registrable domain, or a host that is in none.
pub fn site_of(host: &str) -> &str {
    registrable_domain(host).unwrap_or(host)
}

/// The class of everything, for strategies that go by the time alone.
const ALL_ALIKE: Wish = Wish::Class(DEFAULT_CLASS);
