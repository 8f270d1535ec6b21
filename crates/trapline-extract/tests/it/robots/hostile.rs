//! Files that were made to hurt: they are read and asked in bounded time, measured as CPU time of this thread. The
//! benchmark has the exact figures; here is room for slow machines and for builds that are hardly optimized.

use std::fmt::Write;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use trapline_extract::{Because, ROBOTS_BYTES_MAX, Robots, Rules};

/// Reading and preparing a file.
const READ_MAX: Duration = Duration::from_millis(1_500);

/// A decision: 1 ms is the promise for a release build.
const DECISION_MAX: Duration = Duration::from_millis(30);

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

#[track_caller]
fn timed<T>(most: Duration, what: &str, work: impl FnOnce() -> T) -> T {
    let before = cpu();
    let done = work();
    let took = cpu().saturating_sub(before);
    assert!(took < most, "{what} took {took:?}");
    done
}

#[track_caller]
fn read(file: impl AsRef<[u8]>) -> (Robots, Rules) {
    timed(READ_MAX, "reading", || {
        let robots = Robots::parse(file.as_ref());
        let rules = robots.for_agent("trapline");
        (robots, rules)
    })
}

/// Asks about a path of 8 KB and some that are shorter.
#[track_caller]
fn ask(rules: &Rules, path: &str) -> Because {
    assert!(path.len() >= 8_000, "{}", path.len());
    for len in [1, 100, 2_000] {
        timed(DECISION_MAX, "a short decision", || rules.check_path(&path[..len]));
    }
    timed(DECISION_MAX, "a decision", || rules.check_path(path)).because
}

/// As many rules as there is room for.
fn full(mut rule: impl FnMut(usize) -> String) -> String {
    let mut file = String::from("User-agent: *\n");
    for number in 0.. {
        let line = rule(number);
        if file.len() + line.len() + 7 > ROBOTS_BYTES_MAX {
            break;
        }
        let _ = write!(file, "allow:{line}\n");
    }
    file
}

/// Numbers as letters, so that they differ early.
fn letters(mut number: usize, count: usize) -> String {
    let mut text = String::new();
    for _ in 0..count {
        text.push(char::from(b'a' + (number % 26) as u8));
        number /= 26;
    }
    text
}

#[test]
fn a_million_groups_are_read_as_far_as_the_limit_goes() {
    let (robots, rules) = read("User-agent: x\nDisallow: /\n".repeat(1_000_000));
    assert!(robots.is_truncated() && robots.groups().count() < 20_000);
    assert_eq!(ask(&rules, &"/a".repeat(4_096)), Because::NoGroup);
    assert!(!robots.for_agent("x").check_path("/").allowed);
    let (robots, _) = read("user-agent:*\n".repeat(1_000_000));
    assert_eq!(robots.groups().count(), 1);
}

#[test]
fn a_line_that_the_limit_cuts_does_not_count() {
    let file = |filling: usize| {
        let head = "User-agent: *\nDisallow: /a\n#";
        format!("{head}{}\nDisallow: /b\nDisallow: /c\n", "x".repeat(filling - head.len()))
    };
    let lines = "\nDisallow: /b\n".len();
    // The limit falls behind the end of the line, before it, and into it.
    for (place, allowed) in [(0, false), (1, true), (5, true), (lines, true)] {
        let robots = Robots::parse(file(ROBOTS_BYTES_MAX - lines + place).as_bytes());
        assert!(robots.is_truncated());
        let rules = robots.for_agent("x");
        assert!(!rules.check_path("/a").allowed && rules.check_path("/c").allowed);
        assert_eq!(rules.check_path("/b").allowed, allowed, "{place}");
        assert_eq!(robots.faults().len(), 1);
        assert_eq!(robots.faults()[0].line, if place == 0 { 5 } else if place == lines { 3 } else { 4 });
    }
    let whole = file(ROBOTS_BYTES_MAX - 2 * lines + 1);
    assert_eq!(whole.len(), ROBOTS_BYTES_MAX);
    assert!(!Robots::parse(whole.as_bytes()).is_truncated());
    // One line of a megabyte.
    let (robots, rules) = read(format!("User-agent: *\nDisallow: /{}", "a".repeat(1_000_000)));
    assert!(robots.is_truncated());
    assert_eq!(ask(&rules, &format!("/{}", "a".repeat(8_191))), Because::NoRule);
}

#[test]
fn stars_upon_stars_are_one() {
    let (_, rules) = read(format!("User-agent: *\nDisallow: {}$\n", "*".repeat(400_000)));
    assert_eq!(ask(&rules, &"/a".repeat(4_096)), Because::Rule);
    let (_, rules) = read(format!("User-agent: *\nDisallow: /{}b\n", "*a".repeat(200_000)));
    assert_eq!(ask(&rules, &format!("/{}", "a".repeat(8_191))), Because::NoRule);
    let (_, rules) = read(format!("User-agent: *\nDisallow: /{}aab\n", "*a".repeat(4_000)));
    assert_eq!(ask(&rules, &format!("/{}ab", "a".repeat(8_189))), Because::Rule);
}

#[test]
fn forty_thousand_wildcard_rules_are_decided_exactly() {
    let a = format!("/{}", "a".repeat(8_191));
    let (_, rules) = read(full(|_| "*a*a*a$".to_owned()));
    assert_eq!(ask(&rules, &a), Because::Rule);
    // Each one different, none that matches.
    let (_, rules) = read(full(|number| format!("*a*a*{}$", letters(number + 1, 4))));
    assert_eq!(ask(&rules, &a), Because::NoRule);
    let (_, rules) = read(full(|number| format!("/*a*a*{}x", letters(number, 4))));
    assert_eq!(ask(&rules, &a), Because::NoRule);
    // All letters are there, but not in that order.
    let alphabet: String = (0..8_192 / 26).map(|_| "zyxwvutsrqponmlkjihgfedcba").collect();
    let alphabet = format!("/{alphabet:/<8191}");
    let (_, rules) = read(full(|number| format!("*{}", letters(number, 3))));
    assert_eq!(ask(&rules, &alphabet), Because::Rule);
    let (_, rules) = read(full(|number| format!("*{}bb", letters(number, 3))));
    assert_eq!(ask(&rules, &alphabet), Because::NoRule);
    // The first segment stands only at the end.
    let (_, rules) = read(full(|number| format!("/*!!*{}", letters(number, 3))));
    assert_eq!(ask(&rules, &format!("{alphabet}!!")), Because::NoRule);
}

/// Whoever writes such a file may be refused, but must not be waited for.
#[test]
fn what_cannot_be_decided_in_time_is_not_allowed() {
    // The path has every pair of letters in every order, and no rule fails before its last segment.
    let mut state = 1_u64;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'a' + (state >> 33) as u8 % 4)
    };
    let path: String = std::iter::once('/').chain((0..8_191).map(|_| letter())).collect();
    let (_, rules) = read(full(|_| {
        let word: String = (0..9).map(|_| letter()).collect();
        format!("*{word}*{word}*zz")
    }));
    // `z` is nowhere: the sieve knows.
    assert_eq!(ask(&rules, &path), Because::NoRule);
    let (_, rules) = read(full(|_| {
        let word: String = (0..9).map(|_| letter()).collect();
        format!("*{}*{word}*{word}", &word[..4])
    }));
    let decision = rules.check_path(&path);
    assert!(matches!(ask(&rules, &path), Because::TooCostly | Because::NoRule), "{decision:?}");
    if decision.because == Because::TooCostly {
        assert!(!decision.allowed && decision.line.is_none());
    }
}
