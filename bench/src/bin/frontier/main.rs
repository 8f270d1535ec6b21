//! The frontier against its peer, in one run: what an offer, and what a claim with its settlement, costs here and
//! in kumo 0.5.0, and what a million queues cost instead of ten thousand.
//!
//! Every measurement is a process of its own, so none inherits a heap, and the processes take turns (A, B, A, B),
//! so a machine that is busy for a while is busy for all. What is measured and how to read it: `bench/README.md`.

mod ours;
mod peer;
mod report;

use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use report::{Comparison, Target};
use trapline_bench::measure::Sample;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SEED: u64 = 0x7261_706c;

/// URLs a batch of offers. Made outside the clock.
const ADMIT_BATCH: usize = 1000;

#[derive(Clone, Copy)]
struct AdmitScale {
    offers: u64,
    hosts: u64,
}

/// Claims and settlements while the pending count stays the same.
#[derive(Clone, Copy)]
struct Cycle {
    queues: u64,
    per_queue: u64,
    /// URLs a claim, and settlements a settle.
    batch: u64,
    delay: Duration,
    partitions: u32,
    /// Whether queues take turns in sessions, as they do unless told otherwise. Then the queues that are in one
    /// are served again and again and the rest lie still; without, all queues take turns, which is harder.
    hold_queues: bool,
    refill: Refill,
    /// Whether the URLs have different priorities.
    priorities: bool,
    cycles: u64,
}

/// How the pending count stays the same.
#[derive(Clone, Copy)]
enum Refill {
    /// New URLs are admitted in between, off the clock.
    Apart,
    /// Every settlement brings a new URL of its queue: admitting it is on the clock.
    Links,
}

/// Somebody who can be measured.
#[derive(Clone, Copy)]
enum Subject {
    Admit(AdmitScale, ours::Part),
    Push(AdmitScale, peer::Push),
    Cycle(Cycle),
    Pop { pending: u64, hosts: u64, priorities: bool, lasts: Duration },
    Next { pending: u64, hosts: u64, delay: Option<Duration>, lasts: Duration },
}

impl Subject {
    fn measure(self) -> Sample {
        match self {
            Self::Admit(scale, part) => ours::admit(scale, part),
            Self::Push(scale, way) => peer::push(scale, way),
            Self::Cycle(cycle) => ours::cycle(cycle),
            Self::Pop { pending, hosts, priorities, lasts } => peer::pop(pending, hosts, priorities, lasts),
            Self::Next { pending, hosts, delay, lasts } => {
                peer::next_and_finish(pending, hosts, delay, lasts)
            }
        }
    }
}

/// Subjects that are measured in turns, and what to compare among them.
struct Group {
    title: String,
    subjects: Vec<(String, Subject)>,
    comparisons: Vec<Comparison>,
}

/// What was asked for on the command line.
#[derive(Default)]
struct Wish {
    quick: bool,
    only: Option<String>,
    one: Option<String>,
    list: bool,
    repetitions: Option<usize>,
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
    let mut wish = Wish::default();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--quick" => wish.quick = true,
            "--list" => wish.list = true,
            "--only" => wish.only = Some(value()?),
            "--one" => wish.one = Some(value()?),
            "--repetitions" => {
                let number = value()?.parse::<usize>().ok().filter(|number| *number > 0);
                wish.repetitions = Some(number.ok_or("--repetitions needs a number, 1 or more")?);
            }
            _ => {
                return Err(format!(
                    "there is no option `{word}`; try --quick, --only NAME, --repetitions N, --list, --one NAME"
                ));
            }
        }
    }
    Ok(wish)
}

fn run(wish: &Wish) -> Result<(), String> {
    let mut groups = vec![offers(wish.quick), pops(wish.quick), queues(wish.quick)];
    if let Some(name) = &wish.one {
        let subjects = groups.iter().flat_map(|group| &group.subjects);
        let found = subjects.into_iter().find(|(its, _)| its == name);
        let (_, subject) =
            found.ok_or_else(|| format!("nobody is called `{name}`; --list says who is there"))?;
        println!("{}", subject.measure().write());
        return Ok(());
    }
    if let Some(only) = &wish.only {
        for group in &mut groups {
            group.subjects.retain(|(name, _)| name.contains(only));
        }
        groups.retain(|group| !group.subjects.is_empty());
        if groups.is_empty() {
            return Err(format!("nobody's name contains `{only}`; --list says who is there"));
        }
    }
    if wish.list {
        for (name, _) in groups.iter().flat_map(|group| &group.subjects) {
            println!("{name}");
        }
        return Ok(());
    }
    let repetitions = wish.repetitions.unwrap_or(if wish.quick { 1 } else { 3 });
    println!("best of {repetitions}, in turns, one process each; mimalloc for all; one thread");
    let mut verdicts = report::Verdicts::default();
    for group in groups {
        let mut results = report::Results::default();
        for repetition in 1..=repetitions {
            for (name, _) in &group.subjects {
                eprintln!("{repetition}/{repetitions} {name}");
                results.add(name, measure_apart(name, wish.quick)?);
            }
        }
        report::print(&group.title, &results, &group.comparisons, &mut verdicts);
    }
    verdicts.print(wish.quick);
    Ok(())
}

/// Measures in a process of its own.
fn measure_apart(name: &str, quick: bool) -> Result<Sample, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut command = Command::new(program);
    command.args(["--one", name]).args(quick.then_some("--quick")).stderr(Stdio::inherit());
    command.envs(trapline_bench::ENVIRONMENT);
    let output = command.output().map_err(|error| format!("cannot start {name}: {error}"))?;
    let answer = String::from_utf8_lossy(&output.stdout);
    let sample = answer.lines().find_map(Sample::read).filter(|_| output.status.success());
    sample.ok_or_else(|| format!("{name} failed: {}", output.status))
}

