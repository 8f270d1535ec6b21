//! What is read off a phase, as one line from the process that was measured to the one that asked.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use trapline_bench::measure::{cpu_time, resident, thread_cpu_time, written};

/// One phase of one subject.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    pub phase: String,
    pub operations: u64,
    /// Of the batches alone, on the wall clock.
    pub wall: Duration,
    /// Of the whole process, background threads included, but for preparing what it is given.
    pub cpu: Duration,
    /// Half of the batches took at most this long; 99 of 100; 999 of 1,000; the slowest.
    pub tails: [Duration; 4],
    /// Bytes given to the disk.
    pub written: u64,
    /// Bytes the folder takes at the end.
    pub disk: u64,
    /// The most the process ever had resident, in KiB.
    pub peak: u64,
    pub note: String,
}

impl Figures {
    pub fn write(&self) -> String {
        let Self { phase, operations, wall, cpu, tails, written, disk, peak, note } = self;
        let mut line = format!("figures {phase} {operations} {} {}", wall.as_nanos(), cpu.as_nanos());
        for tail in tails {
            let _ = write!(line, " {}", tail.as_nanos());
        }
        let _ = write!(line, " {written} {disk} {peak} {note}");
        line
    }

    pub fn read(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("figures ")?.splitn(12, ' ');
        let phase = words.next()?.to_owned();
        let mut number = || words.next()?.parse::<u64>().ok();
        let operations = number()?;
        let (wall, cpu) = (Duration::from_nanos(number()?), Duration::from_nanos(number()?));
        let mut tails = [Duration::ZERO; 4];
        for tail in &mut tails {
            *tail = Duration::from_nanos(number()?);
        }
        let (written, disk, peak) = (number()?, number()?, number()?);
        let note = words.next().unwrap_or_default().to_owned();
        Some(Self { phase, operations, wall, cpu, tails, written, disk, peak, note })
    }

    pub fn per_second(&self) -> f64 {
        self.operations as f64 / self.wall.as_secs_f64()
    }

    pub fn micros_cpu(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.operations as f64
    }
}

/// Reads off while a phase runs.
pub struct Gauge {
    cpu: Duration,
    written: u64,
    aside: Duration,
    batches: Vec<Duration>,
}

impl Gauge {
    pub fn begin() -> Self {
        Self { cpu: cpu_time(), written: written(), aside: Duration::ZERO, batches: Vec::new() }
    }

    /// What does not count: making URLs and preparing them, in this thread.
    pub fn aside<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let cpu = thread_cpu_time();
        let done = work();
        self.aside += thread_cpu_time().saturating_sub(cpu);
        done
    }

    /// A batch, until it is answered.
    pub fn batch<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let wall = Instant::now();
        let done = work();
        self.batches.push(wall.elapsed());
        done
    }

    pub fn end(self, phase: &str, operations: u64, folder: &Path, note: String) -> Figures {
        let Self { cpu, written: before, aside, mut batches } = self;
        let cpu = cpu_time().saturating_sub(cpu + aside);
        let wall = batches.iter().sum();
        batches.sort_unstable();
        let (disk, (_, peak)) = (size_of(folder), resident());
        Figures {
            phase: phase.to_owned(),
            operations,
            wall,
            cpu,
            tails: [0.5, 0.99, 0.999, 1.0].map(|share| quantile(&batches, share)),
            written: written() - before,
            disk,
            peak,
            note,
        }
    }
}

/// The value that so large a share does not exceed.
pub fn quantile(sorted: &[Duration], share: f64) -> Duration {
    let at = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(at.saturating_sub(1)).copied().unwrap_or_default()
}

/// What a folder takes on disk, by the blocks of its files.
fn size_of(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size_of(&entry.path()),
        Ok(metadata) => metadata.blocks() * 512,
        Err(_) => 0,
    };
    entries.map(size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_come_back_as_they_were_written() {
        let figures = Figures {
            phase: "offers".to_owned(),
            operations: 10,
            wall: Duration::from_nanos(1),
            cpu: Duration::from_nanos(2),
            tails: [3, 4, 5, 6].map(Duration::from_nanos),
            written: 7,
            disk: 8,
            peak: 9,
            note: "a note of words".to_owned(),
        };
        assert_eq!(Figures::read(&figures.write()), Some(figures));
    }

    #[test]
    fn quantiles_are_values_that_occurred() {
        let sorted = (1..=1000).map(Duration::from_nanos).collect::<Vec<_>>();
        let at = |share| quantile(&sorted, share).as_nanos();
        assert_eq!([at(0.5), at(0.99), at(0.999), at(1.0)], [500, 990, 999, 1000]);
        assert_eq!(quantile(&[], 0.5), Duration::ZERO);
    }
}
