//! The engine's timers against rivals, on the engine's patterns: what setting, cancelling, asking and taking cost, and
//! how many bytes a timer that is out takes.
//!
//! The engine's own come from its source file; rivals live here only. Every measurement is a process of its own, in
//! turns. What is measured and how to read it: `bench/README.md`.

mod engine;

use std::process::{Command, ExitCode, Stdio};

use engine::{PATTERNS, RIVALS};
use trapline_bench::measure::Sample;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
    let (quick, words) = match &words[..] {
        ["--quick", rest @ ..] => (true, rest),
        all => (false, all),
    };
    let scale = if quick { 10 } else { 1 };
    match words {
        [] => compare(quick),
        ["--one", name] => {
            let (pattern, rival) = name.split_once('/').ok_or("--one needs PATTERN/RIVAL")?;
            let pattern = PATTERNS.iter().find(|(its, _)| *its == pattern);
            let rival = RIVALS.iter().find(|(its, _)| *its == rival);
            let ((_, pattern), (_, measure)) =
                pattern.zip(rival).ok_or_else(|| format!("nobody is called `{name}`"))?;
            println!("{}", measure(*pattern, scale).write());
            Ok(())
        }
        _ => Err("try [--quick], or [--quick] --one PATTERN/RIVAL".to_owned()),
    }
}

fn compare(quick: bool) -> Result<(), String> {
    println!(
        "best of 3, in turns, one process each; mimalloc; one thread; CPU ns an operation, bytes a timer"
    );
    for (pattern, _) in PATTERNS {
        let mut best = [f64::INFINITY; RIVALS.len()];
        let mut bytes = [0; RIVALS.len()];
        for _ in 0..3 {
            for (place, (rival, _)) in RIVALS.iter().enumerate() {
                let sample = measure_apart(&format!("{pattern}/{rival}"), quick)?;
                best[place] = best[place].min(sample.micros_cpu() * 1000.0);
                bytes[place] = sample.held;
            }
        }
        print!("{pattern:16}");
        for (place, (rival, _)) in RIVALS.iter().enumerate() {
            print!("  {rival} {:6.1} ns {:4} B", best[place], bytes[place]);
        }
        println!();
    }
    Ok(())
}

fn measure_apart(name: &str, quick: bool) -> Result<Sample, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut command = Command::new(program);
    command.args(quick.then_some("--quick")).args(["--one", name]).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("cannot start {name}: {error}"))?;
    let answer = String::from_utf8_lossy(&output.stdout);
    let sample = answer.lines().find_map(Sample::read).filter(|_| output.status.success());
    sample.ok_or_else(|| format!("{name} failed: {}", output.status))
}
