//! `trapline sim`: a store put through its paces on generated webs, and what went wrong, made small.
//!
//! Here is what the user typed and what it means, and how it is told. The simulation is in `trapline-sim`.

mod crawl_loop;
mod report;

use std::io::{IsTerminal, Write, stderr, stdout};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use trapline_sim::{
    Failure, Faults, Run, SeedRange, SimPlan, Stores, Tally, Trouble, check_seed, run_seeds, watch_panics,
};

use crate::store_url;
use report::{Many, failed, one};

/// Exit code where a seed went wrong.
const WRONG: u8 = 1;
/// Exit code where the simulation could not run.
const TROUBLE: u8 = 2;

const SEEDS: u64 = 1_000;
const STEPS_MAX: u32 = 1_000_000;

const EXAMPLES: &str = "\
Faults:
  deaths     workers die with their leases
  stalls     workers stall past their deadline and settle as if nothing had happened
  late       settlements arrive just before, at or just after the deadline
  doubles    leases are settled twice
  lost       answers get lost: leases nobody knows of, batches sent again
  jumps      clocks jump ahead, by milliseconds or by days, and some are behind
  operators  operators steer at random: terms, settings, pause, block, retire, purge, delete, forget, replay
  restarts   the store is closed and opened again, in good order, killed, or killed in the middle of a call
             (stores that keep something)

Examples:
  trapline sim                             1,000 seeds with every fault
  trapline sim --seeds 100000 --from 5000  more of them, others than usual
  trapline sim --seed 7                    one seed, run twice
  trapline sim --seed 7 --history          all that was done and answered, as a trace
  trapline sim --faults none               nobody misbehaves; everything must be drained all the same
  trapline sim --faults deaths,lost        some troubles only
  trapline sim --faults -operators         all but one
  trapline sim --crawl                     the loop of `trapline crawl` itself, stopped, killed and begun anew

A seed that goes wrong is named with the command that repeats it, and made small: a trace that
`trapline frontier replay` plays. Exit code 0: all was well. 1: a seed went wrong. 2: the simulation
could not run.";

/// Try a store on generated webs, with dying workers and restless operators, under the eyes of an oracle
///
/// Each seed makes a web, a crawl with settings of its own, workers and operators, and
/// decides all that happens to them. An oracle that knows only the commands and the answers
/// holds every answer against the contract of the frontier: that no URL is lost or leased
/// twice, no host asked too soon, no budget overspent, no queue passed over, and so on. At
/// the end everything must drain. One seed gives one history, byte by byte.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, verbatim_doc_comment)]
pub(crate) struct SimArgs {
    /// Run this seed alone, twice, and tell what happened
    #[arg(long, value_name = "N", value_parser = seed, allow_negative_numbers = true, conflicts_with_all = ["seeds", "from"])]
    seed: Option<u64>,

    /// Run so many seeds on all cores, until one goes wrong [default: 1000]
    #[arg(long, value_name = "N", value_parser = seeds, allow_negative_numbers = true)]
    seeds: Option<u64>,

    /// The first of many seeds
    #[arg(long, value_name = "N", default_value = "0", value_parser = seed, allow_negative_numbers = true)]
    from: u64,

    /// How many events each run has before its crawl is drained
    #[arg(long, value_name = "K", default_value = "250", value_parser = steps, allow_negative_numbers = true)]
    steps: u32,

    /// Which kinds of trouble there are: `all`, `none`, or names with commas between them; `-name` leaves one out
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = Faults::parse, allow_hyphen_values = true)]
    faults: Faults,

    /// Try the loop of `trapline crawl` itself, with restarts, on stores in memory
    #[arg(long, conflicts_with_all = ["steps", "faults", "store"])]
    crawl: bool,

    /// Print all that was done and answered, as a trace
    #[arg(long, requires = "seed", conflicts_with_all = ["seeds", "from"])]
    history: bool,

    /// The store to try
    #[arg(long, value_name = "URL", default_value = "memory:")]
    store: String,
}

