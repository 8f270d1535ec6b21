//! `trapline config`: tells every option, finds mistakes, and shows what is in force.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::config::{self, Flags, Refused};
use crate::ended::{self, Ended, complain};

/// Tell every option with its meaning, find mistakes, show what is in force
///
/// A crawl is configured by one TOML file, variables of the environment and flags, in rising order: pace.delay in the file is
/// TRAPLINE__PACE__DELAY in the environment, and --set pace.delay=2s, or --delay 2s, as a flag. Everything has a default, so
/// that a file says only what is different.
///
/// Exit code 0: done, and with --check or --show without mistakes. 1: there are mistakes; all of them are told, with their
/// lines. 2: it could not be done.
#[derive(Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  A file to begin with, and to read:
  $ trapline config --defaults > crawl.toml

  All mistakes at once:
  $ trapline config --check crawl.toml
  crawl.toml:3: there is no option `dely` in [pace]; did you mean `delay`?
  crawl.toml:9: limits.total_timeout: `5` is not a duration: write digits and a unit …

  Who has the last word?
  $ TRAPLINE__PACE__DELAY=2s trapline config --show --config crawl.toml --set pace.per_host=4 | grep -v '# default'
  [pace]
  delay = \"2s\"  # TRAPLINE__PACE__DELAY
  per_host = 4  # --set pace.per_host"
)]
pub(crate) struct ConfigArgs {
    /// Print a file with every option, its meaning and its default
    #[arg(long, conflicts_with_all = ["check", "show"])]
    defaults: bool,
    /// Find all mistakes in a file, and in what the environment and --set say on top
    #[arg(long, value_name = "FILE", conflicts_with_all = ["show", "config"])]
    check: Option<PathBuf>,
    /// Print every value that is in force, and where it comes from. Passwords are not shown
    #[arg(long)]
    show: bool,
    /// The file to begin with
    #[arg(long, value_name = "FILE", requires = "show")]
    config: Option<PathBuf>,
    /// An option of your choice, as section.key=value. Can be given several times
    #[arg(long, value_name = "OPTION=VALUE", conflicts_with = "defaults")]
    set: Vec<String>,
}

pub(crate) fn run(args: &ConfigArgs) -> ExitCode {
    ended::exit("config", tell(args))
}

fn tell(args: &ConfigArgs) -> Result<Ended, String> {
    if args.defaults {
        return print(&config::defaults()).map(|()| Ended::Well);
    }
    let file = args.check.as_deref().or(args.config.as_deref());
    match config::load(file, std::env::vars_os(), &Flags::default().set(&args.set)) {
        Ok(loaded) if args.show => print(&config::shown(&loaded)).map(|()| Ended::Well),
        Ok(loaded) => {
            if let Some(file) = args.check.as_deref() {
                for warning in loaded.config.warnings() {
                    complain(&format!("{}: {warning}", Path::display(file)));
                }
                print(&format!("{}: no mistakes\n", Path::display(file)))?;
            }
            Ok(Ended::Well)
        }
        Err(Refused::Unreadable(message)) => Err(message),
        Err(Refused::Mistakes(mistakes)) => {
            mistakes.iter().for_each(|mistake| complain(&mistake.to_string()));
            Ok(Ended::WithComplaints)
        }
    }
}

fn print(text: &str) -> Result<(), String> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write to standard output: {error}"))
        }
        _ => Ok(()),
    }
}
