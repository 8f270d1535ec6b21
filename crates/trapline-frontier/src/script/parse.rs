//! Reading trace scripts. Every mistake is answered with its line and what was expected there.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use trapline_core::{NO_BUDGET, Statement, Terms, Timestamp, parse_duration};

use super::{Admit, Claim, CrawlVerb, Script, Settle, SettleAs, Steering, Step, Verb};
use crate::settings::Settings;
use crate::verbs::Visit;

/// A script that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ScriptError {
    /// Where, counting from 1.
    pub line: usize,
    message: String,
}

type Read<T> = Result<T, String>;

/// Reads a script.
pub fn parse(text: &str) -> Result<Script, ScriptError> {
    let mut script = Script::default();
    let mut latest = Timestamp::ZERO;
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line_number = index + 1;
        let at_line = |message| ScriptError { line: line_number, message };
        let tokens = tokens(line).map_err(at_line)?;
        let Some(first) = tokens.first() else { continue };
        if first == "set" {
            read_setting(&tokens[1..], &mut script).map_err(at_line)?;
            continue;
        }
        let (words, expected) = match tokens.iter().position(|token| token == "->") {
            Some(arrow) => (&tokens[..arrow], Some(tokens[arrow + 1..].join(" "))),
            None => (&tokens[..], None),
        };
        let at = read_time(first).map_err(|_| {
            at_line(format!("expected a time such as 0, 250ms or 60s, or `set`, found `{first}`"))
        })?;
        if at < latest {
            return Err(at_line(format!(
                "expected a time not before {latest}, found `{first}`: times never go back"
            )));
        }
        latest = at;
        let verb = read_verb(&words[1..]).map_err(at_line)?;
        script.steps.push(Step { line: line_number, at, verb, expected });
    }
    Ok(script)
}

/// Splits at white space, up to a comment: a `#` at the start of the line or after a space. Double quotes at the start
/// of a word or after its `=` hold white space together; within them `\\` makes the next character stand for itself.
fn tokens(line: &str) -> Read<Vec<String>> {
    let mut tokens = Vec::new();
    let mut token: Option<String> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '#' if token.is_none() => break,
            '"' if token.as_ref().is_none_or(|token| token.ends_with('=')) => {
                let token = token.get_or_insert_default();
                loop {
                    match characters.next() {
                        Some('"') => break,
                        Some('\\') => token.extend(characters.next()),
                        Some(other) => token.push(other),
                        None => {
                            return Err(
                                "expected a closing quotation mark before the end of the line".to_owned()
                            );
                        }
                    }
                }
            }
            space if space.is_whitespace() => tokens.extend(token.take()),
            other => token.get_or_insert_default().push(other),
        }
    }
    tokens.extend(token);
    Ok(tokens)
}

fn read_setting(words: &[String], script: &mut Script) -> Read<()> {
    if !script.steps.is_empty() {
        return Err(
            "expected settings before the first step; later ones are `TIME crawl name=value`".to_owned()
        );
    }
    let [name, value] = words else {
        return Err("expected `set NAME VALUE`".to_owned());
    };
    Settings::default().set(name, value).map_err(|error| error.to_string())?;
    script.settings.push((name.clone(), value.clone()));
    Ok(())
}

const VERBS: &str = "admit, claim, settle, steer, crawl, dead, forget, url, page, queue, restart or crash";

fn read_verb(words: &[String]) -> Read<Verb> {
    let Some((verb, arguments)) = words.split_first() else {
        return Err(format!("expected a verb after the time: {VERBS}"));
    };
    let mut arguments = Arguments { rest: arguments };
    let verb = match verb.as_str() {
        "admit" => read_admit(&mut arguments)?,
        "claim" => read_claim(&mut arguments)?,
        "settle" => read_settle(&mut arguments)?,
        "steer" => read_steer(&mut arguments)?,
        "crawl" => read_crawl(&mut arguments)?,
        "dead" => match arguments.next("`replay URL` after `dead`")? {
            "replay" => Verb::DeadReplay(arguments.next("a URL after `dead replay`")?.to_owned()),
            other => return Err(format!("expected `replay URL` after `dead`, found `{other}`")),
        },
        "forget" => Verb::Forget(arguments.next("a URL after `forget`")?.to_owned()),
        "url" => Verb::Url(arguments.next("a URL after `url`")?.to_owned()),
        "page" => Verb::Page(arguments.next("a URL after `page`")?.to_owned()),
        "queue" => Verb::Queue(arguments.next("a queue key after `queue`")?.to_owned()),
        "restart" => Verb::Restart,
        "crash" => Verb::Crash,
        other => return Err(format!("expected a verb ({VERBS}), found `{other}`")),
    };
    match arguments.rest.first() {
        None => Ok(verb),
        Some(extra) => Err(format!("expected the end of the line or `->`, found `{extra}`")),
    }
}

