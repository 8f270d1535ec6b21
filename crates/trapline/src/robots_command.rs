//! `trapline robots`: what a robots.txt says, to one agent about one URL, or altogether.
//!
//! A window on `trapline-extract`: nothing is fetched, and nothing decided here.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use trapline_core::parse_url;
use trapline_extract::{Because, Decision, ROBOTS_BYTES_MAX, Robots, RobotsGroup};

use crate::ended::{self, Ended};
use crate::output::Output;

/// Show what a robots.txt says, as RFC 9309 reads it
///
/// Files are read as a crawl reads them: 500 KiB at most, misspellings forgiven, whatever the bytes.
#[derive(Args)]
#[command(after_help = "Examples:
  $ trapline robots check --file robots.txt --agent trapline --url https://example.com/private/x
  disallowed by line 2: Disallow: /private/

  $ curl -s https://example.com/robots.txt | trapline robots check --file - --agent trapline --url /
  allowed: no rule matches

  $ trapline robots show --file robots.txt
  {\"item\":\"group\",\"group\":1,\"line\":1,\"agents\":[\"*\"]}
  {\"item\":\"rule\",\"group\":1,\"line\":2,\"rule\":\"disallow\",\"path\":\"/private/\"}")]
pub(crate) struct RobotsCommand {
    #[command(subcommand)]
    question: Question,
}

#[derive(Subcommand)]
enum Question {
    /// Whether an agent may fetch a URL, and which line says so
    ///
    /// The exit code is 0 if it may, 1 if it may not, and 2 if that cannot be told. The longest rule that matches decides, and
    /// Allow if two are equally long.
    Check(CheckArgs),
    /// All that was understood, one line of JSON an item
    ///
    /// Items are groups, rules, delays, sitemaps and faults, each with its line. Paths are shown as they are compared, with
    /// percent-encoding normalized. The exit code is 0 as long as the file could be read.
    Show(ShowArgs),
}

#[derive(Args)]
struct CheckArgs {
    /// The robots.txt; - for standard input
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// Who asks: a product token, such as trapline; a version behind it does not count
    #[arg(long, value_name = "NAME")]
    agent: String,
    /// The URL, or its path with its query
    #[arg(long, value_name = "URL")]
    url: String,
    /// Answer with one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct ShowArgs {
    /// The robots.txt; - for standard input
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
}

/// Answers.
pub(crate) fn run(command: &RobotsCommand) -> ExitCode {
    let ended = match &command.question {
        Question::Check(args) => check(args),
        Question::Show(args) => show(args),
    };
    ended::exit("robots", ended)
}

fn check(args: &CheckArgs) -> Result<Ended, String> {
    let robots = read(&args.file)?;
    let rules = robots.for_agent(&args.agent);
    let decision = if args.url.starts_with('/') {
        rules.check_path(&args.url)
    } else {
        let url = parse_url(&args.url, None).map_err(|error| {
            format!("`{}` is no URL: {error}\n  Write https://example.com/path, or only /path", args.url)
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("robots.txt is for http and https, and `{}` is neither", args.url));
        }
        rules.check(&url)
    };
    let mut output = Output::new(args.json);
    if args.json {
        output.object(&vec![
            ("allowed", json!(decision.allowed)),
            ("line", json!(decision.line.map(|line| line.number))),
            ("text", json!(decision.line.map(|line| line.to_string()))),
            ("because", json!(name_of(decision.because))),
            ("crawl_delay_seconds", json!(rules.crawl_delay().map(|delay| delay.as_secs_f64()))),
        ]);
    } else {
        output.say(&sentence(&decision));
    }
    output.finish()?;
    Ok(if decision.allowed { Ended::Well } else { Ended::WithComplaints })
}

fn sentence(decision: &Decision<'_>) -> String {
    let answer = if decision.allowed { "allowed" } else { "disallowed" };
    match (decision.line, decision.because) {
        (Some(line), _) => format!("{answer} by line {}: {line}", line.number),
        (None, Because::NoGroup) => format!("{answer}: no group is for this agent"),
        (None, Because::RobotsTxt) => format!("{answer}: it is robots.txt itself"),
        (None, Because::TooCostly) => format!("{answer}: this file takes too long to tell for this URL"),
        (None, _) => format!("{answer}: no rule matches"),
    }
}

fn name_of(because: Because) -> &'static str {
    match because {
        Because::Rule => "rule",
        Because::NoGroup => "no_group",
        Because::RobotsTxt => "robots_txt",
        Because::NoFile => "no_file",
        Because::Unreachable => "unreachable",
        Because::TooCostly => "too_costly",
        _ => "no_rule",
    }
}

fn show(args: &ShowArgs) -> Result<Ended, String> {
    let robots = read(&args.file)?;
    let mut output = Output::new(true);
    for (place, group) in robots.groups().enumerate() {
        show_group(place + 1, &group, &mut output);
    }
    for (line, url) in robots.sitemaps() {
        output.object(&vec![("item", json!("sitemap")), ("line", json!(line)), ("url", json!(url))]);
    }
    for fault in robots.faults() {
        output.object(&vec![
            ("item", json!("fault")),
            ("line", json!(fault.line)),
            ("fault", json!(fault.kind.name())),
            ("text", json!(fault.kind.to_string())),
        ]);
    }
    if robots.faults_left_off() > 0 {
        output.object(&vec![
            ("item", json!("fault")),
            ("line", Value::Null),
            ("fault", json!("left_off")),
            ("text", json!(format!("{} more", robots.faults_left_off()))),
        ]);
    }
    output.finish()?;
    Ok(Ended::Well)
}

fn show_group(number: usize, group: &RobotsGroup<'_>, output: &mut Output) {
    let names: Vec<_> = group.agents().map(|(_, name)| name).collect();
    output.object(&vec![
        ("item", json!("group")),
        ("group", json!(number)),
        ("line", json!(group.agents().next().map(|(line, _)| line))),
        ("agents", json!(names)),
    ]);
    for rule in group.rules() {
        output.object(&vec![
            ("item", json!("rule")),
            ("group", json!(number)),
            ("line", json!(rule.number)),
            ("rule", json!(if rule.allows { "allow" } else { "disallow" })),
            ("path", json!(rule.pattern)),
        ]);
    }
    for (line, agents, delay) in group.delays() {
        output.object(&vec![
            ("item", json!("delay")),
            ("group", json!(number)),
            ("line", json!(line)),
            ("seconds", json!(delay.as_secs_f64())),
            ("agents", json!(&names[..agents.min(names.len())])),
        ]);
    }
}

fn read(path: &Path) -> Result<Robots, String> {
    let mut bytes = Vec::new();
    // One byte more than counts, so that it is known that there is more.
    let most = ROBOTS_BYTES_MAX as u64 + 1;
    let done = if path == Path::new("-") {
        io::stdin().lock().take(most).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes))
    };
    match done {
        Ok(_) => Ok(Robots::parse(&bytes)),
        Err(error) => Err(format!(
            "cannot read {}: {error}\n  --file takes the path of a robots.txt, or - for standard input",
            path.display()
        )),
    }
}
