//! What `docs/` says of a service, held against one: the metrics of the manual, of the board and of the alert rules; the unit for systemd.
#![allow(clippy::unwrap_used, reason = "helpers are parts of the tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use regex::Regex;
use serde_json::Value;

use crate::crawl::until;
use crate::folder::Folder;
use crate::service::Service;

/// The labels of a metric, each with the values it has.
type Labels = BTreeMap<String, BTreeSet<String>>;

/// What a histogram has besides its name.
const OF_HISTOGRAMS: [&str; 3] = ["_bucket", "_sum", "_count"];

fn document(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(path)).unwrap()
}

/// All metrics of a service that crawls, from a store that has everything a store can tell of.
fn metrics() -> BTreeMap<String, Labels> {
    let folder = Folder::new("serve-docs");
    let store = format!("disk:{}/store?max_memory=1GiB", folder.path.display());
    let out = folder.path.display().to_string();
    let service = Service::start(&store, &["--crawl", "--out", &out, "--set", "fetch.contact=a@b.test"]);
    // A census is kept for a second.
    until("the crawl begins", || service.get("/metrics").contains("\ntrapline_crawls 1\n"));
    let answer = service.get("/metrics");
    let sample = Regex::new(r"^([a-z_]+)(?:\{(.*)\})? ").unwrap();
    let label = Regex::new(r#"([a-z_]+)="([^"]*)""#).unwrap();
    let mut metrics = BTreeMap::<String, Labels>::new();
    let mut family = String::new();
    for line in answer.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            family = declared.split(' ').next().unwrap().to_owned();
            metrics.insert(family.clone(), Labels::new());
        } else if let Some(found) = sample.captures(line).filter(|_| line.starts_with("trapline_")) {
            let suffix = found[1].strip_prefix(&*family).unwrap_or_else(|| panic!("{line} is of no family"));
            assert!(suffix.is_empty() || OF_HISTOGRAMS.contains(&suffix), "{line}");
            for found in label.captures_iter(found.get(2).map_or("", |labels| labels.as_str())) {
                let labels = metrics.get_mut(&family).unwrap();
                labels.entry(found[1].to_owned()).or_default().insert(found[2].to_owned());
            }
        }
    }
    metrics
}

/// The metric that a name in an expression is of.
fn of_name<'m>(metrics: &'m BTreeMap<String, Labels>, name: &str) -> Option<&'m Labels> {
    let of_histogram = OF_HISTOGRAMS.iter().find_map(|suffix| metrics.get(name.strip_suffix(suffix)?));
    metrics.get(name).or_else(|| of_histogram.filter(|labels| labels.contains_key("le")))
}

