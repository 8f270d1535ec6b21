//! How a command ended, and the exit code that says so.

use std::process::ExitCode;
use std::sync::OnceLock;

use crate::{output, panel};

/// Exit code where the command did its work, and some of what it was given or asked about was not as it should be.
const COMPLAINTS: u8 = 1;

/// Exit code where the command could not do its work.
const TROUBLE: u8 = 2;

/// How a command ended that could do its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Well,
    WithComplaints,
}

impl Ended {
    pub(crate) fn and(self, other: Self) -> Self {
        if self == Self::Well { other } else { self }
    }
}

/// Ends the command of this name, which may have had trouble.
pub(crate) fn exit(command: &str, ended: Result<Ended, String>) -> ExitCode {
    match ended {
        Ok(Ended::Well) => ExitCode::SUCCESS,
        Ok(Ended::WithComplaints) => ExitCode::from(COMPLAINTS),
        Err(message) => {
            complain(&format!("trapline {command}: {message}"));
            ExitCode::from(TROUBLE)
        }
    }
}

/// Which command crawls in this process, if it is not `crawl`.
static CRAWLS_AS: OnceLock<&str> = OnceLock::new();

/// From here on, what is told of the crawl is told by the command of this name.
pub(crate) fn crawls_as(command: &'static str) {
    // There is one command in a process.
    let _ = CRAWLS_AS.set(command);
}

/// Complains of something about the crawl, as the command that crawls.
pub(crate) fn complain_of_crawl(message: &str) {
    complain(&format!("trapline {}: {message}", CRAWLS_AS.get().unwrap_or(&"crawl")));
}

/// Nobody may be listening, and that is no reason to stop.
pub(crate) fn complain(message: &str) {
    use std::io::Write;
    let lines: Vec<_> = message.split('\n').map(output::plain).collect();
    let _ = panel::above(|| writeln!(std::io::stderr(), "{}", lines.join("\n")));
}
