//! The service under measurement, for as long as it is needed, in a folder that goes with it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tonic::transport::{Channel, Endpoint};
use trapline_bench::measure;

use crate::Trouble;
use crate::report::Sample;

pub struct Service {
    process: Child,
    folder: PathBuf,
    /// `HOST:PORT`.
    pub address: String,
}

impl Service {
    /// Starts it on an empty folder, with the defaults: a batch is on disk before it is answered.
    pub fn start(program: &Path) -> Result<Self, Trouble> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("trapline-bench-serve-{}-{number}", std::process::id()));
        let mut process = Command::new(program)
            .args(["serve", "--grpc-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--store"])
            .arg(format!("disk:{}", folder.display()))
            .envs(trapline_bench::ENVIRONMENT)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let out = process.stdout.take().ok_or("the service has no output")?;
        let address = BufReader::new(out).lines().map_while(Result::ok).find_map(|line| {
            line.strip_prefix("grpc").and_then(|rest| rest.trim().strip_prefix("http://").map(str::to_owned))
        });
        let address = address.unwrap_or_default();
        let service = Self { process, folder, address };
        if service.address.is_empty() {
            return Err("the service did not say where it listens".into());
        }
        Ok(service)
    }

    pub async fn connect(&self) -> Result<Channel, Trouble> {
        Ok(Endpoint::from_shared(format!("http://{}", self.address))?.tcp_nodelay(true).connect().await?)
    }

    /// Begins to measure, now.
    pub fn watch(&self) -> Result<Watch<'_>, Trouble> {
        Ok(Watch { service: self, server: self.cpu()?, client: measure::cpu_time(), begun: Instant::now() })
    }

    /// What it has used so far, all threads together, user and system.
    fn cpu(&self) -> Result<Duration, Trouble> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        // The name in parentheses may hold anything; the fields after it are counted from the third.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |field: usize| fields.get(field - 3).and_then(|ticks| ticks.parse::<u64>().ok());
        let (user, system) = ticks(14).zip(ticks(15)).ok_or("/proc/PID/stat is strange")?;
        // A tick is a hundredth of a second wherever Linux shows one.
        Ok(Duration::from_millis((user + system) * 10))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A measurement under way.
pub struct Watch<'a> {
    service: &'a Service,
    server: Duration,
    client: Duration,
    begun: Instant,
}

impl Watch<'_> {
    /// It is over; so many URLs were served.
    pub fn over(self, urls: usize) -> Result<Sample, Trouble> {
        let wall = self.begun.elapsed();
        let client = measure::cpu_time().saturating_sub(self.client);
        let server = self.service.cpu()?.saturating_sub(self.server);
        Ok(Sample { urls, wall, client, server })
    }
}
