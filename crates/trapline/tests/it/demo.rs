//! `trapline demo --virtual`, run as a user would.

use std::process::{Command, Output};

fn demo(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(["demo", "--virtual"])
        .args(arguments)
        .output()
        .expect("the binary was built and runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the demo writes UTF-8")
}

/// Runs a demo that must succeed; its report without what depends on the wall clock.
fn report(arguments: &[&str]) -> String {
    let output = demo(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
    let timed = |line: &&str| !line.contains("wall time");
    text(&output.stdout).lines().filter(timed).map(|line| line.to_owned() + "\n").collect()
}

#[test]
fn a_small_demo_reports_a_polite_crawl() {
    let report = report(&["--hosts", "10", "--pages", "300", "--delay", "250ms", "--workers", "4"]);
    let first = "Crawled a web of 10 hosts and 300 pages (seed 1) with 4 workers, a host left alone for 250ms after each \
                 fetch.\n";
    assert!(report.starts_with(first), "{report}");
    let line = |label: &str, value: &str| {
        let found = report.lines().any(|line| {
            line.trim_start().strip_prefix(label).is_some_and(|rest| rest.trim_start().starts_with(value))
        });
        assert!(found, "no line `{label}  {value}` in:\n{report}");
    };
    line("shortest pause", "250ms");
    line("most at once", "1 ");
    line("violations", "0");
    line("URLs left in them", "0");
    line("leases expired", "0");
    assert!(report.contains("each exactly once"), "{report}");
    assert!(report.contains("otter0.example"), "{report}");
}

#[test]
fn a_seed_gives_the_same_report_again() {
    let small = ["--pages", "500", "--seed", "9"];
    assert_eq!(report(&small), report(&small));
    assert_ne!(report(&small), report(&["--pages", "500", "--seed", "10"]));
}

#[test]
fn the_smallest_web_is_a_page() {
    let report = report(&["--hosts", "1", "--pages", "1", "--workers", "1", "--delay", "0"]);
    assert!(report.starts_with("Crawled a web of 1 host and 1 page (seed 1) with 1 worker,"), "{report}");
}

#[test]
fn progress_goes_to_standard_error_in_plain_lines() {
    let output = demo(&["--pages", "2000"]);
    let told = text(&output.stderr);
    assert!(told.lines().count() >= 2, "{told}");
    for line in told.lines() {
        assert!(line.starts_with("clock ") && line.contains(" known URLs "), "{line:?}");
        assert!(!line.contains('\u{1b}'), "{line:?}");
    }
    assert!(!text(&output.stdout).contains("clock"), "{output:?}");
}

#[test]
fn mistakes_are_explained() {
    let check = |arguments: &[&str], message: &str| {
        let output = demo(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(message), "{arguments:?} says:\n{said}");
        assert!(output.stdout.is_empty());
    };
    check(&["--hosts", "0"], "invalid value '0' for '--hosts <N>': a web has at least one host");
    check(&["--pages", "0"], "a web has at least one page");
    check(&["--workers", "0"], "without a worker nothing is fetched");
    check(&["--hosts", "many"], "write a whole number, such as 500");
    check(&["--pages", "1e6"], "write a whole number, such as 500");
    let too_many = "the demo keeps everything in memory and takes up to 2,000,000 pages";
    check(&["--pages", "2000001"], too_many);
    check(&["--pages", "99999999999999999999999"], too_many);
    check(&["--hosts", "4000000000"], "takes up to 2,000,000 hosts");
    check(&["--workers", "100001"], "takes up to 100,000 workers");
    check(&["--hosts", "100", "--pages", "99"], "error: 99 pages are too few for 100 hosts");
    check(&["--delay", "1"], "`1` is not a duration: write digits and a unit");
    check(&["--delay", "2d"], "a delay may be up to 1d");
    check(&["--seed", "-1"], "'--seed <N>': write a whole number from 0 to 18446744073709551615");
    check(&["--hosts", "-1"], "'--hosts <N>': write a whole number, such as 500");
    check(&["--worker", "5"], "--workers");
}

#[test]
fn help_teaches_by_examples() {
    let output = demo(&["--help"]);
    let help = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    for part in ["Examples:", "trapline demo --virtual", "[default: 50]", "--delay <TIME>", "time is only"] {
        assert!(help.contains(part), "no `{part}` in:\n{help}");
    }
}
