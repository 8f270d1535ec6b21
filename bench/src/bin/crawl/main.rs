//! Crawlers against each other: the same pages from the same loopback server, a thousand hosts by their addresses.
//!
//! The server is a process of its own and says which pages were fetched; each crawler is one too. What is measured and how to
//! read it: `bench/README.md`.

mod choice;
mod peers;
mod run;
mod server;
mod web;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use choice::Choice;
use run::Run;
use web::Web;

/// Pages per CPU-second of ours, and how many times as many as Scrapy's.
const TARGET: f64 = 2_500.0;
const TARGET_SCRAPY: f64 = 20.0;
/// Of hosts ÷ delay.
const TARGET_PACE: f64 = 0.95;
/// With a delay, how long a crawl may take to get going before it is watched.
const WARM_UP: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--serve", hosts, pages] => match (hosts.parse(), pages.parse()) {
            (Ok(hosts), Ok(pages)) => server::serve(Web { hosts, pages }),
            _ => Err("--serve HOSTS PAGES".to_owned()),
        },
        _ => Choice::read(words.into_iter()).and_then(|choice| compare(&choice)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("crawl: {message}");
            ExitCode::FAILURE
        }
    }
}

fn compare(choice: &Choice) -> Result<(), String> {
    let pages =
        u32::try_from(choice.pages / u64::from(choice.hosts)).map_err(|_| "there are too many pages")?;
    let web = Web { hosts: choice.hosts, pages: pages.max(1) };
    let server = Server::start(web)?;
    let place = Place::new()?;
    let seeds = place.0.join("seeds");
    let lines: String =
        (0..web.hosts).map(|host| format!("http://{}:{}/\n", Web::address(host), server.port)).collect();
    std::fs::write(&seeds, lines).map_err(|error| format!("cannot write {}: {error}", seeds.display()))?;
    println!(
        "{} pages of {} bytes with {} links on {} hosts; {} requests at once, {} to a host, delay {} s, robots {}",
        web.total(),
        web::PAGE_BYTES,
        web::LINKS,
        web.hosts,
        choice.concurrency,
        choice.per_host,
        choice.delay_s,
        if choice.robots { "on" } else { "off" }
    );
    println!(
        "{:8} {:>9} {:>9} {:>7} {:>7} {:>9} {:>9} {:>9} {:>12} {:>9}",
        "",
        "fetched",
        "different",
        "robots",
        "others",
        "wall s",
        "CPU s",
        "pages/s",
        "pages/CPU s",
        "peak MiB"
    );
    let at_most = (choice.delay_s > 0.0).then(|| Duration::from_secs(choice.seconds));
    let mut efficiency = Vec::new();
    for name in &choice.only {
        let mut command = peers::command(name, choice, &seeds, &place.0.join("out"))?;
        let run = run::run(&mut command, server.port, at_most)?;
        show(name, &run, web);
        if choice.samples {
            samples(&run);
        }
        if choice.delay_s > 0.0 {
            pace(&run, f64::from(web.hosts) / choice.delay_s);
        }
        efficiency.push((name.as_str(), run.seen.different as f64 / run.cpu.as_secs_f64()));
    }
    verdicts(&efficiency, choice.delay_s > 0.0);
    Ok(())
}

fn show(name: &str, run: &Run, web: Web) {
    let (wall, cpu) = (run.wall.as_secs_f64(), run.cpu.as_secs_f64());
    // What was fetched twice counts once.
    let pages = run.seen.different as f64;
    println!(
        "{name:8} {:>9} {:>9} {:>7} {:>7} {wall:>9.2} {cpu:>9.2} {:>9.0} {:>12.0} {:>9}",
        run.seen.requests,
        run.seen.different,
        run.seen.robots,
        run.seen.others,
        pages / wall,
        pages / cpu,
        run.peak_kib >> 10
    );
    if let Some(complaint) = &run.complaint {
        println!("         ended badly: {complaint}");
    }
    let missed = web.total() - run.seen.different;
    if missed > 0 {
        println!("         {missed} pages were not fetched");
    }
}

/// What was resident after each twentieth of the pages.
fn samples(run: &Run) {
    let step = (run.seen.requests / 20).max(1);
    let mut next = step;
    for moment in &run.moments {
        if moment.requests >= next {
            let (seconds, mib) = (moment.at.as_secs_f64(), moment.resident_kib as f64 / 1024.0);
            println!("         {:>9} pages after {seconds:>7.1} s: {mib:>7.1} MiB", moment.requests);
            next = moment.requests + step;
        }
    }
}

/// How much of what the delay allows was fetched, once it was going.
fn pace(run: &Run, allowed: f64) {
    let Some(first) = run.moments.iter().find(|moment| moment.at >= WARM_UP) else { return };
    let Some(last) = run.moments.last().filter(|last| last.at > first.at) else { return };
    let rate = (last.requests - first.requests) as f64 / (last.at - first.at).as_secs_f64();
    let reached = if rate >= allowed * TARGET_PACE { "reached" } else { "missed" };
    println!(
        "         {rate:.1} pages a second from {:.0} s to {:.0} s, {:.1} % of hosts / delay; target {:.0} %: {reached}",
        first.at.as_secs_f64(),
        last.at.as_secs_f64(),
        rate / allowed * 100.0,
        TARGET_PACE * 100.0
    );
}

fn verdicts(efficiency: &[(&str, f64)], has_delay: bool) {
    let Some(&(_, ours)) = efficiency.iter().find(|(name, _)| *name == "ours").filter(|_| !has_delay) else {
        return;
    };
    let word = |reached| if reached { "reached" } else { "missed" };
    println!("ours: {ours:.0} pages per CPU-second; target {TARGET}: {}", word(ours >= TARGET));
    for &(name, theirs) in efficiency.iter().filter(|(name, _)| *name != "ours") {
        let (ratio, target) = (ours / theirs, if name == "scrapy" { TARGET_SCRAPY } else { 1.0 });
        println!("ours against {name}: {ratio:.1} times; target {target}: {}", word(ratio >= target));
    }
}

/// The server, for as long as this lives.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    fn start(web: Web) -> Result<Self, String> {
        let program =
            std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
        let mut process = Command::new(program)
            .args(["--serve", &web.hosts.to_string(), &web.pages.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start the server: {error}"))?;
        let mut port = String::new();
        let out = process.stdout.take().ok_or("the server has no output")?;
        BufReader::new(out)
            .read_line(&mut port)
            .map_err(|error| format!("no word of the server: {error}"))?;
        let port = port.trim().parse().map_err(|_| "the server did not say its port")?;
        Ok(Self { process, port })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A temporary folder, for as long as this lives.
struct Place(PathBuf);

impl Place {
    fn new() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("trapline-bench-crawl-{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|error| format!("cannot make {}: {error}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
