//! The options there are, section by section. A new option is one entry here; everything else follows from it.

pub(crate) mod crawl;
pub(crate) mod fetch;
pub(crate) mod lists;
pub(crate) mod log;
pub(crate) mod pace;
pub(crate) mod robots;
pub(crate) mod scope;
pub(crate) mod strategy;

pub(crate) use crawl::{Chains, Crawl, Output};
pub(crate) use fetch::{Connect, Cookies, Dns, Fetch, Limits};
pub(crate) use lists::{HostOverride, Lists, OriginLogin, entry_of};
pub(crate) use log::{Log, LogFormat};
pub(crate) use pace::{Pace, Queue, Retry};
pub(crate) use robots::{Robots, Sitemaps};
pub(crate) use scope::{Scope, ScopeKind, Traps};
pub(crate) use strategy::Strategy;
