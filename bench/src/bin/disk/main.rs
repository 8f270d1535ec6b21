//! The disk store against frontiers built on fjall 3 and redb 4, in one run: offers, claims with their settlements, both
//! mixed, the head of a queue from which much was taken, and opening after `kill -9`.
//!
//! Everybody does the same work on the same stream, each batch of 1,000 on disk before it is answered, in a process and
//! a folder of its own. What is measured and how to read it: `bench/README.md`.

mod figures;
mod on_fjall;
mod on_redb;
mod ours;
mod phases;
mod report;
mod schedule;
mod subject;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use figures::Figures;
use phases::Scale;
use report::Results;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SEED: u64 = 0x7261_706c;

/// Who is measured.
const SUBJECTS: [&str; 3] = ["ours", "fjall", "redb"];
/// What can be measured without the other.
const PARTS: [&str; 2] = ["crawl", "head"];
/// So many batches one goes on answering before it is killed.
const BATCHES_BEFORE_KILL: usize = 20;

const OPTIONS: &str = "--urls N, --hosts N, --scale small, --only NAMES (of ours, fjall, redb; crawl, head), --dir FOLDER, \
                       --repetitions N, or --one PHASE SUBJECT (offers, head) for perf and valgrind";

/// What was asked for on the command line.
struct Wish {
    scale: Scale,
    only: Vec<String>,
    folder: PathBuf,
    repetitions: usize,
    /// A phase of a subject, in this process.
    one: Option<(String, String)>,
    /// What a process that is to be killed was last told to keep.
    acknowledged: u64,
}

fn main() -> ExitCode {
    match read_wish().and_then(|wish| run(&wish)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn read_wish() -> Result<Wish, String> {
    let folder = std::env::temp_dir().join(format!("trapline-bench-{}", std::process::id()));
    let mut wish =
        Wish { scale: Scale::FULL, only: Vec::new(), folder, repetitions: 1, one: None, acknowledged: 0 };
    let mut hosts = None;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--urls" => {
                let urls = number(&word, &value()?)?;
                wish.scale = Scale::of((urls / 20 / phases::BATCH).max(1) * 20 * phases::BATCH);
            }
            "--hosts" => hosts = Some(number(&word, &value()?)?),
            "--scale" => {
                wish.scale = match value()?.as_str() {
                    "small" => Scale::SMALL,
                    "full" => Scale::FULL,
                    other => return Err(format!("--scale is small or full, not `{other}`")),
                };
            }
            "--only" => {
                wish.only = value()?.split(',').map(str::to_owned).collect();
                let stranger = |name: &&String| !SUBJECTS.iter().chain(&PARTS).any(|its| its == name);
                if let Some(name) = wish.only.iter().find(stranger) {
                    return Err(format!("--only does not know `{name}`; there are {OPTIONS}"));
                }
            }
            "--dir" => wish.folder = PathBuf::from(value()?),
            "--repetitions" => wish.repetitions = number(&word, &value()?)? as usize,
            "--one" => wish.one = Some((value()?, value()?)),
            "--acknowledged" => wish.acknowledged = number(&word, &value()?)?,
            _ => return Err(format!("there is no option `{word}`; try {OPTIONS}")),
        }
    }
    if let Some(hosts) = hosts {
        wish.scale = wish.scale.with_hosts(hosts);
    }
    Ok(wish)
}

fn number(option: &str, value: &str) -> Result<u64, String> {
    let number = value.replace(['_', ','], "").parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("{option} needs a number, 1 or more"))
}