/// The words after the verb, taken from the left.
struct Arguments<'a> {
    rest: &'a [String],
}

impl<'a> Arguments<'a> {
    fn next(&mut self, expected: &str) -> Read<&'a str> {
        let Some((first, rest)) = self.rest.split_first() else {
            return Err(format!("expected {expected}, found the end of the line"));
        };
        self.rest = rest;
        Ok(first)
    }

    /// The next `name=value`, or `name` with an empty value.
    fn option(&mut self) -> Option<(&'a str, &'a str)> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first.split_once('=').unwrap_or((first, "")))
    }
}

fn read_admit(arguments: &mut Arguments<'_>) -> Read<Verb> {
    let mut admit = Admit { url: arguments.next("a URL after `admit`")?.to_owned(), ..Admit::default() };
    while let Some((name, value)) = arguments.option() {
        match name {
            "class" => admit.class = Some(read_number(name, value)?),
            "cost" => admit.cost = Some(read_number(name, value)?),
            "priority" => admit.priority = Some(read_number(name, value)?),
            "score" => admit.score = Some(read_number(name, value)?),
            "depth" => admit.depth = read_number(name, value)?,
            "via" => admit.via = Some(read_text(name, value)?),
            "key" => admit.key = Some(read_text(name, value)?),
            "improve" => admit.improve = read_flag(name, value)?,
            "dont_filter" => admit.dont_filter = read_flag(name, value)?,
            "state" | "next" if admit.statement.is_some() => {
                return Err(format!("expected one of state=done and next=, found `{name}` as well"));
            }
            "state" if value == "done" => admit.statement = Some(Statement::Done),
            "state" => return Err(format!("expected `state=done`, found `state={value}`")),
            "next" => admit.statement = Some(Statement::Next(read_named_time(name, value)?)),
            _ => {
                if !read_term(&mut admit.terms, name, value)? {
                    return Err(format!(
                        "expected class=, cost=, priority=, score=, depth=, via=, key=, a term (group=, precedence=, \
                         queue_budget=, balance_replenish=, delay=, concurrency=), improve, dont_filter, state=done or \
                         next=, found `{name}`"
                    ));
                }
            }
        }
    }
    Ok(Verb::Admit(admit))
}

fn read_claim(arguments: &mut Arguments<'_>) -> Read<Verb> {
    let urls = arguments.next("how many URLs after `claim`")?;
    let urls = urls.parse().map_err(|_| format!("expected how many URLs after `claim`, found `{urls}`"))?;
    let mut claim = Claim { urls, ..Claim::default() };
    let keys = |value: &str| value.split(',').map(str::to_owned).collect::<Vec<_>>();
    while let Some((name, value)) = arguments.option() {
        match name {
            "per_queue" => claim.per_queue = Some(read_number(name, value)?),
            "queues" => claim.queues = Some(read_number(name, value)?),
            "min_queues" => claim.min_queues = Some(read_number(name, value)?),
            "keys" => claim.keys = Some(keys(&read_text(name, value)?)),
            "except" => claim.except = keys(&read_text(name, value)?),
            "lease" => claim.lease = Some(read_duration(name, value)?),
            _ => {
                return Err(format!(
                    "expected per_queue=, queues=, min_queues=, keys=, except= or lease=, found `{name}`"
                ));
            }
        }
    }
    Ok(Verb::Claim(claim))
}

