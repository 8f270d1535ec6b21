//! `[log]`: what the program tells about its work.

use std::path::PathBuf;

use crate::config::options::options;
use crate::config::texts::choice;
use crate::config::value::Text;

options! {
    /// The log: what the program tells about its work, beside the results.
    Log {
        /// What is told: `error`, `warn`, `info`, `debug`, `trace` or `off`; also by module, as in `info,trapline_fetch=debug`.
        /// Defaults to info.
        level: LogFilter = LogFilter("info".to_owned());
        /// How it is told: `text` for people, or `json`, an object a line, for programs. Defaults to text.
        format: LogFormat = LogFormat::Text;
        /// A file to which it is appended. Defaults to none: standard error.
        file: Option<PathBuf> = None;
    }
}

choice! {
    /// How a log is written.
    LogFormat: "text or json, in quotes" {
        Text = "text",
        Json = "json",
    }
}

/// Levels, of all modules and of some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogFilter(pub(crate) String);

/// The levels, the most severe first.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

impl Text for LogFilter {
    const FORM: &'static str = "levels in quotes, such as \"info,trapline_fetch=debug\"";

    fn of(text: &str) -> Result<Self, String> {
        for part in text.split(',') {
            let level = part.rsplit_once('=').map_or(part, |(_, level)| level).trim();
            if !LEVELS.contains(&level) {
                let near = crate::config::options::did_you_mean(level, &LEVELS);
                return Err(format!("`{level}` is not one of {}{near}", LEVELS.join(", ")));
            }
        }
        Ok(Self(text.to_owned()))
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}
