//! Some pages of each site: its sitemaps, its home page, what interests, the rest.

use std::sync::Arc;

use regex::Regex;
use trapline_core::{Request, parse_url};
use trapline_frontier::UrlState;
use url::Url;

use super::{After, ArgumentError, Arguments, FoundLink, Memory, Seeding, Seen, Strategy, Wish, site_of};
use crate::fetch::SITEMAP_HOP;
use crate::tally::Tally;

/// Looks at a few pages of each site, the best first, and leaves sites alone that are dead.
///
/// Sitemaps come first (0.9), then the home page (0.8), links that match an `interest` (0.7), and the rest (0.5). Of a site, `pages` are
/// queued at most and `sitemaps` read. Links to other sites are left out. A site whose name does not exist is given up at once, one
/// that has not answered `errors` times in a row, and never before, too.
#[derive(Debug)]
struct Discovery {
    pages: u64,
    sitemaps: u64,
    errors: u64,
    interest: Vec<Regex>,
}

const SITEMAP: f32 = 0.9;
const HOME: f32 = 0.8;
const INTEREST: f32 = 0.7;
const OTHER: f32 = 0.5;

/// Names in the memory of a site: pages and sitemaps that were queued, pages that came, errors in a row, why it is dead.
const PAGES: &str = "pages";
const SITEMAPS: &str = "sitemaps";
const CAME: &str = "came";
const ERRORS: &str = "errors";
const DEAD: &str = "dead";

pub(super) fn make(arguments: &mut Arguments) -> Result<Arc<dyn Strategy>, ArgumentError> {
    Ok(Arc::new(Discovery {
        pages: arguments.number("pages", 100)?,
        sitemaps: arguments.number("sitemaps", 100)?,
        errors: arguments.number("errors", 5)?,
        interest: arguments.patterns("interest")?,
    }))
}

impl Discovery {
    /// The score of a page by its URL.
    fn score(&self, url: &str) -> f32 {
        let is_home = parse_url(url, None).is_ok_and(|url| is_home(&url));
        if is_home {
            HOME
        } else if self.interest.iter().any(|pattern| pattern.is_match(url)) {
            INTEREST
        } else {
            OTHER
        }
    }

    /// What to make of a page or sitemap that nobody knew.
    fn new_one(&self, link: &Request, memory: &mut Memory) -> Wish {
        let (what, most, score) = match link.hop_path.ends_with(SITEMAP_HOP) {
            true => (SITEMAPS, self.sitemaps, SITEMAP),
            false => (PAGES, self.pages, self.score(&link.url)),
        };
        let count = memory.number(what);
        if count >= most {
            return Wish::Leave(format!("{most} {what} of this site are enough").into());
        }
        memory.set_number(what, count + 1);
        Wish::score(score)
    }
}

impl Strategy for Discovery {
    fn name(&self) -> &'static str {
        "discovery"
    }

    fn remembers(&self) -> bool {
        true
    }

    fn sees_states(&self) -> bool {
        true
    }

    fn seed(&self, seed: &Request, memory: &mut Memory) -> Seeding {
        // Named again, it gets another chance.
        memory.forget(DEAD);
        memory.forget(ERRORS);
        let Some(home) = parse_url(&seed.url, None).ok().and_then(|url| home_of(&url)) else {
            return Seeding::default();
        };
        let wish = Wish::score(self.score(&seed.url));
        let requests = if home.as_str() == seed.url {
            Vec::new()
        } else {
            vec![(Request { seed: seed.seed.clone(), ..Request::get(home) }, Wish::score(HOME))]
        };
        Seeding { wish, requests }
    }

    fn refuses(&self, _: &Request, memory: &Memory) -> Option<String> {
        memory.text(DEAD).map(|why| format!("its site is given up: {why}"))
    }

    fn leaves_out(&self, seen: &Seen<'_>, link: &Request) -> Option<String> {
        let host = |url: &Url| url.host_str().unwrap_or_default().to_owned();
        let here = host(seen.url);
        let there = parse_url(&link.url, None).map(|url| host(&url)).unwrap_or_default();
        // Where a site keeps its sitemaps, and where it has moved to, is its own business.
        let is_its_own = link.hop_path.ends_with([SITEMAP_HOP, 'R']);
        (!is_its_own && site_of(&here) != site_of(&there)).then(|| "another site".to_owned())
    }

    fn links(&self, _: &Seen<'_>, links: &[FoundLink<'_>], memory: &mut Memory) -> Vec<Wish> {
        // Where there is not room for all, the best are taken; among equals, the first.
        let mut best: Vec<usize> = (0..links.len()).collect();
        best.sort_by(|one, other| {
            let score = |place: &usize| self.score(&links[*place].request.url);
            score(other).total_cmp(&score(one))
        });
        let mut wishes = vec![Wish::Usual; links.len()];
        for place in best {
            if links[place].state == UrlState::Unknown {
                wishes[place] = self.new_one(links[place].request, memory);
            }
        }
        wishes
    }

    fn page(&self, _: &Seen<'_>, memory: &mut Memory) -> After {
        memory.set_number(CAME, memory.number(CAME) + 1);
        memory.forget(ERRORS);
        After::default()
    }

    fn error(&self, seen: &Seen<'_>, memory: &mut Memory) -> After {
        // A site that has answered once is not dead: it may have a dead host, or be busy.
        if seen.status.is_some() || memory.number(CAME) > 0 {
            return After::default();
        }
        let error = seen.error.unwrap_or("no answer");
        let errors = memory.number(ERRORS) + 1;
        memory.set_number(ERRORS, errors);
        let has_no_name = matches!(error, "dns_no_such_name" | "dns_no_address");
        if !has_no_name && errors < self.errors {
            return After::default();
        }
        memory.set(DEAD, error);
        After { give_up: Some(format!("its site is dead: {error}")), ..After::default() }
    }

    fn last_words(&self, so_far: &Tally) -> Option<String> {
        let answered = so_far.hosts.values().filter(|host| host.pages > 0).count();
        Some(format!("{answered} of {} hosts answered in this run", so_far.hosts.len()))
    }
}

fn is_home(url: &Url) -> bool {
    url.path() == "/" && url.query().is_none()
}

fn home_of(url: &Url) -> Option<Url> {
    parse_url("/", Some(url)).ok()
}