fn read_settle(arguments: &mut Arguments<'_>) -> Read<Verb> {
    const OUTCOMES: &str = "done, retry, release, dead, disregard or renew";
    let url = arguments.next("a URL after `settle`")?.to_owned();
    let outcome = arguments.next(OUTCOMES)?;
    let (mut delay, mut links, mut lease) = (None, Vec::new(), None);
    let (mut next, mut at, mut reason, mut longer) = (None, None, None, None);
    let mut visit = Visit::default();
    while let Some((name, value)) = arguments.option() {
        match (name, outcome) {
            ("delay", _) => delay = Some(read_duration(name, value)?),
            ("links", _) => links = read_text(name, value)?.split(',').map(str::to_owned).collect(),
            ("lease", _) => lease = Some(read_number(name, value)?),
            ("next", "done") => next = Some(read_named_time(name, value)?),
            ("status", "done") => visit.status = read_number(name, value)?,
            ("bytes", "done") => visit.bytes = read_number(name, value)?,
            ("digest", "done") => visit.digest = Some(read_hex(name, value)?),
            ("simhash", "done") => visit.simhash = Some(read_number(name, value)?),
            ("etag", "done") => visit.etag = Some(value.to_owned()),
            ("last_modified", "done") => visit.last_modified = Some(value.to_owned()),
            ("at", "retry") => at = Some(read_named_time(name, value)?),
            ("reason", "dead") => reason = Some(read_text(name, value)?),
            ("for", "renew") => longer = Some(read_duration(name, value)?),
            _ => {
                let own = match outcome {
                    "done" => "next=, status=, bytes=, digest=, simhash=, etag=, last_modified=, ",
                    "retry" => "at=, ",
                    "dead" => "reason=, ",
                    "renew" => "for=, ",
                    _ => "",
                };
                return Err(format!(
                    "expected {own}delay=, links= or lease= after `{outcome}`, found `{name}`"
                ));
            }
        }
    }
    if lease == Some(0) {
        return Err("expected lease= to count from 1, found `0`".to_owned());
    }
    let outcome = match outcome {
        "done" => SettleAs::Done { visit, next },
        "retry" => SettleAs::Retry { at: at.ok_or("expected at=TIME after `retry`")? },
        "release" => SettleAs::Release,
        "dead" => SettleAs::Dead { reason: reason.ok_or("expected reason=TEXT after `dead`")? },
        "disregard" => SettleAs::Disregard,
        "renew" => SettleAs::Renew { lease: longer.ok_or("expected for=DURATION after `renew`")? },
        other => return Err(format!("expected {OUTCOMES} after the URL, found `{other}`")),
    };
    Ok(Verb::Settle(Settle { url, outcome, delay, links, lease }))
}

fn read_steer(arguments: &mut Arguments<'_>) -> Read<Verb> {
    const CHANGES: &str = "delay=, concurrency=, balance_replenish=, queue_budget=, precedence=, group=, retire, \
                           reinstate, block=TIME, unblock, purge or delete";
    let key = arguments.next("a queue key after `steer`")?.to_owned();
    let word = arguments.rest.first().ok_or_else(|| format!("expected {CHANGES} after the key"))?;
    let change = match word.split_once('=').unwrap_or((word, "")) {
        ("retire", "") => Steering::Retire,
        ("reinstate", "") => Steering::Reinstate,
        ("unblock", "") => Steering::Unblock,
        ("purge", "") => Steering::Purge,
        ("delete", "") => Steering::Delete,
        ("block", time) => Steering::Block(read_named_time("block", time)?),
        _ => {
            let mut terms = Terms::default();
            while let Some((name, value)) = arguments.option() {
                if !read_term(&mut terms, name, value)? {
                    return Err(format!("expected {CHANGES}, found `{name}`"));
                }
            }
            return Ok(Verb::Steer { key, change: Steering::Terms(terms) });
        }
    };
    arguments.rest = &arguments.rest[1..];
    Ok(Verb::Steer { key, change })
}

fn read_crawl(arguments: &mut Arguments<'_>) -> Read<Verb> {
    let verb = match arguments.rest.first().map(String::as_str) {
        None => return Ok(Verb::Crawl(CrawlVerb::Show)),
        Some("pause") => CrawlVerb::Pause,
        Some("resume") => CrawlVerb::Resume,
        Some("finish") => CrawlVerb::Finish,
        Some(_) => {
            let mut settings = Vec::new();
            while let Some((name, value)) = arguments.option() {
                if value.is_empty() {
                    return Err(format!(
                        "expected pause, resume, finish or name=value after `crawl`, found `{name}`"
                    ));
                }
                Settings::default().set(name, value).map_err(|error| error.to_string())?;
                settings.push((name.to_owned(), value.to_owned()));
            }
            return Ok(Verb::Crawl(CrawlVerb::Set(settings)));
        }
    };
    arguments.rest = &arguments.rest[1..];
    Ok(Verb::Crawl(verb))
}

