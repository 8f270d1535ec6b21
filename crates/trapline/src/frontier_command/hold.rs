//! `trapline frontier hold`: owns a store's folder, and serves it to other commands until it is told to end.

use clap::Args;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use trapline_core::format_duration;

use super::Ended;
use super::address::Address;
use super::output::Output;
use crate::store_url;

/// Keep a store open for other commands
///
/// Opens the store, tells what was found in it, and serves it through the socket in its folder, so that other commands need not
/// open it each time. Ends in good order on Ctrl-C or SIGTERM: everything answered is then on disk. The store is made if it is not there.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier --store disk:crawl hold &
  trapline frontier --store 'disk:crawl?durability=interval&period=100ms' hold")]
pub(super) struct Hold {}

impl Hold {
    #[expect(clippy::unused_self, reason = "commands are run alike, whether they have arguments or not")]
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        let url = at.url()?;
        let store = store_url::serve(url)?;
        // Only now: while the store is being opened, a signal may end the process as usual.
        let mut signals = Signals::new([SIGINT, SIGTERM])
            .map_err(|error| format!("cannot listen to signals: {error}; try again"))?;
        let (opened, crawls) = store.recovered();
        let crawls = crawls.iter().map(|(name, found)| {
            json!({
                "crawl": &**name,
                "pending": found.pending,
                "leased": found.leased,
                "seen": found.seen,
                "dead": found.dead,
            })
        });
        out.card(&vec![
            ("store", json!(url)),
            ("process", json!(std::process::id())),
            ("durability", json!(store.durability().to_string())),
            ("log_position", json!(opened.log_position)),
            ("snapshot", json!(opened.snapshot)),
            ("snapshots_passed_over", json!(opened.snapshots_passed_over)),
            ("bytes_cut", json!(opened.bytes_cut)),
            ("took", json!(format_duration(opened.took))),
            ("crawls", json!(crawls.collect::<Vec<_>>())),
        ]);
        out.say("Other commands can use it now; Ctrl-C ends it.");
        out.flush();
        signals.forever().next();
        store.close().map_err(|error| error.to_string())?;
        Ok(Ended::Well)
    }
}