fn offers(quick: bool) -> Group {
    use ours::Part::{Everything, Preparation, Store};
    use peer::Push::{Fingerprint, Requests, Scheduler, Strings};

    let offers = if quick { 100_000 } else { 1_000_000 };
    let scale = AdmitScale { offers, hosts: offers / 10 };
    let subjects = [
        ("offer/ours", Subject::Admit(scale, Everything)),
        ("offer/kumo-push", Subject::Push(scale, Strings)),
        ("offer/kumo-scheduler", Subject::Push(scale, Scheduler)),
        ("offer/ours-store", Subject::Admit(scale, Store)),
        ("offer/kumo-push-request", Subject::Push(scale, Requests)),
        ("offer/ours-prepare", Subject::Admit(scale, Preparation)),
        ("offer/kumo-fingerprint", Subject::Push(scale, Fingerprint)),
    ];
    let compare = |what: &str, ours: &str, theirs: &str, target| Comparison {
        what: what.to_owned(),
        of: format!("offer/{ours}"),
        to: format!("offer/{theirs}"),
        target,
    };
    let target = Some(Target::AtLeast(3.0, "admit at least 3 times as fast as kumo's push"));
    Group {
        title: format!("offers: {offers} of {} URLs over {} hosts", offers / 2, scale.hosts),
        subjects: subjects.map(|(name, subject)| (name.to_owned(), subject)).into(),
        comparisons: vec![
            compare(
                "URL strings; kumo hashes them bare, we parse and normalize",
                "ours",
                "kumo-push",
                target,
            ),
            compare("URL strings; both parse and normalize", "ours", "kumo-scheduler", target),
            compare("prepared ones; neither parses", "ours-store", "kumo-push-request", target),
            compare("only parsing and normalizing", "ours-prepare", "kumo-fingerprint", None),
        ],
    }
}

fn pops(quick: bool) -> Group {
    let pending = 100_000;
    let lasts = Duration::from_millis(if quick { 500 } else { 4000 });
    let second = Duration::from_secs(1);
    let target = Some(Target::AtLeast(
        1000.0,
        "claim + settle at 100,000 pending at least 1000 times as fast as kumo's pop",
    ));
    let (mut subjects, mut comparisons) = (Vec::new(), Vec::new());
    for (hosts, priorities, of_hosts) in
        [(100_000, false, "100k-hosts"), (1000, false, "1k-hosts"), (1000, true, "1k-hosts-priorities")]
    {
        let kumo = format!("pop/{of_hosts}/kumo");
        subjects.push((kumo.clone(), Subject::Pop { pending, hosts, priorities, lasts }));
        if !priorities {
            let polite = |delay| Subject::Next { pending, hosts, delay, lasts };
            subjects.push((format!("{kumo}-scheduler/0s"), polite(None)));
            subjects.push((format!("{kumo}-scheduler/1s"), polite(Some(second))));
        }
        for (batch, delay) in [(1, 0), (100, 0), (1, 1), (100, 1)] {
            let ours = format!("pop/{of_hosts}/ours/batch-{batch}/{delay}s");
            let cycle = Cycle {
                queues: hosts,
                per_queue: pending / hosts,
                batch,
                delay: second * delay,
                partitions: 256,
                hold_queues: false,
                refill: Refill::Apart,
                priorities,
                cycles: if quick { 50_000 } else { 500_000 },
            };
            subjects.push((ours.clone(), Subject::Cycle(cycle)));
            comparisons.push(Comparison {
                what: format!("{of_hosts}, batches of {batch}, delay {delay}s"),
                of: ours,
                to: kumo.clone(),
                target,
            });
        }
    }
    Group { title: format!("claim + settle, and pop, with {pending} pending"), subjects, comparisons }
}

fn queues(quick: bool) -> Group {
    let (many, few) = if quick { (100_000, 10_000) } else { (1_000_000, 10_000) };
    let target = Some(Target::AtMost(
        1.5,
        "claim + settle with 1,000,000 queues costs at most 1.5 times that with 10,000",
    ));
    let (mut subjects, mut comparisons) = (Vec::new(), Vec::new());
    for (partitions, hold_queues) in [(256, false), (1, false), (256, true)] {
        for (batch, delay) in [(1, 0), (100, 0), (1, 1), (100, 1)] {
            let turns = if hold_queues { "sessions" } else { "turns" };
            let name =
                |queues| format!("queues/{queues}/{partitions}-partitions/{turns}/batch-{batch}/{delay}s");
            for queues in [few, many] {
                let cycle = Cycle {
                    queues,
                    per_queue: 2,
                    batch,
                    delay: Duration::from_secs(delay),
                    partitions,
                    hold_queues,
                    refill: Refill::Links,
                    priorities: false,
                    // Every queue has its turn.
                    cycles: queues.max(if quick { 50_000 } else { 500_000 }),
                };
                subjects.push((name(queues), Subject::Cycle(cycle)));
            }
            comparisons.push(Comparison {
                what: format!("{partitions} partitions, {turns}, batches of {batch}, delay {delay}s"),
                of: name(many),
                to: name(few),
                target,
            });
        }
    }
    Group {
        title: format!("claim + settle with a link, {many} and {few} queues of 2 pending URLs"),
        subjects,
        comparisons,
    }
}