/// Takes a term by its name; false if it is none.
fn read_term(terms: &mut Terms, name: &str, value: &str) -> Read<bool> {
    match name {
        "precedence" => terms.precedence = Some(read_number(name, value)?),
        "queue_budget" if value == "none" => terms.queue_budget = Some(NO_BUDGET),
        "queue_budget" => terms.queue_budget = Some(read_number(name, value)?),
        "balance_replenish" => terms.balance_replenish = Some(read_number(name, value)?),
        "delay" => terms.delay = Some(read_duration(name, value)?),
        "concurrency" => terms.concurrency = Some(read_number(name, value)?),
        "group" if value == "none" => terms.group = Some(Arc::from("")),
        "group" => terms.group = Some(Arc::from(read_text(name, value)?)),
        _ => return Ok(false),
    }
    Ok(true)
}

fn read_number<N: FromStr>(name: &str, value: &str) -> Read<N>
where
    N::Err: Display,
{
    value.parse().map_err(|error| format!("expected a number after `{name}=`, found `{value}` ({error})"))
}

fn read_text(name: &str, value: &str) -> Read<String> {
    if value.is_empty() { Err(format!("expected something after `{name}=`")) } else { Ok(value.to_owned()) }
}

fn read_hex(name: &str, value: &str) -> Read<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let digits: Option<Vec<u32>> = value.as_bytes().iter().map(digit).collect();
    let pairs = digits.filter(|digits| digits.len().is_multiple_of(2));
    let bytes =
        pairs.map(|digits| digits.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect());
    bytes.ok_or_else(|| {
        format!("expected an even number of hexadecimal digits after `{name}=`, found `{value}`")
    })
}

fn read_flag(name: &str, value: &str) -> Read<bool> {
    if value.is_empty() { Ok(true) } else { Err(format!("expected `{name}` alone, found `{name}={value}`")) }
}

fn read_duration(name: &str, value: &str) -> Read<Duration> {
    parse_duration(value)
        .map_err(|_| format!("expected a duration such as 250ms, 60s or 0 after `{name}=`, found `{value}`"))
}

fn read_time(value: &str) -> Read<Timestamp> {
    parse_duration(value).map(|since| Timestamp::ZERO + since).map_err(|error| error.to_string())
}

