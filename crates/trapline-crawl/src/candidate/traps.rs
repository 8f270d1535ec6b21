//! Traps: URLs that a server could make up for ever.

use super::{Origin, Prospect};
use crate::chain::{Flow, Rule};

/// Which URLs look like traps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrapOptions {
    /// How often one segment, or a run of segments, may follow itself in a path; 0 for any number. Defaults to 3.
    pub repeated_segments: usize,
    /// Drops pages of calendars far from the years in which there was a web. Defaults to true.
    pub calendars: bool,
    /// Drops URLs that carry a session in their path. Those in the query are left out of a URL's identity anyway. Defaults to
    /// true.
    pub session_ids: bool,
}

impl Default for TrapOptions {
    fn default() -> Self {
        Self { repeated_segments: 3, calendars: true, session_ids: true }
    }
}

/// Drops what looks like a trap. Seeds are believed.
pub(super) struct Traps(pub(super) TrapOptions);

impl Rule<Prospect> for Traps {
    fn name(&self) -> &'static str {
        "traps"
    }

    fn apply(&self, prospect: &mut Prospect) -> Flow {
        if prospect.origin == Origin::Seed {
            return Flow::Next;
        }
        let (path, query) = (prospect.url.path(), prospect.url.query());
        if self.0.repeated_segments > 0 && repeats_more(path, self.0.repeated_segments) {
            return prospect.drop("traps", "the same segments again and again");
        }
        if self.0.session_ids && has_session(path) {
            return prospect.drop("traps", "a session in the path");
        }
        if self.0.calendars && is_calendar(path, query) {
            return prospect.drop("traps", "a calendar without end");
        }
        Flow::Next
    }
}

/// Whether one segment of a path, or a sequence of up to four, follows itself more often than that.
fn repeats_more(path: &str, most: usize) -> bool {
    // Few paths are long enough, and those that are not need no list of their segments.
    path.bytes().filter(|byte| *byte == b'/').count() > most && repeats(path) > most
}

/// The longest run of one segment, or of one sequence of up to four, in a path.
fn repeats(path: &str) -> usize {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let mut longest = usize::from(!segments.is_empty());
    for length in 1..=4usize.min(segments.len() / 2) {
        let mut run = 0;
        for i in length..segments.len() {
            run = if segments[i] == segments[i - length] { run + 1 } else { 0 };
            longest = longest.max(run / length + 1);
        }
    }
    longest
}

/// `;jsessionid=…` and its kin, and the `(S(…))` of ASP.NET.
fn has_session(path: &str) -> bool {
    const NAMES: [&str; 4] = [";jsessionid=", ";sid=", ";phpsessid=", "/(s("];
    path.contains([';', '(']) && {
        let path = path.to_ascii_lowercase();
        NAMES.iter().any(|name| path.contains(name))
    }
}

/// Words of calendars, as segments of paths and names of parameters.
const CALENDAR: [&str; 11] =
    ["calendar", "calendars", "cal", "event", "events", "month", "year", "date", "day", "week", "agenda"];

/// Whether a URL is the page of a calendar for a year that no page is about but those that a calendar makes up: a month of such a
/// year in a path (`/calendar/2150/05`), or such a year, or a day of it, as a parameter (`?year=2150`, `?date=21500101`).
fn is_calendar(path: &str, query: Option<&str>) -> bool {
    let query = query.unwrap_or_default();
    let is_word = |word: &str| CALENDAR.iter().any(|known| word.eq_ignore_ascii_case(known));
    let in_path = has_odd_year(path)
        && path.split('/').any(is_word)
        && path.split('/').zip(path.split('/').skip(1)).any(|(year, month)| {
            year.len() == 4
                && has_odd_year(year)
                && matches!(month.len(), 1 | 2)
                && month.bytes().all(|byte| byte.is_ascii_digit())
        });
    in_path
        || has_odd_year(query)
            && query
                .split('&')
                .filter_map(|parameter| parameter.split_once('='))
                .any(|(name, value)| is_word(name) && has_odd_year(value))
}

/// Whether there is a year before 1970 or after 2100, by itself or at the beginning of a date in eight digits.
fn has_odd_year(text: &str) -> bool {
    text.as_bytes()
        .chunk_by(|before, after| before.is_ascii_digit() && after.is_ascii_digit())
        .filter(|run| matches!(run.len(), 4 | 8))
        .filter_map(|run| std::str::from_utf8(&run[..4]).ok()?.parse::<u32>().ok())
        .any(|year| (1000..1970).contains(&year) || (2101..=9999).contains(&year))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_segments_are_counted() {
        for (path, runs) in [
            ("/", 0),
            ("/a", 1),
            ("/a/b/c", 1),
            ("/a/a", 2),
            ("/x/a/a/a/y", 3),
            ("/a/b/a/b/a/b", 3),
            ("/a/b/a/c", 1),
            ("/a/b/c/d/a/b/c/d", 2),
        ] {
            assert_eq!(repeats(path), runs, "{path}");
            assert!(runs == 0 || repeats_more(path, runs - 1), "{path}");
            assert!(!repeats_more(path, runs), "{path}");
        }
    }

    #[test]
    fn sessions_are_known_by_their_names() {
        for (path, session) in [
            ("/a;jsessionid=AB12", true),
            ("/A;JSESSIONID=AB12", true),
            ("/(S(abc))/page", true),
            ("/a;b=c", false),
            ("/jsessionid", false),
        ] {
            assert_eq!(has_session(path), session, "{path}");
        }
    }

    #[test]
    fn calendars_end_somewhere() {
        for (path, query, endless) in [
            ("/calendar/2026/05", None, false),
            ("/calendar/2150/05", None, true),
            ("/calendar/1832/05", None, true),
            ("/events", Some("month=1&year=9999"), true),
            ("/events", Some("date=21500101"), true),
            ("/rfc/9110", None, false),
            ("/part/5000", None, false),
            ("/updates/1234", None, false),
            ("/events/4821", None, false),
            ("/events/4821/7", None, true),
            ("/history/year/1912", None, false),
            ("/today/1500/1", None, false),
            ("/Calendar/2150-05", None, false),
            ("/x", Some("update=1234"), false),
            ("/x", Some("Date=2150-01-01"), true),
        ] {
            assert_eq!(is_calendar(path, query), endless, "{path} {query:?}");
        }
    }
}
