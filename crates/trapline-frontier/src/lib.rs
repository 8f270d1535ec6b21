//! The frontier: what a crawler fetches next, and when it comes back.
//!
//! [`Frontier`] is the handle that everybody holds. Behind it is a [`Store`], six verbs wide: [`MemoryStore`], the
//! reference, or one of another crate. The rules of scheduling live in a deterministic engine that knows no
//! clock: time is an argument of every verb.
//!
//! What is absent: fetching, parsing, policies about content. Those run outside and hand in candidates.

mod engine;
mod frame_source;
mod frontier;
mod library;
mod memory;
#[cfg(feature = "suite")]
pub mod model;
pub mod packed_page;
mod pattern;
pub mod payload;
mod planted;
mod push_pop;
mod record;
mod report;
pub mod script;
mod settings;
mod shelf;
mod store;
#[cfg(feature = "suite")]
pub mod suite;
mod verbs;

pub use engine::{
    BadImage, ChunkOf, Engine, Found, Frame, FrameOf, Owner, Picture, ReadFrame, Restore, UnreadRequest,
};
pub use frame_source::FrameSource;
pub use frontier::{Frontier, FrontierBuilder, crawls};
pub use library::Library;
pub use memory::MemoryStore;
pub use pattern::Pattern;
#[cfg(feature = "planted")]
pub use planted::Fault;
pub use push_pop::{PushPop, PushPopStore};
pub use record::{CrawlRecord, QueueRecord, Record, RetiredBy, UrlRecord, UrlStanding};
pub use report::{
    CrawlReport, CrawlState, DeadLetter, Disk, JobReport, LeaseReport, Memory, Note, Page, Pressure, Query,
    QueueReport, QueueState, Recovered, Rows, Scan, Stats, UrlReport, UrlState,
};
pub use settings::{AdmissionGate, Order, Pace, SettingError, Settings, nearest};
pub use shelf::{SHELF_THINGS, Shelf};
pub use store::{Ear, ErrorKind, Store, StoreError};
pub use verbs::{
    Admission, Answer, Claimed, CrawlChange, DeadChange, DeadLetters, Lease, LeaseId, NewCrawl, NoteWrite,
    Outcome, PageRecord, QueueChange, Refusal, Settled, Settlement, Steer, Steered, UrlChange, UrlFilter,
    UrlsChange, Visit, Want,
};