fn read_named_time(name: &str, value: &str) -> Read<Timestamp> {
    read_time(value)
        .map_err(|_| format!("expected a time such as 0, 250ms or 60s after `{name}=`, found `{value}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_and_written_alike() {
        let text = "\
set lease 60s # a comment
set balance_replenish 2

# the steps
0 admit http://a.example/1#not-a-comment -> added
0 admit http://a.example/2 class=200 cost=2 depth=1 via=http://a.example/1 key=k improve dont_filter group=g precedence=1 -> known
0 admit http://a.example/3 state=done -> restated
0 admit http://a.example/4 next=5m -> restated
0 claim 2 per_queue=1 queues=3 min_queues=2 keys=a.example,b.example except=c.example lease=30s ->
250ms settle http://a.example/1 done next=3d delay=1s links=http://b.example/x,http://c.example/ lease=1 -> done
1s settle http://a.example/1 done next=9s status=200 bytes=1234 digest=00ff7a simhash=7 etag=\"a b\" last_modified=yesterday
1s settle http://a.example/1 retry at=5s
1s settle http://a.example/1 release
1s settle http://a.example/1 dead reason=\"no such host\"
1s settle http://a.example/1 disregard
1s settle http://a.example/1 renew for=90s
2s steer a.example delay=1s concurrency=2 balance_replenish=5 queue_budget=none precedence=0 group=none -> ok
2s steer a.example retire
2s steer a.example block=2h
2s crawl pause -> ok
2s crawl delay=5s queue_budget=3
2s crawl -> state=running exhausted=no
2s dead replay http://a.example/1
2s forget http://a.example/1
2s url http://a.example/1 -> unknown
2s page http://a.example/1 -> visits=2 changes=1
2s queue a.example:8080 -> state=ready pending=1 spent=1
3s restart
3s crash
";
        let script = parse(text).unwrap();
        assert_eq!(script.steps.len(), 25);
        let written = script.to_string();
        let again = parse(&written).unwrap();
        assert_eq!(again.to_string(), written);
        let without_lines = |script: &Script| {
            script.steps.iter().map(|step| Step { line: 0, ..step.clone() }).collect::<Vec<_>>()
        };
        assert_eq!(without_lines(&again), without_lines(&script));
        assert_eq!(again.settings, script.settings);
    }

    #[test]
    fn words_with_spaces_and_quotes_survive_writing_and_reading() {
        for text in ["a b", "#x", "say \"hi\" # no comment", "back\\slash \"", " ", "it's"] {
            let admit = Admit { url: "http://a/".to_owned(), key: Some(text.to_owned()), ..Admit::default() };
            let steps = [Verb::Admit(admit), Verb::Queue(text.to_owned()), Verb::Forget(text.to_owned())];
            for verb in steps {
                let step = Step { line: 1, at: Timestamp::ZERO, verb, expected: None };
                let written = step.to_string();
                assert_eq!(parse(&written).unwrap().steps, [step], "{written}");
            }
        }
        assert_eq!(
            parse("\u{feff}0 url http://a/\"b\"").unwrap().steps[0].verb,
            Verb::Url("http://a/\"b\"".to_owned())
        );
    }

    #[test]
    fn mistakes_name_their_line_and_what_was_expected() {
        for (text, message) in [
            ("hello", "line 1: expected a time such as 0, 250ms or 60s, or `set`, found `hello`"),
            (
                "\n\n0 admti http://a/",
                "line 3: expected a verb (admit, claim, settle, steer, crawl, dead, forget, url, page, queue, restart or crash), found `admti`",
            ),
            (
                "0",
                "line 1: expected a verb after the time: admit, claim, settle, steer, crawl, dead, forget, url, page, queue, restart or crash",
            ),
            (
                "5s claim 1\n4s claim 1",
                "line 2: expected a time not before 5s, found `4s`: times never go back",
            ),
            ("0 claim many", "line 1: expected how many URLs after `claim`, found `many`"),
            ("0 claim", "line 1: expected how many URLs after `claim`, found the end of the line"),
            ("0 admit", "line 1: expected a URL after `admit`, found the end of the line"),
            (
                "0 admit http://a/ class=999",
                "line 1: expected a number after `class=`, found `999` (number too large to fit in target type)",
            ),
            (
                "0 admit http://a/ colour=red",
                "line 1: expected class=, cost=, priority=, score=, depth=, via=, key=, a term (group=, precedence=, queue_budget=, balance_replenish=, delay=, concurrency=), improve, dont_filter, state=done or next=, found `colour`",
            ),
            (
                "0 settle http://a/ gone",
                "line 1: expected done, retry, release, dead, disregard or renew after the URL, found `gone`",
            ),
            ("0 settle http://a/ retry", "line 1: expected at=TIME after `retry`"),
            (
                "0 settle http://a/ done at=5s",
                "line 1: expected next=, status=, bytes=, digest=, simhash=, etag=, last_modified=, delay=, links= or lease= after `done`, found `at`",
            ),
            (
                "0 settle http://a/ done digest=abc",
                "line 1: expected an even number of hexadecimal digits after `digest=`, found `abc`",
            ),
            (
                "0 settle http://a/ retry at=1s bytes=5",
                "line 1: expected at=, delay=, links= or lease= after `retry`, found `bytes`",
            ),
            ("0 settle http://a/ done lease=0", "line 1: expected lease= to count from 1, found `0`"),
            (
                "0 steer a",
                "line 1: expected delay=, concurrency=, balance_replenish=, queue_budget=, precedence=, group=, retire, reinstate, block=TIME, unblock, purge or delete after the key",
            ),
            (
                "0 steer a block=soon",
                "line 1: expected a time such as 0, 250ms or 60s after `block=`, found `soon`",
            ),
            (
                "0 crawl stop",
                "line 1: expected pause, resume, finish or name=value after `crawl`, found `stop`",
            ),
            ("0 crawl dealy=1s", "line 1: there is no setting `dealy`; did you mean `delay`?"),
            ("set lease", "line 1: expected `set NAME VALUE`"),
            ("set order sideways", "line 1: `order` cannot be `sideways`: write one of fifo, lifo, date"),
            (
                "0 claim 1\nset lease 5s",
                "line 2: expected settings before the first step; later ones are `TIME crawl name=value`",
            ),
            ("0 url http://a/ http://b/", "line 1: expected the end of the line or `->`, found `http://b/`"),
            (
                "0 settle http://a/ dead reason=\"never",
                "line 1: expected a closing quotation mark before the end of the line",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), message, "{text}");
        }
    }
}
