//! The engine as its timers see it, and their rivals. The ids and the moment are the engine's, as far as timers know them.

pub use patterns::{PATTERNS, RIVALS};

mod moment {
    pub type Rank = u64;

    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub struct Moment {
        pub at: trapline_core::Timestamp,
        pub rank: Rank,
    }
}

macro_rules! id {
    ($module:ident, $name:ident) => {
        mod $module {
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
            pub struct $name(pub u32);
        }
    };
}
id!(groups, GroupId);
id!(queues, QueueId);
id!(urls, EntryId);

mod lists;
mod patterns;
#[path = "../../../../crates/trapline-frontier/src/engine/timers.rs"]
mod timers;
mod wheel;
