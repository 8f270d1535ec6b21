//! By a list of rules that give scores.

use std::sync::Arc;

use regex::Regex;
use trapline_core::Request;

use super::arguments::short;
use super::{ArgumentError, Arguments, FoundLink, Memory, Seeding, Seen, Strategy, Wish, wrong};

/// Gives each URL a score between 0 and 1, higher first: `start`, then what each `rule` that fits says, in order, then `depth` for each
/// link from the seed. `floor` leaves out what has less.
#[derive(Debug)]
struct Score {
    start: f32,
    rules: Vec<Rule>,
    depth: f32,
    floor: f32,
}

/// `0.9 REGEX` sets the score of what matches, `+0.2 REGEX` and `-0.2 REGEX` change it.
#[derive(Debug)]
struct Rule {
    does: Does,
    pattern: Regex,
}

#[derive(Clone, Copy, Debug)]
enum Does {
    Set(f32),
    Add(f32),
}

pub(super) fn make(arguments: &mut Arguments) -> Result<Arc<dyn Strategy>, ArgumentError> {
    Ok(Arc::new(Score {
        start: share(arguments, "start", 0.5)?,
        rules: arguments.all("rule").iter().map(|text| rule(text)).collect::<Result<_, _>>()?,
        depth: share(arguments, "depth", 0.0)?,
        floor: share(arguments, "floor", 0.0)?,
    }))
}

fn share(arguments: &mut Arguments, name: &'static str, usual: f32) -> Result<f32, ArgumentError> {
    let number: f32 = arguments.number(name, usual)?;
    let fits = number.is_finite() && number.abs() <= 1.0;
    if fits { Ok(number) } else { Err(wrong(name, &number.to_string(), "it must lie between -1 and 1")) }
}

fn rule(text: &str) -> Result<Rule, ArgumentError> {
    let bad = |why: &str| wrong("rule", text, why);
    let (number, pattern) = text
        .trim()
        .split_once(' ')
        .ok_or_else(|| bad("write a score, a space and a regular expression, such as `+0.2 /news/`"))?;
    let amount: f32 = number.parse().map_err(|_| bad(&format!("`{number}` is no score")))?;
    if !amount.is_finite() || amount.abs() > 1.0 {
        return Err(bad("a score lies between 0 and 1, a change between -1 and +1"));
    }
    let does = if number.starts_with(['+', '-']) { Does::Add(amount) } else { Does::Set(amount) };
    let pattern = Regex::new(pattern.trim()).map_err(|error| bad(&short(&error)))?;
    Ok(Rule { does, pattern })
}

impl Score {
    fn of(&self, request: &Request) -> f32 {
        let mut score = self.start;
        for rule in self.rules.iter().filter(|rule| rule.pattern.is_match(&request.url)) {
            score = match rule.does {
                Does::Set(amount) => amount,
                Does::Add(amount) => score + amount,
            };
        }
        (score + self.depth * request.depth as f32).clamp(0.0, 1.0)
    }
}

impl Strategy for Score {
    fn name(&self) -> &'static str {
        "score"
    }

    fn seed(&self, seed: &Request, _: &mut Memory) -> Seeding {
        // Who names a seed wants it.
        Seeding { wish: Wish::score(self.of(seed)), ..Seeding::default() }
    }

    fn leaves_out(&self, _: &Seen<'_>, link: &Request) -> Option<String> {
        let score = self.of(link);
        (score < self.floor).then(|| format!("its score is {score:.2}, and less than {}", self.floor))
    }

    fn links(&self, _: &Seen<'_>, links: &[FoundLink<'_>], _: &mut Memory) -> Vec<Wish> {
        links.iter().map(|link| Wish::better(self.of(link.request))).collect()
    }
}
