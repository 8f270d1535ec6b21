//! What a page of 20 KB costs over a connection that is kept: our fetcher against hyper-util's pooled client, from the same
//! loopback server, which is a process of its own so that its CPU time does not count.
//!
//! Each measurement is a process too, and they take turns. What is measured and how to read it: `bench/README.md`.

mod server;
mod subjects;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};

use trapline_bench::measure::Sample;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SUBJECTS: [&str; 2] = ["ours", "hyper-util"];
const REPETITIONS: usize = 5;
/// CPU a page, as a multiple of hyper-util's.
const TARGET: f64 = 1.5;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        [] => compare(40_000),
        ["--quick"] => compare(4_000),
        ["--serve"] => server::serve(),
        ["--one", name, address, pages] => one(name, address, pages),
        _ => Err("try [--quick], or --one ours|hyper-util ADDRESS PAGES beside a --serve".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("fetch: {message}");
            ExitCode::FAILURE
        }
    }
}

fn one(name: &str, address: &str, pages: &str) -> Result<(), String> {
    let address = address.parse().map_err(|error| format!("{address}: {error}"))?;
    let pages = pages.parse().map_err(|error| format!("{pages}: {error}"))?;
    let sample = match name {
        "ours" => subjects::ours(address, pages),
        "hyper-util" => subjects::hyper_util(address, pages),
        _ => return Err(format!("nobody is called `{name}`")),
    };
    println!("{}", sample.write());
    Ok(())
}

fn compare(pages: u64) -> Result<(), String> {
    let server = Server::start()?;
    println!(
        "best of {REPETITIONS}, in turns, one process each; {pages} pages of {} bytes, {} at a time, one thread, mimalloc",
        server::PAGE_BYTES,
        subjects::AT_ONCE
    );
    let mut best: [Option<Sample>; SUBJECTS.len()] = Default::default();
    for _ in 0..REPETITIONS {
        for (place, name) in SUBJECTS.iter().enumerate() {
            let sample = measure_apart(name, &server.address, pages)?;
            if best[place].as_ref().is_none_or(|best| sample.cpu < best.cpu) {
                best[place] = Some(sample);
            }
        }
    }
    let [Some(ours), Some(theirs)] = &best else { return Err("nothing was measured".to_owned()) };
    for (name, sample) in SUBJECTS.iter().zip([ours, theirs]) {
        println!(
            "{name:12} {:7.2} us CPU a page  {:7.2} us wall  peak {} MiB",
            sample.micros_cpu(),
            sample.micros_wall(),
            sample.peak >> 10
        );
    }
    let ratio = ours.micros_cpu() / theirs.micros_cpu();
    let verdict = if ratio <= TARGET { "reached" } else { "missed" };
    println!("ours costs {ratio:.2} times as much CPU; target at most {TARGET}: {verdict}");
    Ok(())
}

/// The server, for as long as this lives.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start() -> Result<Self, String> {
        let program =
            std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
        let mut process = Command::new(program)
            .arg("--serve")
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start the server: {error}"))?;
        let mut address = String::new();
        let out = process.stdout.take().ok_or("the server has no output")?;
        BufReader::new(out)
            .read_line(&mut address)
            .map_err(|error| format!("no word of the server: {error}"))?;
        Ok(Self { process, address: address.trim().to_owned() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn measure_apart(name: &str, address: &str, pages: u64) -> Result<Sample, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut command = Command::new(program);
    command.args(["--one", name, address, &pages.to_string()]).stderr(Stdio::inherit());
    let output = command
        .envs(trapline_bench::ENVIRONMENT)
        .output()
        .map_err(|error| format!("cannot start {name}: {error}"))?;
    let answer = String::from_utf8_lossy(&output.stdout);
    let sample = answer.lines().find_map(Sample::read).filter(|_| output.status.success());
    sample.ok_or_else(|| format!("{name} failed: {}", output.status))
}
