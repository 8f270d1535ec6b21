//! Against robotxt 0.7, another reading of the same standard, where the two are meant to agree.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use trapline_extract::Robots;

proptest! {
    #![proptest_config(Config {
        cases: 2_000,
        rng_seed: RngSeed::Fixed(7),
        failure_persistence: None,
        ..Config::default()
    })]

    #[test]
    fn two_parsers_read_ordinary_files_alike(
        lines in prop::collection::vec(
            prop_oneof![
                3 => "(Disallow|Allow): /[a-c/]{0,6}[*]?[a-c/]{0,3}[$]?",
                1 => "(User-agent|USER-AGENT): (foo|bar|\\*)",
                1 => "(# comment|Sitemap: https://a.example/s|Disallow:|)",
            ],
            0..20,
        ),
        end in "(\n|\r\n|\r)",
        paths in prop::collection::vec("/[a-c/]{0,8}", 1..8),
    ) {
        let file = format!("User-agent: foo{end}{}", lines.join(&end));
        for agent in ["foo", "bar", "baz"] {
            let ours = Robots::parse(file.as_bytes()).for_agent(agent);
            let theirs = robotxt::Robots::parse(file.as_bytes(), agent);
            for path in &paths {
                prop_assert_eq!(ours.check_path(path).allowed, theirs.is_allowed(path), "{} {}\n{}", agent, path, file);
            }
        }
    }
}
