//! One crawl, watched from outside: what the server saw of it, and what the kernel says that it used.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// What the server has seen so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub different: u64,
    pub requests: u64,
    pub robots: u64,
    pub others: u64,
}

/// A crawl at a moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment {
    pub at: Duration,
    pub requests: u64,
    pub resident_kib: u64,
}

#[derive(Debug, Default)]
pub struct Run {
    pub seen: Seen,
    pub wall: Duration,
    pub cpu: Duration,
    pub peak_kib: u64,
    pub moments: Vec<Moment>,
    /// What it said at the end, if it did not end well.
    pub complaint: Option<String>,
}

/// Asks the server; `/anew` makes it forget.
pub fn ask(port: u16, path: &str) -> Result<Seen, String> {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes())?;
        let mut answer = String::new();
        let mut piece = [0; 512];
        while answer.split_once("\r\n\r\n").is_none_or(|(_, body)| body.is_empty()) {
            let length = stream.read(&mut piece)?;
            answer.push_str(&String::from_utf8_lossy(&piece[..length]));
        }
        Ok(answer)
    };
    let answer = ask().map_err(|error| format!("the server does not answer: {error}"))?;
    let body = answer.rsplit("\r\n").next().unwrap_or_default();
    let numbers: Vec<u64> = body.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [different, requests, robots, others] = numbers[..] else {
        return Err(format!("the server said {body}"));
    };
    Ok(Seen { different, requests, robots, others })
}

/// Runs a crawler to its end, or for so long.
pub fn run(command: &mut Command, port: u16, at_most: Option<Duration>) -> Result<Run, String> {
    ask(port, "/anew")?;
    let (mut run, cpu) = (Run::default(), children_cpu()?);
    let begun = Instant::now();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
    let mut process = command.spawn().map_err(|error| format!("cannot start {command:?}: {error}"))?;
    let pid = process.id();
    let mut asked = Instant::now();
    let status = loop {
        if let Some(status) = process.try_wait().map_err(|error| error.to_string())? {
            break Some(status);
        }
        let (resident_kib, peak_kib) = resident(pid);
        run.peak_kib = run.peak_kib.max(peak_kib);
        if asked.elapsed() >= Duration::from_millis(500) {
            asked = Instant::now();
            let requests = ask(port, "/")?.requests;
            run.moments.push(Moment { at: begun.elapsed(), requests, resident_kib });
        }
        if at_most.is_some_and(|at_most| begun.elapsed() > at_most) {
            process.kill().and_then(|()| process.wait()).map_err(|error| error.to_string())?;
            break None;
        }
        std::thread::sleep(LOOK);
    };
    run.wall = begun.elapsed();
    run.cpu = children_cpu()?.saturating_sub(cpu);
    run.seen = ask(port, "/")?;
    run.complaint = status.filter(|status| !status.success()).map(|status| status.to_string());
    Ok(run)
}

/// What all children that were waited for have used, and theirs: user and system.
fn children_cpu() -> Result<Duration, String> {
    let stat = std::fs::read_to_string("/proc/self/stat").map_err(|error| error.to_string())?;
    // The name in parentheses may hold anything; the fields after it are counted from the third.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3).and_then(|ticks| ticks.parse::<u64>().ok());
    let (Some(user), Some(system)) = (ticks(16), ticks(17)) else {
        return Err("/proc/self/stat is strange".to_owned());
    };
    // A tick is a hundredth of a second wherever Linux shows one.
    Ok(Duration::from_millis((user + system) * 10))
}

/// Resident now, and the most there ever was.
fn resident(pid: u32) -> (u64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
    };
    (field("VmRSS:"), field("VmHWM:"))
}
