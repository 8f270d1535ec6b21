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
        /// A collector to which traces of visits are sent, over OTLP with HTTP and protobuf: `http://127.0.0.1:4318`. It is never waited
        /// for. Defaults to none.
        otlp: Option<String> = None;
        /// Of how many visits that went well there are traces, as a part of all: 1 for all, 0 for none. There is one of each that did
        /// not. Defaults to 0.01.
        otlp_sample: f64 = 0.01;
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
