//! An explanation for people: a few lines for each thing, in the order in which a URL meets them.

use serde_json::{Value, json};

use crate::output::Row;

/// The same as a row for programs, in words.
pub(super) fn in_words(row: &Row) -> Row {
    let of = |name: &str| row.iter().find(|(its, _)| *its == name).map_or(&Value::Null, |(_, value)| value);
    let number = |name: &str| of(name).to_string();
    let mut words: Row = vec![
        ("url", of("url").clone()),
        ("canonical", of("canonical").clone()),
        ("identity", of("identity").clone()),
        ("queue", json!(format!("{} (partition {})", text(of("queue")), number("partition")))),
        ("class", json!(format!("{}, cost {}", number("class"), number("cost")))),
        ("scope", lines(&scope(of("scope")))),
        ("rules", lines(&rules(of("rules")))),
        ("robots", lines(&robots(of("robots")))),
        ("policy", lines(&policy(of("policy")))),
        ("state", lines(&state(of("state")))),
    ];
    let pairs =
        [("page", of("page")), ("budget", of("budget")), ("pace", of("pace")), ("lease", of("lease"))];
    words.extend(pairs.map(|(name, value)| (name, lines(&named(value)))));
    words.push(("next", lines(&next(of("next")))));
    words
}

fn lines(lines: &[String]) -> Value {
    if lines.is_empty() { Value::Null } else { json!(lines) }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        value => value.to_string(),
    }
}

/// `name value`, of what there is.
fn named(value: &Value) -> Vec<String> {
    let Value::Object(pairs) = value else { return Vec::new() };
    let there = pairs.iter().filter(|(_, value)| !value.is_null());
    there.map(|(name, value)| format!("{} {}", name.replace('_', " "), text(value))).collect()
}

fn scope(scope: &Value) -> Vec<String> {
    let verdict = if scope["in_scope"] == true { "in scope" } else { "not in scope" };
    let mut lines = vec![format!("{verdict}: {}", text(&scope["because"]))];
    let votes = scope["votes"].as_array().into_iter().flatten();
    lines.extend(votes.map(|vote| format!("  {:<10}  {}", text(&vote["vote"]), text(&vote["rule"]))));
    lines
}

fn rules(rules: &Value) -> Vec<String> {
    let rules = rules.as_array().into_iter().flatten();
    let line = |rule: &Value| {
        let detail = rule["detail"].as_str().map_or_else(String::new, |detail| format!(": {detail}"));
        format!("{:<4}  {}{detail}", text(&rule["vote"]), text(&rule["rule"]))
    };
    rules.map(line).collect()
}

fn robots(robots: &Value) -> Vec<String> {
    let mut first = text(&robots["verdict"]);
    if let Some(line) = robots["line"].as_str() {
        first += &format!(" ({line})");
    }
    let mut lines = vec![first];
    let more = [
        ("trouble", "because"),
        ("asked_again", "asked again at"),
        ("crawl_delay", "asks to wait"),
        ("fetched", "fetched at"),
    ];
    let said = more.iter().filter(|(name, _)| !robots[*name].is_null());
    lines.extend(said.map(|(name, words)| format!("  {words} {}", text(&robots[*name]))));
    lines
}

fn policy(policy: &Value) -> Vec<String> {
    let of = |name: &str| text(&policy[name]);
    vec![
        of("from"),
        format!("  delay {}, {} at a time, precedence {}", of("delay"), of("concurrency"), of("precedence")),
        format!("  class by {}, cost {}", of("class_policy"), of("cost_policy")),
        match &policy["max_depth"] {
            Value::Null => format!("  any depth, tried again {} times", of("retries_max")),
            depth => format!("  depth up to {depth}, tried again {} times", of("retries_max")),
        },
        match &policy["revisit"] {
            Value::Null => format!("  robots {}, strategy {}", of("robots"), of("strategy")),
            after => {
                let after = text(after);
                format!("  robots {}, strategy {}, visited again after {after}", of("robots"), of("strategy"))
            }
        },
        format!("  budget {}, balance {}", of("budget"), of("balance")),
    ]
}

fn state(state: &Value) -> Vec<String> {
    let mut lines = vec![text(&state["name"])];
    let more = ["reason", "due", "depth", "hops", "via", "seed"];
    let said = more.iter().filter(|name| !matches!(&state[**name], Value::Null));
    lines.extend(said.map(|name| format!("  {name} {}", text(&state[*name]))));
    lines
}

fn next(next: &Value) -> Vec<String> {
    let mut lines = vec![text(&next["what"])];
    for (at, wait, words) in [("earliest", "earliest_in", "not before"), ("latest", "latest_in", "by")] {
        if !next[at].is_null() {
            lines.push(format!("  {words} {} (in {})", text(&next[at]), text(&next[wait])));
        }
    }
    lines
}
