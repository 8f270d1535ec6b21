//! What the rules of a crawl say to a URL, as it is told.

use serde_json::{Value, json};
use trapline_core::Request;
use trapline_crawl::Foreseen;
use trapline_crawl::candidate::{Origin, Prospect};
use trapline_crawl::ports::RobotsWord;
use trapline_extract::LinkKind;

use crate::moment;

/// A URL that the frontier knows as it came to the crawl, as far as its way tells.
pub(super) fn prospect(request: &Request) -> Option<Prospect> {
    let link = |kind| Origin::Link { kind, nofollow: false };
    let origin = match request.hop_path.chars().next_back() {
        None if request.depth == 0 => Origin::Seed,
        Some('E') => link(LinkKind::Embed),
        Some('R') => Origin::Redirect,
        Some('P') => Origin::Sitemap,
        Some('M') => Origin::SitemapEntry,
        Some('I') => Origin::Strategy,
        _ => link(LinkKind::Navigation),
    };
    Prospect::new(request.clone(), origin)
}

/// What each rule of the scope says: the last that has an opinion decides. A seed makes the scope, and is not asked about.
pub(super) fn scope(foreseen: &Foreseen, origin: Origin) -> Value {
    let votes: Vec<_> = foreseen
        .votes
        .iter()
        .map(|vote| json!({"rule": &*vote.rule, "vote": vote_word(vote.accepts)}))
        .collect();
    let last = foreseen.votes.iter().rfind(|vote| vote.accepts.is_some());
    json!({
        "in_scope": origin == Origin::Seed || last.is_some_and(|vote| vote.accepts == Some(true)),
        "because": match last {
            _ if origin == Origin::Seed => "it is a seed, and seeds make the scope".to_owned(),
            Some(vote) => vote.rule.to_string(),
            None => "no rule has an opinion".to_owned(),
        },
        "votes": votes,
    })
}

fn vote_word(accepts: Option<bool>) -> &'static str {
    match accepts {
        Some(true) => "accept",
        Some(false) => "reject",
        None => "no opinion",
    }
}

/// What each rule of the candidate chain says: the first that drops it decides.
pub(super) fn rules(foreseen: &Foreseen) -> Value {
    let rules = foreseen.rules.iter().map(|(name, dropped)| match dropped {
        None => json!({"rule": name, "vote": "keep"}),
        Some(dropped) => json!({"rule": name, "vote": "drop", "detail": dropped.detail}),
    });
    rules.collect()
}

/// What robots.txt says.
pub(super) enum RobotsSay {
    /// The crawl does not ask.
    Ignored,
    /// It is not known at present.
    Unknown,
    Known(RobotsWord),
}

impl RobotsSay {
    pub(super) fn json(&self) -> Value {
        match self {
            Self::Ignored => json!({"asked": false, "verdict": "not asked: the configuration says so"}),
            Self::Unknown => {
                json!({"asked": true, "verdict": "not known at present: it is fetched before the next visit"})
            }
            Self::Known(word) => json!({
                "asked": true,
                "verdict": if word.unreachable_until.is_some() {
                    "cannot be had"
                } else if word.allowed {
                    "allowed"
                } else {
                    "disallowed"
                },
                "line": word.line.as_deref().unwrap_or("no rule matches"),
                "crawl_delay": word.crawl_delay.map(trapline_core::format_duration),
                "trouble": word.trouble,
                "asked_again": word.unreachable_until.map(moment::write),
                "fetched": moment::write(word.fetched),
            }),
        }
    }

    /// Why it would not be fetched.
    pub(super) fn refusal(&self) -> Option<String> {
        match self {
            Self::Known(word) if word.unreachable_until.is_none() && !word.allowed => {
                Some(word.line.clone().unwrap_or_default())
            }
            _ => None,
        }
    }
}