fn run(wish: &Wish) -> Result<(), String> {
    if let Some((phase, subject)) = &wish.one {
        return one(wish, phase, subject);
    }
    if wish.folder.exists() {
        return Err(format!("{} is there already; name a folder that is not", wish.folder.display()));
    }
    let named = |name: &str| wish.only.iter().any(|only| only == name);
    let chosen = |all: &'static [&'static str]| {
        let some: Vec<_> = all.iter().copied().filter(|name| named(name)).collect();
        if some.is_empty() { all.to_vec() } else { some }
    };
    let (subjects, parts) = (chosen(&SUBJECTS), chosen(&PARTS));
    let mut results = Results::default();
    for repetition in 0..wish.repetitions {
        let step = |what: &str| eprintln!("{}/{} {what}", repetition + 1, wish.repetitions);
        step("the disk alone");
        results.add("disk", measure(wish, "floor", "disk", 0)?.figures);
        for place in 0..subjects.len() {
            // Whoever was first before is last now.
            let subject = subjects[(place + repetition) % subjects.len()];
            if parts.contains(&"crawl") {
                step(&format!("{subject}: offers, until it is killed"));
                let killed = measure(wish, "offers-until-killed", subject, 0)?;
                results.add(subject, killed.figures);
                step(&format!("{subject}: opening, claiming and settling, then mixed"));
                results.add(subject, measure(wish, "work", subject, killed.acknowledged)?.figures);
                remove(&wish.folder.join(subject))?;
            }
            if parts.contains(&"head") {
                step(&format!("{subject}: the head of a queue"));
                results.add(subject, measure(wish, "head", subject, 0)?.figures);
                remove(&wish.folder.join(subject))?;
            }
        }
        remove(&wish.folder.join("disk"))?;
    }
    remove(&wish.folder)?;
    report::print(wish.scale, wish.repetitions, &results);
    Ok(())
}

fn remove(folder: &Path) -> Result<(), String> {
    std::fs::remove_dir_all(folder).map_err(|error| format!("cannot remove {}: {error}", folder.display()))
}

/// One phase in this process.
fn one(wish: &Wish, phase: &str, subject: &str) -> Result<(), String> {
    let folder = &wish.folder.join(subject);
    if phase == "floor" {
        phases::floor(folder);
        return Ok(());
    }
    match subject {
        "ours" => one_of::<ours::Ours>(wish, phase, folder),
        "fjall" => one_of::<on_fjall::OnFjall>(wish, phase, folder),
        "redb" => one_of::<on_redb::OnRedb>(wish, phase, folder),
        _ => Err(format!("nobody is called `{subject}`")),
    }
}

fn one_of<S: subject::Subject>(wish: &Wish, phase: &str, folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(&wish.folder)
        .map_err(|error| format!("cannot make {}: {error}", wish.folder.display()))?;
    match phase {
        "offers" => drop(phases::offers::<S>(folder, wish.scale)),
        "offers-until-killed" => phases::offers_until_killed::<S>(folder, wish.scale),
        "work" => phases::work::<S>(folder, wish.scale, wish.acknowledged.max(wish.scale.urls)),
        "head" => phases::head::<S>(folder, wish.scale),
        _ => return Err(format!("there is no phase `{phase}`")),
    }
    Ok(())
}

/// What a measured process has told.
#[derive(Default)]
struct Told {
    figures: Vec<Figures>,
    acknowledged: u64,
}

/// Measures in a process of its own.
fn measure(wish: &Wish, phase: &str, subject: &str, acknowledged: u64) -> Result<Told, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut command = Command::new(program);
    command.args(["--one", phase, subject]).arg("--dir").arg(&wish.folder);
    command.args(["--urls", &wish.scale.urls.to_string(), "--hosts", &wish.scale.hosts.to_string()]);
    if acknowledged > 0 {
        command.args(["--acknowledged", &acknowledged.to_string()]);
    }
    command.envs(trapline_bench::ENVIRONMENT).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cannot start {subject}: {error}"))?;
    let told = listen(&mut child, phase == "offers-until-killed");
    let status = child.wait().map_err(|error| format!("cannot wait for {subject}: {error}"))?;
    match told {
        Some(told) if status.success() || phase == "offers-until-killed" => Ok(told),
        _ => Err(format!("{subject} failed at {phase}: {status}; its folder is {}", wish.folder.display())),
    }
}

/// Hears a process out, or until it has answered long enough to be killed in the middle of its work.
fn listen(child: &mut Child, kill: bool) -> Option<Told> {
    let mut told = Told::default();
    let mut answered = 0;
    for line in BufReader::new(child.stdout.take()?).lines() {
        let line = line.ok()?;
        if let Some(figures) = Figures::read(&line) {
            eprintln!(
                "    {}: {:.0}/s, CPU {:.2} us",
                figures.phase,
                figures.per_second(),
                figures.micros_cpu()
            );
            told.figures.push(figures);
        }
        if let Some(known) = line.strip_prefix("acknowledged ").filter(|_| kill) {
            told.acknowledged = known.parse().ok()?;
            answered += 1;
            if answered == BATCHES_BEFORE_KILL {
                child.kill().ok()?;
            }
        }
    }
    (!told.figures.is_empty() && (!kill || answered >= BATCHES_BEFORE_KILL)).then_some(told)
}
