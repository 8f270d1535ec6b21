//! The fast matcher against one that is too simple to be wrong.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use trapline_extract::{Because, Robots};

/// Whether a pattern in the one spelling matches a path in it, by trying everything, column by column.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    let (pattern, anchored) = match pattern {
        [pattern @ .., b'$'] => (pattern, true),
        pattern => (pattern, false),
    };
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    for byte in pattern {
        let mut next = vec![false; path.len() + 1];
        let mut any = false;
        for place in 0..=path.len() {
            any |= reached[place];
            next[place] = match byte {
                b'*' => any,
                byte => place > 0 && reached[place - 1] && path[place - 1] == *byte,
            };
        }
        reached = next;
    }
    if anchored { reached[path.len()] } else { reached.contains(&true) }
}

/// The decision, and the weight of the rule that makes it.
fn decide(rules: &[(bool, String)], path: &str) -> (bool, Option<usize>) {
    let matching = rules.iter().filter(|(_, pattern)| matches(pattern.as_bytes(), path.as_bytes()));
    let best = matching.map(|(allow, pattern)| (pattern.len(), *allow)).max();
    best.map_or((true, None), |(len, allow)| (allow, Some(len)))
}

fn same(rules: &[(bool, String)], paths: &[String]) -> Result<(), TestCaseError> {
    let mut file = String::from("User-agent: *\n");
    for (allow, pattern) in rules {
        file += &format!("{}: {pattern}\n", if *allow { "Allow" } else { "Disallow" });
    }
    let robots = Robots::parse(file.as_bytes());
    let compiled = robots.for_agent("x");
    let kept = Robots::from_bytes(&robots.to_bytes()).unwrap().for_agent("x");
    for path in paths {
        let decision = compiled.check_path(path);
        prop_assert!(decision.because != Because::TooCostly);
        let found = (decision.allowed, decision.line.map(|line| line.pattern.len()));
        prop_assert_eq!(found, decide(rules, path), "{} in\n{}", path, file);
        prop_assert_eq!(kept.check_path(path), decision);
    }
    Ok(())
}

fn config(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(9309), failure_persistence: None, ..Config::default() }
}

proptest! {
    #![proptest_config(config(3_000))]

    #[test]
    fn small_files_decide_as_the_naive_matcher_does(
        rules in prop::collection::vec((any::<bool>(), "[/*][ab/*]{0,7}[$]?"), 0..12),
        paths in prop::collection::vec("/[ab/]{0,10}", 1..6),
    ) {
        same(&rules, &paths)?;
    }
}

proptest! {
    #![proptest_config(config(40))]

    /// Long enough for the index of the path, with segments on both sides of the 64 bytes that it compares as bits.
    #[test]
    fn large_files_decide_as_the_naive_matcher_does(
        rules in prop::collection::vec((any::<bool>(), "[/*]([ab]{1,5}[*]){1,4}[ab]{0,3}[$]?"), 300..600),
        long in prop::collection::vec("/[*](a{60,70}|(ab){30,40}|[ab]{63,66})[*]b[ab]{0,9}", 40),
        paths in prop::collection::vec("/(a{60,300}|(ab){90,200}|[ab]{300,900})[ab]{0,70}", 2),
        endings in prop::collection::vec("[c-e]{3}", 50),
    ) {
        let mut all = rules;
        // A third segment that is never there keeps rules from matching before many were tried.
        for (pattern, ending) in long.iter().zip(endings.iter().cycle()) {
            all.push((ending.starts_with('c'), format!("{pattern}*{ending}a")));
            all.push((ending.starts_with('d'), format!("{pattern}*ba*bbab*b")));
        }
        let dotted = paths.iter().map(|path| format!("{path}/cde"));
        let paths: Vec<_> = paths.iter().cloned().chain(dotted).collect();
        same(&all, &paths)?;
    }
}

#[test]
fn the_naive_matcher_itself_is_right() {
    for (pattern, path, expected) in [
        ("/a", "/ab", true),
        ("/a$", "/ab", false),
        ("/*b$", "/aab", true),
        ("*", "/", true),
        ("/a*a$", "/a", false),
        ("/a*a$", "/aa", true),
        ("/**b*$", "/abc", true),
    ] {
        assert_eq!(matches(pattern.as_bytes(), path.as_bytes()), expected, "{pattern} {path}");
    }
}
