//! The log: what the program tells about its work, in text or JSON, to standard error or a file.
//!
//! Whatever comes from the web stays on its line and steers no terminal: control characters are escaped on their way out.
//! Results are no log; they have files of their own.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry};
use trapline_core::Timestamp;

use crate::config::{Log, LogFormat};
use crate::{moment, output, panel};

/// Begins the log of this process, once and for all of its threads.
pub(crate) fn init(log: &Log) -> Result<(), String> {
    let sink = match &log.file {
        None => Sink::Stderr,
        Some(path) => {
            let file = File::options().append(true).create(true).open(path);
            let file = file.map_err(|error| {
                format!(
                    "cannot write the log to {}: {error}; name another file with --log-file",
                    path.display()
                )
            })?;
            Sink::File(Arc::new(file))
        }
    };
    let subscriber = subscriber(log, sink)?;
    tracing::subscriber::set_global_default(subscriber).map_err(|_| "the log has begun already".to_owned())
}

type Subscriber = Box<dyn tracing::Subscriber + Send + Sync>;

fn subscriber<S>(log: &Log, sink: S) -> Result<Subscriber, String>
where
    S: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let level = &log.level.0;
    let filter = Targets::from_str(level).map_err(|error| format!("`{level}` is no level: {error}"))?;
    let layer = tracing_subscriber::fmt::layer().with_timer(Clock).with_ansi(false);
    Ok(match log.format {
        LogFormat::Text => {
            let layer = layer.with_writer(Escaping { sink, escape: escaped_text });
            Box::new(Registry::default().with(layer.with_filter(filter)))
        }
        LogFormat::Json => {
            let layer = layer.json().flatten_event(true).with_writer(Escaping { sink, escape: escaped_json });
            Box::new(Registry::default().with(layer.with_filter(filter)))
        }
    })
}

/// The time of a line, in UTC and to the millisecond.
struct Clock;

impl FormatTime for Clock {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        writer.write_str(&moment::write(Timestamp::from_millis(ms)))
    }
}

/// Where lines go.
#[derive(Clone)]
enum Sink {
    Stderr,
    File(Arc<File>),
}

impl<'w> MakeWriter<'w> for Sink {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        self.clone()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stderr => panel::above(|| io::stderr().write(bytes)),
            Self::File(file) => (&**file).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stderr => io::stderr().flush(),
            Self::File(file) => (&**file).flush(),
        }
    }
}

/// A sink that gets lines without control characters.
struct Escaping<S> {
    sink: S,
    escape: fn(&str) -> Cow<'_, str>,
}

impl<'w, S: MakeWriter<'w>> MakeWriter<'w> for Escaping<S> {
    type Writer = Line<S::Writer>;

    fn make_writer(&'w self) -> Self::Writer {
        Line { sink: self.sink.make_writer(), escape: self.escape }
    }
}

/// One line on its way. Each is written at once, whole, with a line feed at its end.
struct Line<W> {
    sink: W,
    escape: fn(&str) -> Cow<'_, str>,
}

impl<W: Write> Write for Line<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let mut line = (self.escape)(text).into_owned();
        line.push('\n');
        self.sink.write_all(line.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

fn escaped_text(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_control) { Cow::Owned(output::plain(text)) } else { Cow::Borrowed(text) }
}

/// JSON has escaped most of them itself, but not those above ASCII.
fn escaped_json(text: &str) -> Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return Cow::Borrowed(text);
    }
    let harmless = |c: char| if c.is_control() { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    Cow::Owned(text.chars().map(harmless).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::config::sections::log::LogFilter;

    /// What was logged.
    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Page {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'w> MakeWriter<'w> for Page {
        type Writer = Self;

        fn make_writer(&'w self) -> Self {
            self.clone()
        }
    }

    fn logged(level: &str, format: LogFormat, events: impl FnOnce()) -> String {
        let page = Page::default();
        let log = Log { level: LogFilter(level.to_owned()), format, file: None, ..Log::default() };
        tracing::subscriber::with_default(subscriber(&log, page.clone()).unwrap(), events);
        page.text()
    }

    const HOSTILE: &str = "http://a.example/\u{1b}[2J\u{7}\r\n2026-01-01 INFO all is well\u{9b}31m\u{7f}";

    #[test]
    fn a_hostile_url_stays_on_its_line_and_steers_no_terminal() {
        let events =
            || tracing::info!(url = HOSTILE, shown = %HOSTILE, debug = ?HOSTILE, "fetched {HOSTILE}");
        for format in [LogFormat::Text, LogFormat::Json] {
            let text = logged("info", format, events);
            let line = text.strip_suffix('\n').unwrap();
            assert!(!line.chars().any(char::is_control), "{line:?}");
            assert!(line.contains("a.example") && line.contains("all is well"), "{line}");
        }
    }

    #[test]
    fn json_says_what_was_meant_to_be_said() {
        let text = logged("info", LogFormat::Json, || tracing::warn!(url = HOSTILE, status = 404, "gone"));
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["url"], HOSTILE);
        assert_eq!(line["status"], 404);
        assert_eq!(line["message"], "gone");
        assert_eq!(line["level"], "WARN");
        assert!(line["timestamp"].as_str().unwrap().ends_with('Z'), "{line}");
    }

    #[test]
    fn modules_have_levels_of_their_own() {
        let text = logged("warn,trapline_fetch=debug", LogFormat::Text, || {
            tracing::debug!(target: "trapline_fetch::dial", "dialled");
            tracing::trace!(target: "trapline_fetch::dial", "too fine");
            tracing::info!(target: "trapline_crawl", "too chatty");
            tracing::warn!(target: "trapline_crawl", "mind this");
        });
        let told: Vec<_> =
            text.lines().filter_map(|line| line.split_once("Z ")).map(|(_, rest)| rest.trim()).collect();
        assert_eq!(told, ["DEBUG trapline_fetch::dial: dialled", "WARN trapline_crawl: mind this"]);
        assert_eq!(logged("off", LogFormat::Text, || tracing::error!("not even this")), "");
    }

    #[test]
    fn a_log_that_cannot_be_written_is_told() {
        let log = Log { file: Some("/not-there/log".into()), ..Log::default() };
        assert_eq!(
            init(&log),
            Err("cannot write the log to /not-there/log: No such file or directory (os error 2); name another file with \
                 --log-file"
                .to_owned())
        );
    }
}
