//! How much memory there is, for the machine or for the container that this runs in.

use super::Finding;
use crate::config::FileConfig;
use crate::size;

/// What a fetch takes as a rule: buffers, TLS, a page and its links.
const FETCH_BYTES: u64 = 512 << 10;
/// What the program takes before it fetches anything.
const BASE_BYTES: u64 = 64 << 20;

pub(super) fn look(config: &FileConfig) -> Finding {
    let available = std::fs::read_to_string("/proc/meminfo").ok().as_deref().and_then(available);
    let limit =
        std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    let free = [available, limit].into_iter().flatten().min();
    judge(free, config)
}

/// What Linux says could be had without swapping.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn judge(free: Option<u64>, config: &FileConfig) -> Finding {
    let fetches = u64::from(config.crawl.concurrency);
    let usual = BASE_BYTES + config.robots.memory_bytes_max.0 + fetches.saturating_mul(FETCH_BYTES);
    let worst = usual.saturating_add(fetches.saturating_mul(config.limits.decoded_bytes_max.0));
    let Some(free) = free else {
        return Finding::ok("memory", "this system does not say how much there is");
    };
    let detail = format!(
        "{} are there; {fetches} fetches take about {}, and {} if all pages were as large as they may be",
        rounded(free),
        rounded(usual),
        rounded(worst)
    );
    if free >= usual {
        Finding::ok("memory", detail)
    } else {
        Finding::warn("memory", detail, "lower crawl.concurrency, or find more memory")
    }
}

/// In MiB, which is as exact as it can be meant.
pub(super) fn rounded(bytes: u64) -> String {
    if bytes < 1 << 20 { size::format(bytes) } else { format!("{}MiB", bytes >> 20) }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn memory_is_held_against_what_fetches_take() {
        let config = FileConfig::default();
        let found = judge(Some(8 << 30), &config);
        assert_eq!(
            (found.state, &*found.detail),
            (
                State::Ok,
                "8192MiB are there; 200 fetches take about 228MiB, and 3428MiB if all pages were as large as they may be"
            )
        );
        assert_eq!(judge(Some(100 << 20), &config).state, State::Warn);
        assert_eq!(judge(None, &config).state, State::Ok);
        assert_eq!(available("MemTotal: 2 kB\nMemAvailable:    1024 kB\n"), Some(1 << 20));
        assert_eq!(available("nonsense"), None);
    }
}
