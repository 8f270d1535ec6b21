//! How many files may be open: each connection is one.

use rustix::process::{Resource, getrlimit};

use super::Finding;
use crate::config::FileConfig;

/// Logs, results, the store, name servers.
const OTHERS: u64 = 100;

pub(super) fn look(config: &FileConfig) -> Finding {
    let limit = getrlimit(Resource::Nofile);
    judge(limit.current, limit.maximum, config)
}

/// `None` stands for no limit.
fn judge(soft: Option<u64>, hard: Option<u64>, config: &FileConfig) -> Finding {
    let fetches = u64::from(config.crawl.concurrency);
    let idle = u64::try_from(config.connect.idle_max).unwrap_or(u64::MAX);
    let least = fetches.saturating_add(OTHERS);
    let needed = least.saturating_add(idle);
    let allowed = soft.map_or("any number of files".to_owned(), |soft| format!("{soft} files"));
    let detail =
        format!("{allowed} may be open; {fetches} fetches and {idle} idle connections need about {needed}");
    let within = |limit: Option<u64>, needed| limit.is_none_or(|limit| limit >= needed);
    if within(soft, needed) {
        return Finding::ok("files", detail);
    }
    let raise = if within(hard, needed) {
        format!("run `ulimit -n {needed}` first, or lower crawl.concurrency or connect.idle_max")
    } else {
        let most = hard.unwrap_or(u64::MAX);
        format!(
            "raise the hard limit, which is {most} (LimitNOFILE= in systemd, /etc/security/limits.conf elsewhere), or lower \
             crawl.concurrency or connect.idle_max"
        )
    };
    if within(soft, least) {
        Finding::warn("files", detail, raise)
    } else {
        Finding::fail("files", detail, raise)
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn limits_are_held_against_what_is_asked_for() {
        let config = FileConfig::default();
        let check = |soft, hard, state, words: &str| {
            let found = judge(soft, hard, &config);
            assert_eq!(found.state, state, "{found:?}");
            assert!(format!("{} {}", found.detail, found.advice).contains(words), "{found:?}");
        };
        check(Some(65_536), Some(65_536), State::Ok, "65536 files may be open; 200 fetches and 1024 idle");
        check(None, None, State::Ok, "any number of files");
        check(Some(1024), Some(4096), State::Warn, "run `ulimit -n 1324` first");
        check(Some(1024), Some(1024), State::Warn, "raise the hard limit, which is 1024");
        check(Some(256), None, State::Fail, "run `ulimit -n 1324` first");
    }
}
