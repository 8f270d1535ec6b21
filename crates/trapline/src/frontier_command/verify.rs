//! `trapline frontier verify`: reads all that a store has, and tells what is damaged; with `--repair`, saves what is readable.

use std::path::Path;

use clap::Args;
use indicatif::ProgressBar;
use serde_json::{Value, json};
use trapline_stores::disk::{self, Damage, Repaired, Verified};

use super::address::Address;
use super::output::{Output, Row};
use super::{Ended, progress};
use crate::output::pasted;
use crate::store_url;

/// Read everything in a store, and tell what is damaged
///
/// Every checksum is compared, every command done again from the first day or the oldest snapshot, every snapshot held against that, every count and
/// order in the frontier looked at, and every request read. Nothing is changed, and the store may be in use: what is written meanwhile is not looked
/// at. Takes about as long as opening would without snapshots.
///
/// With `--repair` a damaged store is saved into a new folder as far as it can be read, and what is lost is listed. It must not be in use then;
/// it is left as it is.
///
/// Exit code 0: all is whole. 1: something is damaged, repaired or not. 2: it could not be done.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier --store disk:crawl verify
  trapline frontier --store disk:crawl verify --json | jq -r '.damages[].file'
  trapline frontier --store disk:crawl verify --repair saved
  trapline frontier --store disk:saved stats")]
pub(super) struct VerifyStore {
    /// Save what is readable into this folder, if something is damaged; it must not be there yet, or be empty
    #[arg(long, value_name = "NEWFOLDER")]
    repair: Option<String>,
}

/// So many things are listed for people; programs get all.
const LISTED_MAX: usize = 20;

/// After so many records somebody who looks on is told.
const TOLD_EVERY: u64 = 64;

impl VerifyStore {
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        let (url, folder) = (at.url()?, at.folder()?);
        let to = self.repair.as_deref().map(store_url::folder_or_url).transpose()?.map(Path::new);
        to.map_or(Ok(()), check_new)?;
        let bar = progress::begin(true);
        let verified = disk::verify(folder, &mut tell(&bar, "verified"));
        bar.finish_and_clear();
        let verified = verified.map_err(|error| error.to_string())?;
        let is_whole = verified.damages.is_empty();
        let Some(to) = to.filter(|_| !is_whole) else {
            show_verified(url, &verified, out);
            match (is_whole, &self.repair) {
                (true, None) => out.say("All is whole."),
                (true, Some(_)) => out.say("All is whole, so there is nothing to repair, and nothing was written."),
                (false, _) if verified.has_all => out.say(&format!(
                    "Nothing was changed, and nothing is lost: whatever opens the store makes do with the rest, and takes another snapshot, as \
                     `trapline frontier --store {} stats` does. Look after the disk.",
                    pasted(url)
                )),
                (false, _) => out.say(&format!(
                    "Nothing was changed. `trapline frontier --store {} verify --repair NEWFOLDER` saves what is readable.",
                    pasted(url)
                )),
            }
            return Ok(if is_whole { Ended::Well } else { Ended::WithComplaints });
        };
        let bar = progress::begin(true);
        let repaired = disk::repair(folder, to, &mut tell(&bar, "gone through"));
        bar.finish_and_clear();
        let repaired = repaired.map_err(|error| error.to_string())?;
        show_repaired(url, to, &verified, &repaired, out);
        Ok(Ended::WithComplaints)
    }
}

/// Before everything is read, whether there is a place for it.
fn check_new(to: &Path) -> Result<(), String> {
    let what = match std::fs::read_dir(to).map(|mut entries| entries.next().is_none()) {
        Ok(true) => return Ok(()),
        Ok(false) => "it is not empty".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => error.to_string(),
    };
    Err(format!("cannot repair into `{}`: {what}; name a folder that is not there yet", to.display()))
}

fn tell(bar: &ProgressBar, done: &str) -> impl FnMut(u64) {
    bar.set_message("reading snapshots");
    let told = move |record: u64| format!("{record} records {done}");
    move |record| {
        if record.is_multiple_of(TOLD_EVERY) {
            bar.set_message(told(record));
        }
    }
}

fn show_verified(url: &str, verified: &Verified, out: &mut Output) {
    let Verified { segments, records, bytes, snapshots, urls, crawls, damages, has_all, leftovers } =
        verified;
    // What the log leads to is looked at where all of it is there.
    let counted = |count: u64| if *has_all { json!(count) } else { Value::Null };
    let row: Row = vec![
        ("store", json!(url)),
        ("segments", json!(segments)),
        ("records", json!(records)),
        ("bytes", json!(bytes)),
        ("snapshots", json!(snapshots)),
        ("crawls", counted(*crawls)),
        ("urls", counted(*urls)),
        ("damages", list(damages, out, damage)),
        ("leftovers", list(leftovers, out, |leftover| json!(leftover))),
    ];
    out.card(&row);
}

fn show_repaired(url: &str, to: &Path, verified: &Verified, repaired: &Repaired, out: &mut Output) {
    // Of damaged snapshots a repair says nothing: the log has all that is in them.
    let Repaired { urls, lost_urls, lost_notes, lost_crawls, claims_left_out, settlements_left_out, .. } =
        repaired;
    let lost = lost_crawls.iter().map(|(crawl, commands)| json!({"crawl": crawl, "commands": commands}));
    out.card(&vec![
        ("store", json!(url)),
        ("repaired", json!(format!("disk:{}", to.display()))),
        ("urls", json!(urls)),
        ("damages", list(&verified.damages, out, damage)),
        ("lost_urls", list(lost_urls, out, |url| json!(url))),
        ("lost_notes", list(lost_notes, out, |note| json!(note))),
        ("lost_crawls", lost.collect()),
        ("claims_left_out", json!(claims_left_out)),
        ("settlements_left_out", json!(settlements_left_out)),
    ]);
    if !lost_crawls.is_empty() {
        out.say("What made those crawls is lost, and with it the key of their identities: nothing of them could be saved.");
    }
    if *claims_left_out > 0 {
        out.say(
            "What was claimed after the first damage is pending again, and leases from then on are stale.",
        );
    }
    if *settlements_left_out > 0 {
        out.say("URLs whose settlements were left out will be fetched again; their links are saved.");
    }
    out.say(&format!(
        "{url} is as it was. `trapline frontier --store disk:{} stats` shows what was saved.",
        to.display()
    ));
}

fn damage(damage: &Damage) -> Value {
    let bytes = damage.bytes.as_ref();
    json!({
        "file": damage.file,
        "from": bytes.map(|bytes| bytes.start),
        "to": bytes.map(|bytes| bytes.end),
        "what": damage.what,
    })
}

/// All of them for programs; for people as many as can be read.
fn list<T: ToString>(all: &[T], out: &Output, told: impl Fn(&T) -> Value) -> Value {
    if out.is_json() {
        return all.iter().map(told).collect();
    }
    let mut listed: Vec<_> = all.iter().take(LISTED_MAX).map(ToString::to_string).collect();
    if all.len() > LISTED_MAX {
        listed.push(format!("… and {} more, which --json lists", all.len() - LISTED_MAX));
    }
    json!(listed)
}
