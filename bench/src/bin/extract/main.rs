//! Links from real pages: what our reader of pages costs, beside lol_html's rewriter with handlers for the same tags and
//! beside html5gum with an emitter of our own.
//!
//! Every measurement is a process of its own, in turns. What is measured and how to read it: `bench/README.md`.

mod on_html5gum;
mod on_lol_html;
mod ours;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use trapline_bench::ENVIRONMENT;
use trapline_bench::measure::{Sample, Stopwatch, resident};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What one subject finds in one page: how many values of attributes that are links.
type Measure = fn(&[u8]) -> usize;

const SUBJECTS: [(&str, Measure); 5] = [
    ("ours", ours::page),
    ("ours-in-pieces", ours::pieces),
    ("lol_html", on_lol_html::links),
    ("lol_html-text", on_lol_html::links_and_text),
    ("html5gum", on_html5gum::links),
];

const TARGET: f64 = 1.15;
const PAGES_MIN: usize = 5_000;
const USAGE: &str = "extract --dir FOLDER [--repetitions N], or extract --dir FOLDER --one SUBJECT";

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<(), String> {
    let words = words.iter().map(String::as_str).collect::<Vec<_>>();
    match words[..] {
        ["--dir", folder] => compare(folder, 3),
        ["--dir", folder, "--repetitions", number] => {
            compare(folder, number.parse().map_err(|_| format!("`{number}` is no number"))?)
        }
        ["--dir", folder, "--one", name] => {
            let subject = SUBJECTS.iter().find(|(its, _)| *its == name);
            let (_, measure) = subject.ok_or_else(|| format!("nobody is called `{name}`"))?;
            println!("{}", measure_one(&read_pages(folder)?, *measure).write());
            Ok(())
        }
        _ => Err(USAGE.to_owned()),
    }
}

/// All files below a folder that are called `.html` or `.htm`, whatever follows, in the order of their names.
fn read_pages(folder: &str) -> Result<Vec<Vec<u8>>, String> {
    let trouble = |path: &Path, error| format!("cannot read {}: {error}", path.display());
    let mut folders = vec![PathBuf::from(folder)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).map_err(|error| trouble(&folder, error))? {
            let entry = entry.map_err(|error| trouble(&folder, error))?;
            let kind = entry.file_type().map_err(|error| trouble(&entry.path(), error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() && name.contains(".htm") && !name.ends_with(".gz") {
                files.push(entry.path());
            }
        }
    }
    files.sort_unstable();
    files.iter().map(|path| std::fs::read(path).map_err(|error| trouble(path, error))).collect()
}

fn measure_one(pages: &[Vec<u8>], measure: Measure) -> Sample {
    let (before, _) = resident();
    let mut watch = Stopwatch::default();
    let found: usize = watch.time(|| pages.iter().map(|page| measure(page)).sum());
    let (after, peak) = resident();
    Sample {
        operations: pages.len() as u64,
        wall: watch.wall,
        cpu: watch.cpu,
        held: after.saturating_sub(before),
        peak,
        note: format!("{found} {}", pages.iter().map(Vec::len).sum::<usize>()),
    }
}

fn compare(folder: &str, repetitions: usize) -> Result<(), String> {
    let mut best: [Option<Sample>; SUBJECTS.len()] = Default::default();
    for _ in 0..repetitions {
        for (place, (name, _)) in SUBJECTS.iter().enumerate() {
            let sample = measure_apart(folder, name)?;
            let better = best[place].as_ref().is_none_or(|best| sample.cpu < best.cpu);
            if better {
                best[place] = Some(sample);
            }
        }
    }
    let best = best.into_iter().flatten().collect::<Vec<_>>();
    let peer = SUBJECTS.iter().position(|(name, _)| *name == "lol_html").unwrap_or_default();
    println!("best of {repetitions}, in turns, one process each; mimalloc; one thread; CPU time\n");
    println!(
        "{:16} {:>7} {:>9} {:>10} {:>8} {:>9} {:>9}",
        "", "pages", "links", "us a page", "MB/s", "grew MiB", "x lol_html"
    );
    for ((name, _), sample) in SUBJECTS.iter().zip(&best) {
        let (found, bytes) = sample.note.split_once(' ').unwrap_or_default();
        let bytes = bytes.parse::<f64>().unwrap_or_default();
        println!(
            "{name:16} {:7} {found:>9} {:10.1} {:8.0} {:9.1} {:10.2}",
            sample.operations,
            sample.micros_cpu(),
            bytes / sample.cpu.as_secs_f64() / 1e6,
            sample.held as f64 / 1024.0,
            sample.cpu.as_secs_f64() / best[peer].cpu.as_secs_f64(),
        );
    }
    let ratio = best[0].cpu.as_secs_f64() / best[peer].cpu.as_secs_f64();
    let verdict = if ratio <= TARGET { "reached" } else { "missed" };
    println!("\nours to lol_html: {ratio:.2}; target {TARGET}: {verdict}");
    if best[0].operations < PAGES_MIN as u64 {
        println!("but that was on fewer than {PAGES_MIN} pages");
    }
    Ok(())
}

fn measure_apart(folder: &str, name: &str) -> Result<Sample, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut command = Command::new(program);
    command.envs(ENVIRONMENT).args(["--dir", folder, "--one", name]).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("cannot start {name}: {error}"))?;
    let answer = String::from_utf8_lossy(&output.stdout);
    let sample = answer.lines().find_map(Sample::read).filter(|_| output.status.success());
    sample.ok_or_else(|| format!("{name} failed: {}", output.status))
}
