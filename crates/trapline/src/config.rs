//! The configuration: one TOML file, the environment and flags, in rising order.
//!
//! `FileConfig` is what people typed, with the defaults for the rest. What is done with it is decided where it is used; `check` finds
//! what cannot be meant before anything begins.

mod args;
mod check;
mod defaults;
mod fetching;
mod file_config;
mod flags;
mod layers;
mod options;
mod reading;
pub(crate) mod sections;
mod shown;
#[cfg(test)]
mod tests;
mod texts;
mod value;
mod warnings;

pub(crate) use args::ConfigFlags;
pub(crate) use defaults::defaults;
pub(crate) use file_config::FileConfig;
pub(crate) use flags::Flags;
pub(crate) use layers::{Refused, checked, load, read_flags, with_options};
pub(crate) use sections::{Log, LogFormat, Output, ScopeKind};
pub(crate) use shown::shown;
pub(crate) use value::Text;
