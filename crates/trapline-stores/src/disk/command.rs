//! A command of the log, and what doing it answers: the same on the day it was given and on every day it is replayed.

use trapline_core::{Candidate, Timestamp};
use trapline_frontier::{Engine, Owner, Settlement, Steer, StoreError, Want};

use super::answers;
use super::message::logged::Which;

/// One verb with its batch, at its time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Command {
    Admit {
        crawl: String,
        now: Timestamp,
        batch: Vec<Candidate>,
    },
    Claim {
        crawl: Option<String>,
        now: Timestamp,
        want: Want,
    },
    Settle {
        crawl: String,
        now: Timestamp,
        batch: Vec<Settlement>,
    },
    Steer {
        crawl: String,
        now: Timestamp,
        steer: Steer,
    },
    /// What the log has of some entries and notes was put into it once more, so that it is not needed where it was. No time passed.
    Move {
        crawl: String,
        /// Each with the place where it was.
        owners: Vec<(Owner, u64)>,
    },
    /// Somebody asked something, or was refused: nothing but time passed.
    Pass {
        crawl: String,
        now: Timestamp,
    },
}

impl Command {
    /// Does it again, and says what it answered as one number.
    pub(crate) fn replay(self, engine: &mut Engine) -> Result<u64, StoreError> {
        Ok(match self {
            Self::Admit { crawl, now, batch } => {
                answers::admitted(&engine.admit(&crawl, now, &batch)?, Which::All)
            }
            Self::Claim { crawl, now, want } => {
                answers::claimed(&engine.claim(crawl.as_deref(), now, &want)?)
            }
            Self::Settle { crawl, now, batch } => {
                answers::settled(&engine.settle(&crawl, now, &batch)?, Which::All)
            }
            Self::Steer { crawl, now, steer } => answers::steered(engine.steer(&crawl, now, steer)?),
            Self::Move { crawl, owners } => engine.relocate(&crawl, &owners),
            Self::Pass { crawl, now } => {
                engine.stats(&crawl, now)?;
                answers::NOTHING
            }
        })
    }
}
