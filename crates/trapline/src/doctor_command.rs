//! `trapline doctor`: whether this machine can carry a crawl, and what to do where it cannot.
//!
//! It looks and measures; it changes nothing but a file in the output folder, which it takes away again.

mod clock;
mod disk;
mod dns;
mod files;
mod memory;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use crate::config::{ConfigFlags, FileConfig, Flags, Refused};
use crate::ended::{self, Ended};
use crate::output::{Output, plain};

/// Look whether this machine can carry a crawl
///
/// Looks at the limit on open files, names, the clock, the disk and memory, against what the configuration asks for. Each
/// finding is a line: ok, warn or fail, what it is about, what was found, and what to do about it.
///
/// Exit code 0: nothing fails; there may be warnings. 1: something fails. 2: it could not be looked at.
#[derive(Args)]
#[command(after_help = "\
Examples:
  $ trapline doctor
  ok    files   20000 files may be open; 200 fetches and 1024 idle connections need about 1324
  …

  With the configuration and the folder of a crawl, and a name to look up:
  $ trapline doctor --config crawl.toml --out crawl --dns-name www.example.org

  Does the clock agree with the database?
  $ trapline doctor --store postgres://crawler@db.example/frontier

  For programs:
  $ trapline doctor --json | jq 'select(.state != \"ok\")'")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    config: ConfigFlags,
    /// The store of the crawl, such as disk:crawl or postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// The output folder of the crawl. It need not be there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// A name to look up. Without it, that of the first seed in the configuration
    #[arg(long, value_name = "HOST")]
    dns_name: Option<String>,
    /// Print for programs: one JSON object a line
    #[arg(long)]
    json: bool,
}

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ok,
    Warn,
    Fail,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// What was found.
#[derive(Debug)]
struct Finding {
    state: State,
    what: &'static str,
    detail: String,
    /// What to do about it; empty if nothing.
    advice: String,
}

impl Finding {
    fn ok(what: &'static str, detail: impl Into<String>) -> Self {
        Self { state: State::Ok, what, detail: detail.into(), advice: String::new() }
    }

    fn warn(what: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { state: State::Warn, what, detail: detail.into(), advice: advice.into() }
    }

    fn fail(what: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { state: State::Fail, what, detail: detail.into(), advice: advice.into() }
    }
}

pub(crate) fn run(args: &DoctorArgs) -> ExitCode {
    ended::exit("doctor", look(args))
}

fn look(args: &DoctorArgs) -> Result<Ended, String> {
    let began = clock::Reading::take();
    let flags = Flags::default().text("--store", "crawl.store", args.store.as_ref()).text(
        "--out",
        "output.dir",
        args.out.as_ref().map(|out| out.display()),
    );
    let mut report = Report { out: Output::new(args.json), worst: Ended::Well };
    let config = match args.config.load(flags) {
        Ok(loaded) => loaded.config,
        Err(Refused::Unreadable(message)) => return Err(message),
        Err(Refused::Mistakes(mistakes)) => {
            for mistake in mistakes {
                report.tell(Finding::fail(
                    "config",
                    mistake.to_string(),
                    "mend it; until then the defaults are looked at",
                ));
            }
            FileConfig::default()
        }
    };
    crate::log::init(&config.log)?;
    report.tell(files::look(&config));
    report.tell(memory::look(&config));
    disk::look(&config).into_iter().for_each(|finding| report.tell(finding));
    dns::look(&config, args.dns_name.as_deref()).into_iter().for_each(|finding| report.tell(finding));
    clock::look(&config, &began).into_iter().for_each(|finding| report.tell(finding));
    report.out.finish().map(|()| report.worst)
}

struct Report {
    out: Output,
    worst: Ended,
}

impl Report {
    #[expect(clippy::needless_pass_by_value, reason = "a finding is told once")]
    fn tell(&mut self, finding: Finding) {
        let Finding { state, what, detail, advice } = &finding;
        if *state == State::Fail {
            self.worst = Ended::WithComplaints;
        }
        if self.out.is_json() {
            self.out.object(&vec![
                ("state", json!(state.name())),
                ("what", json!(what)),
                ("detail", json!(detail)),
                ("advice", json!(advice)),
            ]);
        } else {
            let advice = if advice.is_empty() { String::new() } else { format!(" → {advice}") };
            self.out.say(&plain(&format!("{:<4}  {what:<6}  {detail}{advice}", state.name())));
        }
        self.out.flush();
    }
}
