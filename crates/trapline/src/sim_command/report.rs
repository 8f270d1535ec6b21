//! What is told of a simulation: of one seed, of many, and of one that went wrong.

use std::fmt;
use std::time::Duration;

use trapline_sim::{Failure, Run, SeedRange, SimPlan, Tally};

use crate::demo_command::{clock, thousands};

/// What came of many seeds.
pub(super) struct Many {
    pub(super) seeds: SeedRange,
    pub(super) plan: SimPlan,
    pub(super) tally: Tally,
    /// Whether the store was to be restarted.
    pub(super) restarts: bool,
    pub(super) wall: Duration,
}

impl fmt::Display for Many {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SeedRange { from, count } = self.seeds;
        let faults = self.plan.faults;
        match count {
            1 => writeln!(f, "1 seed, {from}, faults: {faults}. It kept the contract.\n")?,
            _ => {
                let count = thousands(count);
                writeln!(f, "{count} seeds from {from} on, faults: {faults}. All kept the contract.\n")?;
            }
        }
        rows(f, &self.tally)?;
        if self.restarts && self.tally.restarts == 0 {
            writeln!(f, "  The store keeps nothing, so it was not restarted.")?;
        }
        let seconds = self.wall.as_secs_f64().max(0.001);
        let rate = thousands((self.tally.commands as f64 / seconds) as u64);
        writeln!(f, "  {:<22}{:>13}  {rate} commands a second", "wall time", format!("{seconds:.1}s"))
    }
}

/// What came of one seed.
pub(super) fn one(plan: &SimPlan, run: &Run) -> String {
    struct One<'a>(&'a SimPlan, &'a Run);
    impl fmt::Display for One<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let (plan, run) = (self.0, self.1);
            let (seed, faults) = (plan.seed, plan.faults);
            writeln!(f, "Seed {seed}, faults: {faults}. It kept the contract, twice the same.\n")?;
            rows(f, &run.tally)
        }
    }
    One(plan, run).to_string()
}

fn rows(f: &mut fmt::Formatter<'_>, tally: &Tally) -> fmt::Result {
    for (label, number, remark) in [
        ("commands", tally.commands, "each candidate and settlement counted"),
        ("URLs added", tally.added, ""),
        ("leases granted", tally.grants, ""),
        ("pages visited again", tally.revisits, ""),
        ("settlements", tally.settlements, ""),
        ("leases renewed", tally.renewals, ""),
        ("stale settlements", tally.stale, "which changed nothing"),
        ("leases expired", tally.expiries, ""),
        ("restarts", tally.restarts, ""),
        ("calls cut short", tally.cuts, "by a crash: done or undone, and never by half"),
        ("audits", tally.audits, "everything held against the oracle's books"),
        ("drained", tally.drained, "crawls brought to their end; the others had finished"),
        ("run twice", tally.repeated, "with the same history"),
    ] {
        writeln!(f, "{}", format!("  {label:<22}{:>13}  {remark}", thousands(number)).trim_end())?;
    }
    let virtual_time = clock(Duration::from_millis(tally.virtual_ms));
    writeln!(f, "  {:<22}{virtual_time:>13}", "virtual time")
}

/// What is said of a seed that went wrong: what, how to see it again, and the smallest trace that shows it.
pub(super) fn failed(failure: &Failure, store: &str) -> String {
    let Failure { plan, breach, run, find } = failure;
    let SimPlan { seed, steps, faults } = plan;
    let mut text = format!(
        "Seed {seed} went wrong after {}. {breach}\n\n  \
         trapline sim --seed {seed} --steps {steps} --faults {faults} --store {store}\n\n",
        match run.history.steps.len() as u64 {
            1 => "1 line".to_owned(),
            lines => format!("{} lines", thousands(lines)),
        }
    );
    let Some(find) = find else {
        text.push_str("Its lines, played one by one, do not show it; --history prints them all.\n");
        return text;
    };
    let shows = find.script.steps.last().is_some_and(|step| step.expected.is_some());
    if find.partitions == 1 && !shows {
        text.push_str("The smallest trace found. Its answers are right as far as a trace can tell; what is wrong is:\n\n");
    } else if find.partitions == 1 {
        text.push_str("The smallest trace found; save it and play it: trapline frontier replay FILE\n\n");
    } else {
        let partitions = find.partitions;
        text.push_str(&format!(
            "The smallest trace found; it needs {partitions} partitions to go wrong:\n\n"
        ));
    }
    text.push_str(&format!("# {}\n{}", find.breach, find.script));
    text
}