/// Expressions ask for metrics that there are, by labels and values that they have.
fn check(metrics: &BTreeMap<String, Labels>, place: &str, expression: &str) {
    let asked = Regex::new(r"(trapline_[a-z_]+)(?:\{([^}]*)\})?").unwrap();
    let matcher = Regex::new(r#"([a-z_]+)\s*(?:=~|!~|!=|=)\s*"([^"]*)""#).unwrap();
    let mut is_of_ours = expression.contains("up{job=");
    for found in asked.captures_iter(expression) {
        is_of_ours = true;
        let labels =
            of_name(metrics, &found[1]).unwrap_or_else(|| panic!("{place}: there is no {}", &found[1]));
        for found in matcher.captures_iter(found.get(2).map_or("", |matchers| matchers.as_str())) {
            let values = labels.get(&found[1]);
            let values = values.unwrap_or_else(|| panic!("{place}: no label {}: {expression}", &found[1]));
            // Calls are counted by the codes they ended with, which nothing has yet.
            let is_there = |value| values.contains(value) || &found[1] == "code";
            assert!(found[2].split('|').all(is_there), "{place}: no {}: {expression}", &found[0]);
        }
    }
    assert!(is_of_ours, "{place}: {expression}");
    let grouped = Regex::new(r"by \(([^)]*)\)").unwrap();
    for found in grouped.captures_iter(expression) {
        for label in found[1].split(", ") {
            assert!(has_label(metrics, expression, label), "{place}: no label {label}: {expression}");
        }
    }
}

#[test]
fn the_manual_the_board_and_the_alerts_speak_of_the_metrics_there_are() {
    let metrics = metrics();

    let manual = document("manual/serve.md");
    let told = Regex::new(r"`(trapline_[a-z_]+)(?:\{([a-z,]+)\})?`").unwrap();
    let table = manual.lines().filter(|line| line.starts_with("| `trapline_")).collect::<Vec<_>>();
    let told: BTreeMap<_, BTreeSet<_>> = table
        .iter()
        .flat_map(|line| told.captures_iter(line))
        .map(|found| {
            let labels = found.get(2).map_or("", |labels| labels.as_str()).split(',');
            (found[1].to_owned(), labels.filter(|label| !label.is_empty()).map(str::to_owned).collect())
        })
        .collect();
    let served: BTreeMap<_, BTreeSet<_>> = metrics
        .iter()
        .map(|(name, labels)| (name.clone(), labels.keys().filter(|label| *label != "le").cloned().collect()))
        .collect();
    for (name, labels) in &served {
        assert_eq!(told.get(name), Some(labels), "{name}: what the manual says of its labels");
    }
    for name in told.keys() {
        assert!(served.contains_key(name), "the manual tells of {name}, and there is none");
    }

    let board: Value = serde_json::from_str(&document("grafana/trapline.json")).unwrap();
    let legend = Regex::new(r"\{\{([a-z]+)\}\}").unwrap();
    let mut ids = BTreeSet::new();
    for panel in board["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "two panels have the id {}", panel["id"]);
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            check(&metrics, &format!("panel {}", panel["title"]), expression);
            for found in legend.captures_iter(target["legendFormat"].as_str().unwrap()) {
                assert!(has_label(&metrics, expression, &found[1]), "{expression}: {}", &found[0]);
            }
        }
    }
    assert!(ids.len() > 15);

    let rules = document("grafana/alerts.yml");
    let expressions: Vec<_> =
        rules.lines().filter_map(|line| line.trim_start().strip_prefix("expr: ")).collect();
    assert_eq!(expressions.len(), rules.matches("- alert: ").count(), "one expression each, on its line");
    assert_eq!(expressions.len(), rules.matches("summary: ").count());
    for expression in expressions {
        check(&metrics, "alerts", expression);
    }
}

/// Whether what an expression asks for has such a label.
fn has_label(metrics: &BTreeMap<String, Labels>, expression: &str, label: &str) -> bool {
    let asked = Regex::new(r"trapline_[a-z_]+").unwrap();
    let mut asked = asked.find_iter(expression).filter_map(|found| of_name(metrics, found.as_str()));
    asked.any(|labels| labels.contains_key(label))
}

#[test]
fn the_unit_for_systemd_starts_a_service_that_tokens_protect() {
    let unit = document("systemd/trapline.service");
    let command = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let folder = Folder::new("serve-unit");
    fs::create_dir_all(&folder.path).unwrap();
    let here = folder.path.display().to_string();
    fs::write(folder.path.join("tokens"), "full 0123456789abcdef0123456789abcdef\n").unwrap();
    let command = command.replace("${CREDENTIALS_DIRECTORY}", &here).replace("/var/lib/trapline", &here);
    let mut words = command.split(' ');
    assert_eq!(words.next(), Some("/usr/local/bin/trapline"));
    let words: Vec<_> = words.collect();
    let mut service = Service::of_command_line(&words);
    assert!(service.get("/healthz").starts_with("HTTP/1.1 200 "));
    assert!(service.get("/readyz").starts_with("HTTP/1.1 401 "), "it asks for the tokens of the unit");
    assert!(folder.path.join("store").is_dir(), "its store is in the unit's folder");
    // As systemd stops it.
    assert_eq!(service.end().code(), Some(0));
    // What a person has to look at is not tried again and again.
    let path = folder.path.join("tokens");
    fs::write(&path, "nonsense\n").unwrap();
    let refused = Command::new(env!("CARGO_BIN_EXE_trapline")).args(&words).output().unwrap();
    let status = refused.status.code().unwrap();
    assert!(unit.contains(&format!("\nRestartPreventExitStatus={status}\n")), "{status}");
}
