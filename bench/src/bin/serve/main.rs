//! What a URL costs the service: `trapline serve` on a folder, as a process of its own, and clients on loopback. CPU of both apart.
//!
//! Every measurement has a service and a folder of its own. What is measured and how to read it: `bench/README.md`.

mod get;
mod own;
mod put;
mod report;
mod service;

use std::path::PathBuf;
use std::process::ExitCode;

use report::Report;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "serve --ours PATH [--quick] [--repetitions N] [--only put,discovered,get,own,streams]";

/// Anything that keeps a measurement from being made.
type Trouble = Box<dyn std::error::Error + Send + Sync>;

struct Choice {
    /// A release binary of trapline.
    ours: PathBuf,
    /// Of everything a tenth, or less.
    quick: bool,
    /// Each measurement so often; the best counts. Defaults to 3.
    repetitions: usize,
    only: String,
}

impl Choice {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut ours = None;
        let (mut quick, mut repetitions) = (false, 3);
        let mut only = "put,discovered,get,own,streams".to_owned();
        while let Some(word) = words.next() {
            if word == "--quick" {
                quick = true;
                continue;
            }
            let value = words.next().ok_or(USAGE)?;
            match word.as_str() {
                "--ours" => ours = Some(PathBuf::from(value)),
                "--repetitions" => repetitions = value.parse().map_err(|_| USAGE)?,
                "--only" => only = value,
                _ => return Err(USAGE.to_owned()),
            }
        }
        Ok(Self { ours: ours.ok_or(USAGE)?, quick, repetitions, only })
    }

    fn wants(&self, part: &str) -> bool {
        self.only.split(',').any(|one| one == part)
    }
}

fn main() -> ExitCode {
    let done =
        Choice::read(std::env::args().skip(1)).map_err(Trouble::from).and_then(|choice| measure(&choice));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            eprintln!("serve: {trouble}");
            ExitCode::FAILURE
        }
    }
}

fn measure(choice: &Choice) -> Result<(), Trouble> {
    let of = |number: usize| if choice.quick { number / 20 } else { number };
    let ours = &choice.ours;
    let mut report = Report::new(choice.repetitions);
    report.begin();
    if choice.wants("put") {
        report.best("PutURLs, one by one", || put::items(ours, of(400_000), put::Streams::apart(1)))?;
    }
    if choice.wants("discovered") {
        report.best("PutDiscovered, by 256", || put::batches(ours, of(1_000_000), put::Streams::apart(1)))?;
    }
    if choice.wants("get") {
        for queues in [10_000, of(1_000_000)] {
            let name = format!("GetURLs, 100 × 1 of {queues} queues");
            report.best(&name, || get::get(ours, queues, if choice.quick { 2 } else { 10 }))?;
        }
    }
    if choice.wants("own") {
        report.best("Admit, URLs, by 256", || own::admit_bare(ours, of(1_000_000)))?;
        report.best("Admit, prepared, by 256", || own::admit_prepared(ours, of(1_000_000)))?;
        report.best("Claim and Settle, by 100", || own::cycles(ours, of(400_000)))?;
    }
    if choice.wants("streams") {
        for count in [1, 2, 4, 8] {
            let name = format!("PutURLs, {count} streams");
            report.best_wall(&name, || put::items(ours, of(400_000), put::Streams::apart(count)))?;
        }
        for count in [1, 8] {
            let name = format!("PutURLs, {count} streams on one connection");
            report.best_wall(&name, || put::items(ours, of(400_000), put::Streams::together(count)))?;
        }
        for count in [1, 2, 4, 8] {
            let name = format!("PutDiscovered, {count} streams");
            report.best_wall(&name, || put::batches(ours, of(1_000_000), put::Streams::apart(count)))?;
        }
    }
    report.verdicts(of(1_000_000));
    Ok(())
}
