//! The clock: whether its year can be right, whether it runs evenly, and whether a server's agrees.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use trapline_core::Timestamp;

use super::Finding;
use crate::config::FileConfig;
use crate::moment;

/// When this was written, and when nobody will run it any more: 2026 and 2100.
const PLAUSIBLE_MS: std::ops::Range<u64> = 1_767_225_600_000..4_102_444_800_000;
/// So much two clocks may differ, or one may jump while it is watched.
const OFFSET_WANTED: Duration = Duration::from_secs(1);

const SET_IT: &str = "set the clock, and keep it set with NTP (systemd-timesyncd, chrony)";

/// What both clocks of this machine said at one moment.
pub(super) struct Reading {
    wall: SystemTime,
    even: Instant,
}

impl Reading {
    pub(super) fn take() -> Self {
        Self { wall: SystemTime::now(), even: Instant::now() }
    }

    fn wall_ms(&self) -> u64 {
        let since = self.wall.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

pub(super) fn look(config: &FileConfig, began: &Reading) -> Vec<Finding> {
    let now = Reading::take();
    let mut findings = vec![judge(began, &now)];
    let store = config.crawl.store.as_ref().map(|store| &*store.0);
    findings.extend(store.into_iter().flat_map(of_server));
    findings
}

fn judge(began: &Reading, now: &Reading) -> Finding {
    let says = moment::write(Timestamp::from_millis(now.wall_ms()));
    if !PLAUSIBLE_MS.contains(&now.wall_ms()) {
        return Finding::fail("clock", format!("it says {says}, which cannot be"), SET_IT);
    }
    let (even, wall) = (now.even.saturating_duration_since(began.even), now.wall.duration_since(began.wall));
    let jumped = match wall {
        Ok(wall) => wall.abs_diff(even),
        Err(back) => back.duration() + even,
    };
    if jumped > OFFSET_WANTED {
        let detail = format!("it jumped by {:.1} s while it was watched", jumped.as_secs_f64());
        return Finding::warn("clock", detail, SET_IT);
    }
    Finding::ok("clock", format!("it says {says}, and runs evenly"))
}

/// Whether a server that keeps the store answers, how far its clock is from ours, and whether it is ready for us; nothing if no server
/// does.
fn of_server(url: &str) -> Vec<Finding> {
    let shown = crate::store_url::shown(url);
    let failed = |error| {
        let advice = if shown.starts_with("grpc") {
            "see that `trapline serve` runs there, and that TRAPLINE_TOKEN has a token if it wants one"
                .to_owned()
        } else {
            format!("`trapline store check {shown}` tells more")
        };
        Finding::fail("store", format!("cannot be used: {error}"), advice)
    };
    let before = Reading::take();
    match crate::store_url::server_clock(url) {
        Ok(None) => Vec::new(),
        Err(error) => vec![failed(error)],
        Ok(Some(server)) => {
            let mut findings = vec![judge_server(&shown, server.as_millis(), &before, &Reading::take())];
            findings.extend(crate::store_url::open(url).err().map(failed));
            findings
        }
    }
}

/// The server's clock was read at some moment between two of ours.
fn judge_server(shown: &str, server_ms: u64, before: &Reading, after: &Reading) -> Finding {
    let (before, after) = (before.wall_ms(), after.wall_ms());
    let offset = if server_ms < before { before - server_ms } else { server_ms.saturating_sub(after) };
    let way = if server_ms < before { "behind" } else { "ahead" };
    if Duration::from_millis(offset) > OFFSET_WANTED {
        let detail = format!("that of {shown} is {:.1} s {way}", offset as f64 / 1e3);
        return Finding::warn(
            "clock",
            detail,
            "crawls follow the server's clock, so nothing breaks; set the one that is wrong",
        );
    }
    Finding::ok("clock", format!("that of {shown} agrees"))
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn clocks_that_cannot_be_right_are_told() {
        let now = Reading::take();
        let at = |wall_s: u64, even_ms: u64| Reading {
            wall: UNIX_EPOCH + Duration::from_secs(wall_s),
            even: now.even + Duration::from_millis(even_ms),
        };
        let check = |began: &Reading, now: &Reading, state, words: &str| {
            let found = judge(began, now);
            assert_eq!(found.state, state, "{found:?}");
            assert!(found.detail.contains(words), "{found:?}");
        };
        let then = 1_800_000_000;
        check(
            &at(then, 0),
            &at(then + 1, 1000),
            State::Ok,
            "it says 2027-01-15T08:00:01.000Z, and runs evenly",
        );
        check(&at(0, 0), &at(1, 1000), State::Fail, "it says 1970-01-01T00:00:01.000Z, which cannot be");
        check(&at(then, 0), &at(then + 60, 1000), State::Warn, "it jumped by 59.0 s");
        check(&at(then, 0), &at(then - 60, 1000), State::Warn, "it jumped by 61.0 s");
    }

    #[test]
    fn a_server_whose_clock_differs_is_told() {
        let now = Reading::take();
        let check = |server_ms, state, words: &str| {
            let found = judge_server("postgres://h/d", server_ms, &now, &now);
            assert_eq!(found.state, state, "{found:?}");
            assert!(found.detail.contains(words), "{found:?}");
        };
        check(now.wall_ms() + 500, State::Ok, "that of postgres://h/d agrees");
        check(now.wall_ms() - 90_000, State::Warn, "is 90.0 s behind");
        check(now.wall_ms() + 90_000, State::Warn, "is 90.0 s ahead");
    }
}