/// Runs the command.
pub(crate) fn run(args: &SimArgs) -> ExitCode {
    if args.crawl {
        watch_panics();
        return args.run_loops().unwrap_or_else(|message| trouble(&message));
    }
    let stores = match store_url::stores(&args.store) {
        Ok(stores) => stores,
        Err(message) => return trouble(&message),
    };
    // A store that panics has gone wrong, and is reported as such, with the seed.
    watch_panics();
    let plan = SimPlan { seed: args.seed.unwrap_or(args.from), steps: args.steps, faults: args.faults };
    let checked = match args.seed {
        Some(_) => args.run_one(&plan, &*stores),
        None => args.run_many(&plan, &*stores),
    };
    match checked {
        Ok(code) => code,
        Err(message) => trouble(&message),
    }
}

fn trouble(message: &str) -> ExitCode {
    eprintln!("trapline sim: {message}");
    ExitCode::from(TROUBLE)
}

/// Whoever reads may stop reading early, as `head` does; that is no failure of ours.
fn print(text: &str) {
    let _ = stdout().lock().write_all(text.as_bytes());
}

impl SimArgs {
    fn run_one(&self, plan: &SimPlan, stores: &dyn Stores) -> Result<ExitCode, String> {
        let checked = check_seed(plan, stores, true).map_err(|error| error.to_string())?;
        if self.history {
            let run = match &checked {
                Ok(run) => run,
                Err(failure) => &failure.run,
            };
            print(&history(plan, run));
        }
        Ok(match checked {
            Ok(run) => {
                // The history is to be read by programs; what is told of it is for people.
                let told = one(plan, &run);
                if self.history {
                    eprint!("{told}");
                } else {
                    print(&told);
                }
                ExitCode::SUCCESS
            }
            Err(failure) => self.fail(&failure),
        })
    }

    fn run_many(&self, plan: &SimPlan, stores: &dyn Stores) -> Result<ExitCode, String> {
        let seeds = SeedRange { from: self.from, count: self.seeds.unwrap_or(SEEDS) };
        let started = Instant::now();
        let bar = stderr().is_terminal().then(|| bar(seeds.count));
        let tell = |tally: &Tally| {
            if let Some(bar) = &bar {
                bar.set_position(tally.seeds);
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let ran = run_seeds(plan, seeds, threads, stores, &tell).map_err(|error| error.to_string())?;
        if let Some(bar) = &bar {
            bar.finish_and_clear();
        }
        Ok(match ran {
            Ok(tally) => {
                let restarts = self.faults.has(Trouble::Restarts);
                print(&Many { seeds, plan: *plan, tally, restarts, wall: started.elapsed() }.to_string());
                ExitCode::SUCCESS
            }
            Err(failure) => self.fail(&failure),
        })
    }

    fn fail(&self, failure: &Failure) -> ExitCode {
        print(&failed(failure, &self.store));
        ExitCode::from(WRONG)
    }
}

fn history(plan: &SimPlan, run: &Run) -> String {
    let (seed, partitions) = (plan.seed, run.partitions);
    let on = match partitions {
        1 => "1 partition".to_owned(),
        _ => format!(
            "{partitions} partitions; `trapline frontier replay` plays on one, where other queues may come first"
        ),
    };
    format!("# seed {seed}, on {on}\n{}", run.history)
}

fn bar(seeds: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {human_pos} of {human_len} seeds, {eta} left")
        .expect("a template with keys that exist");
    let bar = ProgressBar::new(seeds).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("write a whole number from 0 to {}", u64::MAX))
}

fn seeds(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("without a seed nothing is simulated".to_owned()),
        Ok(seeds) => Ok(seeds),
        Err(_) => Err("write a whole number, such as 1000".to_owned()),
    }
}

fn steps(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(steps) if steps <= STEPS_MAX => Ok(steps),
        Ok(_) => Err("a run may have up to 1,000,000 steps".to_owned()),
        Err(_) => Err("write a whole number from 0 to 1000000".to_owned()),
    }
}
