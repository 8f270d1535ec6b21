//! robots.txt against robotxt 0.7.0, in one run: decisions a second on a typical file, the slowest decision that the worst files
//! can be made to take, and what reading a file costs.
//!
//! One thread, CPU time, the two in turns. What is measured and how to read it: `bench/README.md`.

mod files;

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

use files::{Case, typical, worst};
use trapline_bench::measure::thread_cpu_time;
use trapline_extract::{Because, Robots, Rules};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What the issue asks for.
const DECISIONS_A_SECOND: f64 = 1e6;
const DECISION_MAX: Duration = Duration::from_millis(1);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let rounds = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => 30,
        ["--quick"] => 3,
        _ => {
            eprintln!("robots [--quick]");
            return ExitCode::FAILURE;
        }
    };
    let fast = decisions(rounds);
    let bounded = slowest(rounds);
    reading(rounds);
    println!("\n{}", if fast && bounded { "both targets are reached" } else { "A TARGET IS MISSED" });
    if fast && bounded { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The least time that a piece of work took.
fn best(rounds: usize, mut work: impl FnMut()) -> Duration {
    let one = || {
        let before = thread_cpu_time();
        work();
        thread_cpu_time().saturating_sub(before)
    };
    std::iter::repeat_with(one).take(rounds).min().unwrap_or_default()
}

fn decisions(rounds: usize) -> bool {
    let (file, paths) = typical();
    let urls: Vec<_> = paths.iter().map(|path| format!("https://www.example.com{path}")).collect();
    let urls: Vec<_> =
        urls.iter().map(|url| trapline_core::parse_url(url, None).expect("a good URL")).collect();
    let robots = Robots::parse(file.as_bytes());
    let ours = robots.for_agent("trapline");
    let theirs = robotxt::Robots::parse(file.as_bytes(), "trapline");
    let allowed = paths.iter().filter(|path| ours.check_path(path).allowed).count();
    for path in &paths {
        assert_eq!(ours.check_path(path).allowed, theirs.is_allowed(path), "{path}");
    }
    println!(
        "typical file: {} bytes, {} rules for the agent, {} paths of {} bytes, {} % allowed; decisions a second, best of {rounds}",
        file.len(),
        robots.groups().map(|group| group.rules().count()).max().unwrap_or(0),
        paths.len(),
        paths.iter().map(String::len).sum::<usize>() / paths.len(),
        100 * allowed / paths.len(),
    );
    let rate = |took: Duration| paths.len() as f64 / took.as_secs_f64();
    let by_path = rate(best(rounds, || {
        paths.iter().for_each(|path| {
            black_box(ours.check_path(path));
        })
    }));
    let by_url = rate(best(rounds, || {
        urls.iter().for_each(|url| {
            black_box(ours.check(url));
        })
    }));
    let peer = rate(best(rounds, || {
        paths.iter().for_each(|path| {
            black_box(theirs.is_allowed(path));
        })
    }));
    println!(
        "  ours, by path   {by_path:>12.0}\n  ours, by URL    {by_url:>12.0}\n  robotxt, path   {peer:>12.0}\n"
    );
    by_url.min(by_path) >= DECISIONS_A_SECOND
}

fn slowest(rounds: usize) -> bool {
    println!("worst files: ms a decision, best of {rounds} and worst of {rounds}");
    println!(
        "  {:28} {:>8} {:>6} | {:>9} {:>9} {:>10} | {:>12}",
        "file", "bytes", "path", "best", "worst", "answer", "robotxt best"
    );
    let mut bounded = true;
    for Case { name, file, path } in worst() {
        let ours = Robots::parse(file.as_bytes()).for_agent("trapline");
        let took: Vec<_> = (0..rounds)
            .map(|_| {
                best(1, || {
                    black_box(ours.check_path(&path));
                })
            })
            .collect();
        let (least, most) =
            (took.iter().min().copied().unwrap_or_default(), took.iter().max().copied().unwrap_or_default());
        let theirs = robotxt::Robots::parse(file.as_bytes(), "trapline");
        let peer = best(rounds.min(3), || {
            black_box(theirs.is_allowed(&path));
        });
        println!(
            "  {name:28} {:>8} {:>6} | {:>9.3} {:>9.3} {:>10} | {:>12.3}",
            file.len(),
            path.len(),
            ms(least),
            ms(most),
            answer(&ours, &path),
            ms(peer),
        );
        bounded &= least < DECISION_MAX;
    }
    println!();
    bounded
}

fn answer(rules: &Rules, path: &str) -> &'static str {
    match rules.check_path(path).because {
        Because::TooCostly => "too costly",
        Because::Rule => "a rule",
        _ => "no rule",
    }
}

fn reading(rounds: usize) {
    println!(
        "reading: ms a file, best of {rounds}; ours to be kept, then for one agent; robotxt reads for one agent"
    );
    let (typical, _) = typical();
    let all =
        std::iter::once(("typical", typical)).chain(worst().into_iter().map(|case| (case.name, case.file)));
    for (name, file) in all {
        let robots = Robots::parse(file.as_bytes());
        let parse = best(rounds, || drop(black_box(Robots::parse(file.as_bytes()))));
        let agent = best(rounds, || drop(black_box(robots.for_agent("trapline"))));
        let peer = best(rounds, || drop(black_box(robotxt::Robots::parse(file.as_bytes(), "trapline"))));
        println!(
            "  {name:28} ours {:>8.3} + {:>8.3}   robotxt {:>8.3}   kept as {:>7} bytes",
            ms(parse),
            ms(agent),
            ms(peer),
            robots.to_bytes().len()
        );
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
