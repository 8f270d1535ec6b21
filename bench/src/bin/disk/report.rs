//! The tables, and what was asked for.

use std::collections::BTreeMap;

use crate::figures::Figures;
use crate::phases::{BATCH, Scale};

/// Everything that was measured, by phase and subject.
#[derive(Default)]
pub struct Results(BTreeMap<(String, String), Vec<Figures>>);

impl Results {
    pub fn add(&mut self, subject: &str, figures: Vec<Figures>) {
        for figures in figures {
            self.0.entry((figures.phase.clone(), subject.to_owned())).or_default().push(figures);
        }
    }

    /// The best repetition by the wall clock, with the least CPU time of all.
    fn best(&self, phase: &str, subject: &str) -> Option<Figures> {
        let all = self.0.get(&(phase.to_owned(), subject.to_owned()))?;
        let best = all.iter().min_by_key(|figures| figures.wall)?;
        let cpu = all.iter().map(|figures| figures.cpu).min()?;
        Some(Figures { cpu, ..best.clone() })
    }

    fn subjects(&self, phase: &str) -> Vec<(String, Figures)> {
        let name = |name: &&str| self.best(phase, name).map(|best| ((*name).to_owned(), best));
        crate::SUBJECTS.iter().filter_map(name).collect()
    }
}

pub fn print(scale: Scale, repetitions: usize, results: &Results) {
    println!("best of {repetitions}; every batch of {BATCH} synced; one client; mimalloc for all");
    if let Some(floor) = results.best("floor", "disk") {
        let [half, most, ..] = floor.tails.map(|tail| tail.as_secs_f64() * 1e3);
        println!(
            "the disk alone: 100,000 bytes written and synced in {half:.2} ms, 99 of 100 in {most:.2} ms"
        );
    }
    let title = format!("offers: {} of {} URLs over {} hosts", scale.offers(), scale.urls, scale.hosts);
    phase(results, "offers", &title);
    let title = format!("claim + settle: {} cycles over {} active queues", scale.cycles(), scale.active());
    phase(results, "cycles", &title);
    phase(results, "mixed", &format!("mixed: {0} offers and {0} cycles in turn", scale.mixed()));
    reopening(results, scale);
    head(results, scale);
    targets(results, scale);
}

fn phase(results: &Results, phase: &str, title: &str) {
    let subjects = results.subjects(phase);
    if subjects.is_empty() {
        return;
    }
    println!("\n{title}\n");
    println!(
        "| | ops/s | CPU us/op | batch ms: half | 99 % | 99.9 % | all | written MB | B/op | disk MB | peak MiB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for (name, figures) in &subjects {
        let [half, most, nearly, all] = figures.tails.map(|tail| tail.as_secs_f64() * 1e3);
        println!(
            "| {name} | {:.0} | {:.2} | {half:.2} | {most:.2} | {nearly:.1} | {all:.1} | {} | {} | {} | {} |",
            figures.per_second(),
            figures.micros_cpu(),
            figures.written / 1_000_000,
            figures.written / figures.operations,
            figures.disk / 1_000_000,
            figures.peak / 1024,
        );
    }
    for (name, figures) in &subjects {
        let share = figures.cpu.as_secs_f64() / figures.wall.as_secs_f64();
        let note = if figures.note.is_empty() { String::new() } else { format!("; {}", figures.note) };
        println!("{name}: {:.0} s, CPU {:.0} % of it{note}", figures.wall.as_secs_f64(), share * 100.0);
    }
    if let Some((_, ours)) = subjects.iter().find(|(name, _)| name == "ours") {
        for (name, theirs) in subjects.iter().filter(|(name, _)| name != "ours") {
            let (wall, cpu) = times(ours, theirs);
            println!("ours against {name}: {wall:.1} times as fast by the wall clock, {cpu:.1} by CPU time");
        }
    }
}

fn times(ours: &Figures, theirs: &Figures) -> (f64, f64) {
    (ours.per_second() / theirs.per_second(), theirs.micros_cpu() / ours.micros_cpu())
}

fn reopening(results: &Results, scale: Scale) {
    let subjects = results.subjects("reopening");
    if !subjects.is_empty() {
        println!(
            "\nopening after kill -9, {} URLs\n\n| | s | CPU s | peak MiB |\n|---|---|---|---|",
            scale.urls
        );
    }
    for (name, figures) in subjects {
        let (wall, cpu) = (figures.wall.as_secs_f64(), figures.cpu.as_secs_f64());
        println!("| {name} | {wall:.2} | {cpu:.2} | {} |", figures.peak / 1024);
    }
}

fn head(results: &Results, scale: Scale) {
    let subjects = results.subjects("head-fresh");
    if !subjects.is_empty() {
        let (queue, taken) = (scale.queue(), scale.queue() / 2);
        println!("\nclaiming the head of a queue of {queue}, not synced, us (half of them; 99 of 100)\n");
        println!("| | fresh | after {taken} were taken | ratio |\n|---|---|---|---|");
    }
    for (name, fresh) in subjects {
        let Some(taken) = results.best("head-taken", &name) else { continue };
        let micros = |figures: &Figures| figures.tails.map(|tail| tail.as_secs_f64() * 1e6);
        let ([half, most, ..], [half_taken, most_taken, ..]) = (micros(&fresh), micros(&taken));
        let ratio = half_taken / half;
        println!("| {name} | {half:.1}; {most:.1} | {half_taken:.1}; {most_taken:.1} | {ratio:.2} |");
    }
}

/// What was asked for. Speed is reached only if the wall clock and the CPU time say so.
fn targets(results: &Results, scale: Scale) {
    println!("\nwhat was asked for, at {} URLs (the full size is {})\n", scale.urls, Scale::FULL.urls);
    for (phase, least) in [("offers", 4.0), ("cycles", 5.0)] {
        for theirs in ["fjall", "redb"] {
            let Some((ours, peer)) = results.best(phase, "ours").zip(results.best(phase, theirs)) else {
                continue;
            };
            let (wall, cpu) = times(&ours, &peer);
            let word = verdict(wall >= least && cpu >= least);
            println!("{word}: {phase} at least {least} times {theirs}: {wall:.1} by wall, {cpu:.1} by CPU");
        }
    }
    if let Some((fresh, taken)) = results.best("head-fresh", "ours").zip(results.best("head-taken", "ours")) {
        let ratio = taken.tails[0].as_secs_f64() / fresh.tails[0].as_secs_f64();
        println!("{}: head of a queue within 2 times of a fresh one: {ratio:.2}", verdict(ratio <= 2.0));
    }
    if let Some(reopening) = results.best("reopening", "ours") {
        let seconds = reopening.wall.as_secs_f64();
        println!("{}: opening after kill -9 within 5 s: {seconds:.2} s", verdict(seconds <= 5.0));
    }
}

fn verdict(reached: bool) -> &'static str {
    if reached { "reached" } else { "not reached" }
}
