//! The tables, and whether the targets are reached.

use trapline_bench::measure::Sample;

/// One subject against another.
pub struct Comparison {
    pub what: String,
    pub of: String,
    pub to: String,
    pub target: Option<Target>,
}

/// What a comparison is to come to, and the sentence that demands it.
#[derive(Clone, Copy, PartialEq)]
pub enum Target {
    /// So many times as fast.
    AtLeast(f64, &'static str),
    /// At so many times the cost.
    AtMost(f64, &'static str),
}

/// All repetitions of the subjects of a group, in the order in which they first came.
#[derive(Default)]
pub struct Results(Vec<(String, Vec<Sample>)>);

impl Results {
    pub fn add(&mut self, name: &str, sample: Sample) {
        match self.0.iter_mut().find(|(its, _)| its == name) {
            Some((_, samples)) => samples.push(sample),
            None => self.0.push((name.to_owned(), vec![sample])),
        }
    }

    /// The best wall and CPU times, in microseconds an operation.
    fn best(&self, name: &str) -> Option<(f64, f64)> {
        let (_, samples) = self.0.iter().find(|(its, _)| its == name)?;
        Some((least(samples, Sample::micros_wall), least(samples, Sample::micros_cpu)))
    }
}

fn least(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> f64 {
    samples.iter().map(of).fold(f64::INFINITY, f64::min)
}

/// How often each target was reached, and how often not.
#[derive(Default)]
pub struct Verdicts(Vec<(Target, usize, usize, [f64; 2])>);

pub fn print(title: &str, results: &Results, comparisons: &[Comparison], verdicts: &mut Verdicts) {
    println!("\n## {title}\n");
    println!(
        "{:<50} {:>11} {:>10} {:>7} {:>9} {:>9}  note (of the best)",
        "name", "ops/s", "CPU us/op", "spread", "grew MiB", "peak MiB"
    );
    for (name, samples) in &results.0 {
        let wall = least(samples, Sample::micros_wall);
        let cpu = least(samples, Sample::micros_cpu);
        let slowest = samples.iter().map(Sample::micros_wall).fold(0.0, f64::max);
        let Some(best) = samples.iter().min_by(|a, b| a.micros_cpu().total_cmp(&b.micros_cpu())) else {
            continue;
        };
        println!(
            "{name:<50} {:>11.0} {cpu:>10.3} {:>6.0}% {:>9} {:>9}  {}",
            1e6 / wall,
            (slowest / wall - 1.0) * 100.0,
            best.held / 1024,
            best.peak / 1024,
            best.note
        );
    }
    println!();
    for comparison in comparisons {
        let (Some(of), Some(to)) = (results.best(&comparison.of), results.best(&comparison.to)) else {
            continue;
        };
        let as_fast = (to.0 / of.0, to.1 / of.1);
        let what = &comparison.what;
        match comparison.target {
            Some(target @ Target::AtLeast(limit, _)) => {
                // Both clocks must say so.
                let (low, reached) = (as_fast.0.min(as_fast.1), as_fast.0.min(as_fast.1) >= limit);
                verdicts.count(target, reached, low);
                let verdict = verdict(reached);
                println!(
                    "{:>9.2} x as fast by wall, {:>9.2} x by CPU; at least {limit}: {verdict}  ({what})",
                    as_fast.0, as_fast.1
                );
            }
            Some(target @ Target::AtMost(limit, _)) => {
                let costs = (1.0 / as_fast.0, 1.0 / as_fast.1);
                let (high, reached) = (costs.0.max(costs.1), costs.0.max(costs.1) <= limit);
                verdicts.count(target, reached, high);
                let verdict = verdict(reached);
                println!(
                    "{:>9.2} x the cost by wall, {:>9.2} x by CPU; at most {limit}: {verdict}  ({what})",
                    costs.0, costs.1
                );
            }
            None => {
                println!("{:>9.2} x as fast by wall, {:>9.2} x by CPU  ({what})", as_fast.0, as_fast.1);
            }
        }
    }
}

fn verdict(reached: bool) -> &'static str {
    if reached { "reached" } else { "NOT reached" }
}

impl Verdicts {
    fn count(&mut self, target: Target, reached: bool, ratio: f64) {
        let at = self.0.iter().position(|(its, ..)| *its == target).unwrap_or_else(|| {
            self.0.push((target, 0, 0, [f64::INFINITY, 0.0]));
            self.0.len() - 1
        });
        let (_, yes, all, [low, high]) = &mut self.0[at];
        *yes += usize::from(reached);
        *all += 1;
        (*low, *high) = (low.min(ratio), high.max(ratio));
    }

    pub fn print(&self, quick: bool) {
        println!("\n## targets\n");
        for (target, reached, all, [low, high]) in &self.0 {
            let (Target::AtLeast(_, sentence) | Target::AtMost(_, sentence)) = target;
            let verdict = verdict(reached == all);
            println!("{verdict}: {sentence} ({reached} of {all} comparisons; {low:.2} to {high:.2})");
        }
        if quick {
            println!("(--quick: smaller than the targets mean; for a first look only)");
        }
    }
}
