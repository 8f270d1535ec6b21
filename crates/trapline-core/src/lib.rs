//! Trapline's nouns and pure rules: the request and the candidate, canonical form and identity, queue keys,
//! classes, costs, time.
//!
//! What is absent: clocks, sockets, files, threads. Everything here is a function of its arguments, except
//! [`IdentityKey::draw`], which is asked once when a crawl is created.

mod candidate;
mod canonical;
mod civil;
mod class;
mod cost;
mod exact_url;
mod host_pattern;
mod host_table;
mod identity;
mod parameter_names;
mod parse;
mod plain_url;
mod prepare;
mod queue_key;
mod request;
mod site;
mod split_url;
mod time;
mod url_parts;

pub use candidate::{Candidate, NO_BUDGET, Statement, Terms};
pub use canonical::{CanonicalRules, ProfileError, Rule};
pub use civil::{Civil, parse_utc};
pub use class::{
    ClassPolicy, DEFAULT_CLASS, Directive, class_of_directive, class_of_priority, class_of_score,
};
pub use cost::CostPolicy;
pub use host_pattern::{HostPattern, HostPatternError, plain_name};
pub use host_table::HostTable;
pub use identity::{Identity, IdentityKey};
pub use parameter_names::ParameterNames;
pub use parse::{href, parse_url};
pub use plain_url::is_plain_url;
pub use prepare::{KEY_BYTES_MAX, PrepareError, Preparer, URL_BYTES_MAX};
pub use queue_key::{QueueKeyPolicy, QueueKeyPolicyError};
pub use request::Request;
pub use site::{partition_of, public_hash, registrable_domain};
pub use split_url::SplitUrl;
pub use time::{DurationError, Timestamp, format_duration, parse_duration};
