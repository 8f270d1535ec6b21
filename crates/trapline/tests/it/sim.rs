//! `trapline sim`, run as a user would.

use std::process::{Command, Output};

fn trapline(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(arguments)
        .output()
        .expect("the binary was built and runs")
}

fn sim(arguments: &[&str]) -> Output {
    trapline(&[&["sim"], arguments].concat())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the simulation writes UTF-8")
}

#[test]
fn many_seeds_are_summed_up() {
    let output = sim(&["--seeds", "20", "--from", "7", "--store", "memory:"]);
    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(report.starts_with("20 seeds from 7 on, faults: all. All kept the contract.\n"), "{report}");
    for part in
        ["leases granted", "leases expired", "drained", "so it was not restarted", "commands a second"]
    {
        assert!(report.contains(part), "no `{part}` in:\n{report}");
    }
    assert!(output.stderr.is_empty(), "no progress but on a terminal: {output:?}");
    let one = text(&sim(&["--seeds", "1", "--from", "7"]).stdout);
    assert!(one.starts_with("1 seed, 7, faults: all. It kept the contract.\n"), "{one}");
}

#[test]
fn a_list_of_faults_may_begin_with_what_is_left_out() {
    let without = sim(&["--seed", "3", "--faults", "-deaths,-operators"]);
    let report = text(&without.stdout);
    assert!(report.starts_with("Seed 3, faults: stalls,late,doubles,lost,jumps,restarts."), "{without:?}");
    assert_eq!(without.stdout, sim(&["--seed", "3", "--faults=all,-deaths,-operators"]).stdout);
}

#[test]
fn a_history_says_that_it_needs_several_partitions() {
    let header = |seed: u64| {
        let history = text(&sim(&["--seed", &seed.to_string(), "--steps", "0", "--history"]).stdout);
        history.lines().next().unwrap_or_default().to_owned()
    };
    let several = (0..50).map(header).find(|header| !header.ends_with("on 1 partition"));
    let several = several.expect("some crawls have several");
    assert!(several.ends_with("`trapline frontier replay` plays on one, where other queues may come first"));
}

#[test]
fn a_store_that_keeps_something_is_restarted() {
    let folder = std::env::temp_dir().join(format!("trapline-sim-disk-{}", std::process::id()));
    let output = sim(&["--seeds", "10", "--store", &format!("disk:{}", folder.display())]);
    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(report.contains("restarts") && !report.contains("not restarted"), "{report}");
    std::fs::remove_dir(&folder).expect("it is left empty");
}

#[test]
fn one_seed_is_told_and_is_the_same_each_time() {
    let once = sim(&["--seed", "3", "--faults", "deaths,lost"]);
    assert_eq!(once.status.code(), Some(0));
    let report = text(&once.stdout);
    assert!(
        report.starts_with("Seed 3, faults: deaths,lost. It kept the contract, twice the same.\n"),
        "{report}"
    );
    assert_eq!(once.stdout, sim(&["--seed", "3", "--faults", "lost,deaths"]).stdout);
}

#[test]
fn the_loop_of_a_crawl_can_be_tried_too() {
    let output = sim(&["--crawl", "--seeds", "5", "--from", "7"]);
    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(report.starts_with("5 crawls of generated webs kept the contract: "), "{report}");
    let history = || sim(&["--crawl", "--seed", "3", "--history"]).stdout;
    assert_eq!(history(), history());
    assert!(text(&history()).contains(" claim "));
}

#[test]
fn a_history_is_a_trace_that_can_be_replayed() {
    // A seed whose crawl has one partition, as traces have.
    let history = (0..50)
        .map(|seed| text(&sim(&["--seed", &seed.to_string(), "--history"]).stdout))
        .find(|history| history.lines().next().is_some_and(|line| line.ends_with("on 1 partition")))
        .expect("most crawls have one partition");
    let file = std::env::temp_dir().join(format!("trapline-sim-{}.trace", std::process::id()));
    std::fs::write(&file, &history).unwrap();
    let replayed = trapline(&["frontier", "replay", file.to_str().expect("a name in UTF-8")]);
    let _ = std::fs::remove_file(&file);
    assert_eq!(replayed.status.code(), Some(0), "{}", text(&replayed.stderr));
    assert!(text(&replayed.stderr).contains("all as expected"));
}

#[test]
fn a_history_goes_to_standard_output_alone() {
    let output = sim(&["--seed", "3", "--history"]);
    assert!(text(&output.stdout).starts_with("# seed 3, on "), "{output:?}");
    assert!(!text(&output.stdout).contains("kept the contract"));
    assert!(text(&output.stderr).contains("kept the contract"));
}

#[test]
fn no_steps_are_a_short_crawl() {
    let output = sim(&["--seed", "3", "--steps", "0", "--faults", "none"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output.stdout).contains("drained"));
}

#[test]
fn mistakes_are_explained() {
    let check = |arguments: &[&str], message: &str| {
        let output = sim(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(message), "{arguments:?} says:\n{said}");
        assert!(output.stdout.is_empty());
    };
    let known = "known are deaths, stalls, late, doubles, lost, jumps, operators, restarts, all and none";
    check(&["--faults", "death"], &format!("there is no fault `death`; {known}"));
    check(&["--faults", ""], known);
    check(&["--faults", "deaths,,lost"], "there is no fault ``");
    check(&["--faults", "-all"], "there is no fault `-all`");
    check(&["--seed", "-1"], "write a whole number from 0 to 18446744073709551615");
    check(&["--seed", "18446744073709551616"], "write a whole number from 0 to 18446744073709551615");
    check(&["--seed", "x"], "'--seed <N>'");
    check(&["--seeds", "0"], "without a seed nothing is simulated");
    check(&["--seeds", "many"], "write a whole number, such as 1000");
    check(&["--steps", "1000001"], "a run may have up to 1,000,000 steps");
    check(&["--steps", "-5"], "write a whole number from 0 to 1000000");
    check(&["--seed", "1", "--seeds", "2"], "cannot be used with");
    check(&["--seeds", "2", "--history"], "cannot be used with");
    check(&["--history"], "--seed <N>");
    check(&["--crawl", "--faults", "none"], "cannot be used with");
    check(&["--store", "redis:x"], "trapline sim: stores of the kind `redis:` are not built yet");
    check(
        &["--store", "disk:src"],
        "trapline sim: cannot simulate in `src`: it is not empty; choose an empty folder",
    );
    check(&["--store", ""], "trapline sim: `` is not a store: write `memory:`");
    check(&["--sed", "5"], "--seed");
}

#[test]
fn the_last_seed_there_is_can_be_run() {
    let output = sim(&["--seeds", "2", "--from", "18446744073709551615"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn help_teaches_by_examples_and_names_every_fault() {
    let output = sim(&["--help"]);
    let help = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    for part in ["Examples:", "trapline sim --seed 7 --history", "[default: 1000]", "oracle", "Exit code 0"] {
        assert!(help.contains(part), "no `{part}` in:\n{help}");
    }
    for fault in ["deaths", "stalls", "late", "doubles", "lost", "jumps", "operators", "restarts"] {
        assert!(help.contains(&format!("\n  {fault} ")), "{fault} is not explained in:\n{help}");
    }
}
