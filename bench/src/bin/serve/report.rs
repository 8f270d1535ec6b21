//! What was measured, as a table, and whether it is what was asked for.

use std::time::Duration;

use crate::Trouble;

const SINGLE_US: f64 = 12.0;
const BATCHED_US: f64 = 3.0;
const QUEUES_RATIO: f64 = 1.5;

#[derive(Clone, Copy)]
pub struct Sample {
    pub urls: usize,
    pub wall: Duration,
    pub client: Duration,
    pub server: Duration,
}

impl Sample {
    fn server_us(&self) -> f64 {
        self.server.as_secs_f64() * 1e6 / self.urls as f64
    }

    fn client_us(&self) -> f64 {
        self.client.as_secs_f64() * 1e6 / self.urls as f64
    }

    fn a_second(&self) -> f64 {
        self.urls as f64 / self.wall.as_secs_f64()
    }
}

pub struct Report {
    repetitions: usize,
    rows: Vec<(String, Sample)>,
}

impl Report {
    pub fn new(repetitions: usize) -> Self {
        Self { repetitions: repetitions.max(1), rows: Vec::new() }
    }

    pub fn begin(&self) {
        println!(
            "each best of {}, a service and a folder each; CPU µs a URL, server and client apart",
            self.repetitions
        );
        println!("{:42} {:>9} {:>9} {:>10} {:>9}", "", "server", "client", "URLs/s", "URLs");
    }

    /// Adds what took the server the least CPU.
    pub fn best(&mut self, name: &str, measure: impl Fn() -> Result<Sample, Trouble>) -> Result<(), Trouble> {
        self.add(name, measure, |sample| sample.server)
    }

    /// Adds what was over soonest.
    pub fn best_wall(
        &mut self,
        name: &str,
        measure: impl Fn() -> Result<Sample, Trouble>,
    ) -> Result<(), Trouble> {
        self.add(name, measure, |sample| sample.wall)
    }

    fn add(
        &mut self,
        name: &str,
        measure: impl Fn() -> Result<Sample, Trouble>,
        by: impl Fn(&Sample) -> Duration,
    ) -> Result<(), Trouble> {
        let samples = (0..self.repetitions).map(|_| measure()).collect::<Result<Vec<_>, _>>()?;
        let Some(best) = samples.iter().min_by_key(|sample| by(sample)) else { return Ok(()) };
        println!(
            "{name:42} {:9.2} {:9.2} {:10.0} {:9}",
            best.server_us(),
            best.client_us(),
            best.a_second(),
            best.urls
        );
        self.rows.push((name.to_owned(), *best));
        Ok(())
    }

    fn find(&self, name: &str) -> Option<&Sample> {
        self.rows.iter().find(|(row, _)| row == name).map(|(_, sample)| sample)
    }

    /// A line for each target that was measured. `many` queues are compared with 10,000.
    pub fn verdicts(&self, many: usize) {
        println!();
        for (name, most) in [("PutURLs, one by one", SINGLE_US), ("PutDiscovered, by 256", BATCHED_US)] {
            if let Some(sample) = self.find(name) {
                say(
                    sample.server_us() <= most,
                    &format!("{name}: {:.2} µs of server CPU, at most {most}", sample.server_us()),
                );
            }
        }
        let get = |queues: usize| self.find(&format!("GetURLs, 100 × 1 of {queues} queues"));
        if let Some((few, many)) = get(10_000).zip(get(many)) {
            let ratio = many.server_us() / few.server_us();
            say(
                ratio <= QUEUES_RATIO,
                &format!("GetURLs: {ratio:.2} times the server CPU at many queues, at most {QUEUES_RATIO}"),
            );
        }
        for call in ["PutURLs", "PutDiscovered"] {
            let streams = |count: usize| self.find(&format!("{call}, {count} streams"));
            if let Some((one, eight)) = streams(1).zip(streams(8)) {
                let ratio = eight.a_second() / one.a_second();
                say(
                    ratio >= 1.0,
                    &format!("{call}: {ratio:.2} times the throughput with 8 streams, at least 1"),
                );
            }
        }
    }
}

fn say(is_reached: bool, what: &str) {
    println!("{} {what}", if is_reached { "reached    " } else { "NOT REACHED" });
}
