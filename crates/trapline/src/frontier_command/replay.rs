//! `trapline frontier replay`: plays a trace on a store, in a crawl of its own.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use trapline_core::Timestamp;
use trapline_frontier::script::{self, Player, RunError, Script, Step, Verb};
use trapline_frontier::{CrawlChange, ErrorKind, Steer, Store, StoreError};
use trapline_sim::Opened;

use super::Ended;
use crate::store_url;

/// Where to play a script unless a store is named.
const DEFAULT_STORE: &str = "memory:";

/// Play a trace script and compare what comes back
///
/// Runs the script in a fresh crawl (one partition) and prints each line with what really came back. The output is
/// a script again: one that holds. Where it differs from what was expected, a comment says so. A store that keeps
/// something is left without the crawl. Without `--store` it is played on `memory:`.
///
/// Exit code 0: all as expected. 1: something differed. 2: the script could not be read or run.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier replay lease.trace --store memory:
  trapline frontier replay crash.trace --store disk:/tmp/trial
  echo '0 admit http://a.example/1 -> added' | trapline frontier replay -

A script is a list of settings and of lines TIME VERB ARGUMENTS -> EXPECTED:
  set delay 0
  0   admit  http://a.example/1         -> added
  0   claim  1                          -> http://a.example/1
  1s  settle http://a.example/1 done    -> done
  1s  queue  a.example                  -> state=empty done=1
The manual's page on traces (docs/manual/traces.md) has the whole language.")]
pub(super) struct Replay {
    /// The script; `-` reads standard input
    file: PathBuf,
}

impl Replay {
    /// Ends with complaints if lines differed.
    pub(super) fn run(&self, url: Option<&str>, out: &mut impl Write) -> Result<Ended, String> {
        let url = url.unwrap_or(DEFAULT_STORE);
        let Opened { store, reopen } = store_url::open(url)?;
        let keeps = reopen.is_some();
        let text = read(&self.file)?;
        let name = self.file.display();
        let script = script::parse(&text).map_err(|error| format!("{name}: {error}"))?;
        if let Some((step, word)) = reopens(&script).filter(|_| !keeps) {
            let error = RunError::KeepsNothing(word);
            return Err(format!("{name}: line {}: {error}", step.line));
        }
        // A reader that has seen enough closes the pipe; that is no trouble of ours.
        let mut print = |line: &str| {
            let _ = writeln!(out, "{line}");
        };
        for (name, value) in &script.settings {
            print(&format!("set {name} {value}"));
        }
        let crawl = pollster::block_on(free_name(&*store)).map_err(|error| error.to_string())?;
        let played = async {
            let player = Player::start(store, &crawl, &script.settings).await?;
            script::run_by(player, &script, reopen, |step, answer, _| print(&step.describe(answer))).await
        };
        let played = pollster::block_on(played).map_err(|error| format!("{name}: {error}"));
        if keeps {
            let store = store_url::open(url)?.store;
            let delete = Steer::Crawl(CrawlChange::Delete);
            let deleted = pollster::block_on(store.steer(&crawl, Timestamp::ZERO, delete));
            deleted.map_err(|error| error.to_string())?;
        }
        let different = played?;
        let compared = script.steps.iter().filter(|step| step.expected.is_some()).count();
        let lines = |count| if count == 1 { "1 line".to_owned() } else { format!("{count} lines") };
        if different == 0 {
            eprintln!("{name}: {} played, {compared} compared, all as expected", lines(script.steps.len()));
        } else {
            eprintln!("{name}: {} of {compared} compared differed", lines(different));
        }
        Ok(if different == 0 { Ended::Well } else { Ended::WithComplaints })
    }
}

/// A name that no crawl of the store has.
async fn free_name(store: &dyn Store) -> Result<String, StoreError> {
    let mut name = "trace".to_owned();
    for number in 2_u64.. {
        match store.stats(&name, Timestamp::ZERO).await {
            Err(error) if error.kind() == ErrorKind::NotFound => break,
            Err(error) => return Err(error),
            Ok(_) => name = format!("trace-{number}"),
        }
    }
    Ok(name)
}

/// The first step that closes the store, which the memory store cannot survive.
fn reopens(script: &Script) -> Option<(&Step, &'static str)> {
    script.steps.iter().find_map(|step| match step.verb {
        Verb::Restart => Some((step, "restart")),
        Verb::Crash => Some((step, "crash")),
        _ => None,
    })
}

fn read(file: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        std::io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .map_err(|error| format!("cannot read standard input: {error}"))?;
    } else {
        bytes = std::fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("{}: line {line}: expected text in UTF-8", file.display())
    })
}
