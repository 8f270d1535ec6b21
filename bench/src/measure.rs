//! What is read off while a subject works: wall clock, CPU time of the process, resident memory.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Adds up the time of the pieces of work that count, and only of those.
#[derive(Clone, Copy, Default)]
pub struct Stopwatch {
    pub wall: Duration,
    pub cpu: Duration,
}

impl Stopwatch {
    /// Does a piece of work that counts.
    pub fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (cpu, wall) = (cpu_time(), Instant::now());
        let done = work();
        self.wall += wall.elapsed();
        self.cpu += cpu_time().saturating_sub(cpu);
        done
    }
}

/// What the process has used, all its threads together.
pub fn cpu_time() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// What this thread has used.
pub fn thread_cpu_time() -> Duration {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// How many bytes the process has given to the disk so far, by the kernel's account: whole pages, each time one is
/// changed after it was written.
pub fn written() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let field = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    field.and_then(|field| field.trim().parse().ok()).unwrap_or(0)
}

/// Resident now, and the most there ever was, in KiB.
pub fn resident() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
    };
    (field("VmRSS:"), field("VmHWM:"))
}

/// One measurement of one subject, in a process of its own.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    pub operations: u64,
    pub wall: Duration,
    pub cpu: Duration,
    /// By how much the process grew while the subject was filled and used, in KiB.
    pub held: u64,
    /// The most the process ever had resident, in KiB.
    pub peak: u64,
    /// What else there is to say.
    pub note: String,
}

impl Sample {
    pub fn micros_wall(&self) -> f64 {
        self.wall.as_secs_f64() * 1e6 / self.operations as f64
    }

    pub fn micros_cpu(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.operations as f64
    }

    /// As one line, for the process that asked.
    pub fn write(&self) -> String {
        let Self { operations, wall, cpu, held, peak, note } = self;
        format!("sample {operations} {} {} {held} {peak} {note}", wall.as_nanos(), cpu.as_nanos())
    }

    pub fn read(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("sample ")?.splitn(6, ' ');
        let mut number = || words.next()?.parse::<u64>().ok();
        let operations = number()?;
        let (wall, cpu) = (Duration::from_nanos(number()?), Duration::from_nanos(number()?));
        let (held, peak) = (number()?, number()?);
        Some(Self { operations, wall, cpu, held, peak, note: words.next().unwrap_or_default().to_owned() })
    }
}
