//! Fewer fetches at once while processors or memory are short, more when there is room again.

use std::time::Duration;

/// How often it is looked at.
pub(super) const PERIOD: Duration = Duration::from_secs(1);

/// Fewer make no sense.
const LEAST: usize = 4;

/// How busy the machine is with this process, as shares of what there is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pressure {
    pub(super) cpu: f64,
    pub(super) memory: f64,
}

/// How many fetches may go on at once from now on.
pub(super) fn next(now: usize, most: usize, pressure: Pressure) -> usize {
    let least = LEAST.min(most);
    let next = if pressure.memory > 0.85 {
        now * 3 / 4
    } else if pressure.cpu > 0.97 {
        now * 9 / 10
    } else if pressure.cpu < 0.85 && pressure.memory < 0.75 {
        now + (now / 5).max(1)
    } else {
        now
    };
    next.clamp(least, most)
}

/// Measures this process by what the kernel tells.
pub(super) struct Gauge {
    ticks: u64,
    at: std::time::Instant,
    cores: f64,
    memory_bytes: u64,
}

impl Gauge {
    /// None where the kernel does not tell.
    pub(super) fn new() -> Option<Self> {
        let cores = std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
        Some(Self {
            ticks: cpu_ticks()?,
            at: std::time::Instant::now(),
            cores,
            memory_bytes: memory_limit()?,
        })
    }

    /// The pressure since it was last asked for.
    pub(super) fn read(&mut self) -> Option<Pressure> {
        let (ticks, at) = (cpu_ticks()?, std::time::Instant::now());
        // A tick is a hundredth of a second on every Linux there is.
        let used_s = ticks.saturating_sub(self.ticks) as f64 / 100.0;
        let passed_s = at.duration_since(self.at).as_secs_f64().max(1e-3);
        (self.ticks, self.at) = (ticks, at);
        let memory = resident_bytes()? as f64 / self.memory_bytes as f64;
        Some(Pressure { cpu: used_s / passed_s / self.cores, memory })
    }
}

fn cpu_ticks() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name, which may hold anything, ends with the last parenthesis.
    let mut fields = stat[stat.rfind(')')? + 2..].split(' ').skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    field_kib(&status, "VmRSS:").map(|kib| kib * 1024)
}

/// What this process may take: the container's limit, or the machine's memory.
fn memory_limit() -> Option<u64> {
    let machine = field_kib(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")? * 1024;
    let own = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let own = own.and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(u64::MAX);
    Some(machine.min(own)).filter(|limit| *limit > 0)
}

fn field_kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_leaves_fewer_and_room_gives_more() {
        let check = |now, cpu, memory, expected| {
            assert_eq!(next(now, 200, Pressure { cpu, memory }), expected, "{now} {cpu} {memory}");
        };
        check(200, 0.5, 0.5, 200);
        check(100, 0.5, 0.5, 120);
        check(4, 0.1, 0.1, 5);
        check(100, 0.9, 0.5, 100);
        check(100, 0.99, 0.5, 90);
        check(100, 0.1, 0.9, 75);
        check(4, 1.0, 0.99, 4);
        assert_eq!(next(2, 2, Pressure { cpu: 1.0, memory: 1.0 }), 2);
    }

    #[test]
    fn this_process_can_be_measured() {
        let mut gauge = Gauge::new().unwrap();
        let pressure = gauge.read().unwrap();
        assert!(pressure.memory > 0.0 && pressure.memory < 1.0, "{pressure:?}");
    }
}
