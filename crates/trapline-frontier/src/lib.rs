//! The frontier.
mod pattern;
mod report;
pub mod script;
mod settings;
mod store;
mod verbs;
pub use pattern::*;
pub use report::*;
pub use settings::*;
pub use store::*;
pub use verbs::*;
