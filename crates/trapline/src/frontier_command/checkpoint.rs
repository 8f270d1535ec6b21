//! `trapline frontier checkpoint`, `checkpoints` and `restore`: copies of a store as it is at one moment, and what can be made
//! of them.

use std::path::Path;

use clap::Args;
use serde_json::{Value, json};
use trapline_core::Timestamp;
use trapline_frontier::ErrorKind;
use trapline_stores::disk;

use super::address::Address;
use super::output::Output;
use super::{Ended, moment};
use crate::store_url;

/// Copy the store as it is now, inside its folder
///
/// The copy is consistent, and there as a whole or not at all. The store may be in use meanwhile: what was answered before the command began is
/// in it. It is a folder of its own, checkpoints/NAME in the store's. Files of the log that are full are not copied but shared,
/// so it takes little room and time; to be safe from a failing disk, restore it onto another.
///
/// A checkpoint that is not wanted any more is removed as any folder.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier --store disk:crawl checkpoint monday
  trapline frontier --store disk:crawl checkpoints
  trapline frontier --store disk:again restore crawl/checkpoints/monday
  rm -r crawl/checkpoints/monday")]
pub(super) struct MakeCheckpoint {
    /// What to call it: letters, digits, `.`, `-` and `_`
    name: String,
}

/// List the checkpoints of a store
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier --store disk:crawl checkpoints
  trapline frontier --store disk:crawl checkpoints --json | jq -r .folder")]
pub(super) struct ListCheckpoints {}

/// Make a new store of a checkpoint
///
/// The store that `--store` names must not be there yet, or be an empty folder. It goes on where the checkpoint was made, and shares nothing
/// with it, so a checkpoint can be restored any number of times. Leases are in it too: their workers can settle
/// them with the copy as with the original, so let only one of the two go on.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier --store disk:again restore crawl/checkpoints/monday
  trapline frontier --store disk:/other/disk/crawl restore crawl/checkpoints/monday

To go back in place:
  mv crawl crawl.old
  trapline frontier --store disk:crawl restore crawl.old/checkpoints/monday")]
pub(super) struct RestoreStore {
    /// The checkpoint's folder, as `checkpoint` and `checkpoints` tell it
    #[arg(value_name = "FOLDER")]
    from: String,
}

impl MakeCheckpoint {
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        let copy = disk::checkpoint(at.folder()?, &self.name).map_err(|error| error.to_string())?;
        let copy = copy.display().to_string();
        out.card(&vec![
            ("store", json!(at.url()?)),
            ("checkpoint", json!(self.name)),
            ("folder", json!(copy)),
        ]);
        out.say(&format!("`trapline frontier --store disk:NEW restore {copy}` makes a new store of it."));
        Ok(Ended::Well)
    }
}

impl ListCheckpoints {
    #[expect(clippy::unused_self, reason = "commands are run alike, whether they have arguments or not")]
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        let folder = at.folder()?;
        let names = disk::checkpoints(folder).map_err(|error| error.to_string())?;
        let rows = names.iter().map(|name| {
            let copy = folder.join("checkpoints").join(name);
            vec![
                ("checkpoint", json!(name)),
                ("made", made(&copy)),
                ("folder", json!(copy.display().to_string())),
            ]
        });
        out.rows(&["checkpoint", "made", "folder"], &rows.collect::<Vec<_>>());
        if names.is_empty() {
            out.say("no checkpoints");
        }
        Ok(Ended::Well)
    }
}

impl RestoreStore {
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        let (url, to) = (at.url()?, at.folder()?);
        let from = store_url::folder_or_url(&self.from)?;
        disk::restore(from, to).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                format!("{error}\n  Name a checkpoint's folder, such as crawl/checkpoints/monday; `checkpoints` lists them.")
            }
            _ => error.to_string(),
        })?;
        out.card(&vec![("store", json!(url)), ("from", json!(from))]);
        Ok(Ended::Well)
    }
}

/// When a folder got what is in it; null if that is not told.
fn made(folder: &Path) -> Value {
    let modified = std::fs::metadata(folder).and_then(|about| about.modified()).ok();
    let since = modified.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let millis = since.and_then(|since| u64::try_from(since.as_millis()).ok());
    json!(millis.map(|millis| moment::write(Timestamp::from_millis(millis))))
}
