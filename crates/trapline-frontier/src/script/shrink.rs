//! From a script on which something goes wrong to a small one on which it still does.
//!
//! It knows nothing of frontiers: it leaves out settings, steps and options as long as the trouble stays.

use trapline_core::{NO_BUDGET, Terms, Timestamp};

use super::{Admit, Claim, CrawlVerb, Script, Settle, SettleAs, Steering, Step, Verb};
use crate::verbs::Visit;

/// The smallest script found for which `differs` still answers where: the index of the first step that goes wrong.
pub fn shrink(script: Script, differs: impl Fn(&Script) -> Option<usize>) -> Script {
    let mut smallest = script;
    let attempt = |smallest: &mut Script, mut smaller: Script| {
        let Some(step) = differs(&smaller) else { return false };
        smaller.steps.truncate(step + 1);
        *smallest = smaller;
        true
    };
    let whole = smallest.clone();
    attempt(&mut smallest, whole);
    loop {
        let before = smallest.clone();
        let mut chunk = smallest.steps.len().div_ceil(2);
        while chunk > 0 {
            // From the end, where a step is least likely to be needed by others.
            let mut end = smallest.steps.len();
            while end > 0 {
                let start = end.saturating_sub(chunk);
                let mut smaller = smallest.clone();
                smaller.steps.drain(start..end);
                attempt(&mut smallest, smaller);
                end = start.min(smallest.steps.len());
            }
            chunk /= 2;
        }
        for index in (0..smallest.settings.len()).rev() {
            let mut smaller = smallest.clone();
            smaller.settings.remove(index);
            attempt(&mut smallest, smaller);
        }
        for index in 0..smallest.settings.len() {
            for value in smaller_value(&smallest.settings[index].1) {
                let mut smaller = smallest.clone();
                smaller.settings[index].1 = value;
                if attempt(&mut smallest, smaller) {
                    break;
                }
            }
        }
        for index in (0..smallest.steps.len()).rev() {
            let mut simpler_exists = true;
            while simpler_exists && index < smallest.steps.len() {
                simpler_exists = simpler(&smallest.steps, index).into_iter().any(|step| {
                    let mut smaller = smallest.clone();
                    smaller.steps[index] = step;
                    smaller != smallest && attempt(&mut smallest, smaller)
                });
            }
        }
        if smallest == before {
            return smallest;
        }
    }
}

/// The step with one thing less, in every way there is.
fn simpler(steps: &[Step], index: usize) -> Vec<Step> {
    let step = &steps[index];
    let mut simpler: Vec<_> =
        simpler_verbs(&step.verb).into_iter().map(|verb| Step { verb, ..step.clone() }).collect();
    let earlier = index.checked_sub(1).map_or(Timestamp::ZERO, |before| steps[before].at);
    if earlier < step.at {
        simpler.push(Step { at: earlier, ..step.clone() });
    }
    simpler
}

fn simpler_verbs(verb: &Verb) -> Vec<Verb> {
    match verb {
        Verb::Admit(admit) => {
            let mut verbs = vec![
                Admit { class: None, ..admit.clone() },
                Admit { cost: None, ..admit.clone() },
                Admit { priority: None, ..admit.clone() },
                Admit { score: None, ..admit.clone() },
                Admit { depth: 0, ..admit.clone() },
                Admit { via: None, ..admit.clone() },
                Admit { key: None, ..admit.clone() },
                Admit { improve: false, ..admit.clone() },
                Admit { dont_filter: false, ..admit.clone() },
                Admit { statement: None, ..admit.clone() },
            ];
            verbs.extend(simpler_terms(&admit.terms).map(|terms| Admit { terms, ..admit.clone() }));
            verbs.retain(|simpler| simpler != admit);
            verbs.into_iter().map(Verb::Admit).collect()
        }
        Verb::Claim(claim) => {
            let mut verbs = vec![
                Claim { per_queue: None, ..claim.clone() },
                Claim { queues: None, ..claim.clone() },
                Claim { min_queues: None, ..claim.clone() },
                Claim { keys: None, ..claim.clone() },
                Claim { except: Vec::new(), ..claim.clone() },
                Claim { lease: None, ..claim.clone() },
            ];
            if claim.urls > 1 {
                verbs.push(Claim { urls: claim.urls - 1, ..claim.clone() });
            }
            verbs.retain(|simpler| simpler != claim);
            verbs.into_iter().map(Verb::Claim).collect()
        }
        Verb::Settle(settle) => {
            let mut verbs =
                vec![Settle { delay: None, ..settle.clone() }, Settle { lease: None, ..settle.clone() }];
            // An earlier lease, which needs fewer claims.
            if let Some(lease) = settle.lease {
                let earlier =
                    [1, lease / 2, lease - 1].into_iter().filter(|earlier| (1..lease).contains(earlier));
                verbs.extend(earlier.map(|earlier| Settle { lease: Some(earlier), ..settle.clone() }));
            }
            if let SettleAs::Done { visit, next } = &settle.outcome {
                let done =
                    |visit: Visit, next| Settle { outcome: SettleAs::Done { visit, next }, ..settle.clone() };
                verbs.push(done(Visit::default(), *next));
                verbs.push(done(visit.clone(), None));
                verbs.push(done(
                    Visit { status: 0, etag: None, last_modified: None, simhash: None, ..visit.clone() },
                    *next,
                ));
                verbs.push(done(Visit { digest: None, ..visit.clone() }, *next));
                verbs.push(done(Visit { bytes: 0, ..visit.clone() }, *next));
            }
            for link in 0..settle.links.len() {
                let mut links = settle.links.clone();
                links.remove(link);
                verbs.push(Settle { links, ..settle.clone() });
            }
            verbs.retain(|simpler| simpler != settle);
            verbs.into_iter().map(Verb::Settle).collect()
        }
        Verb::Steer { key, change: Steering::Terms(terms) } => simpler_terms(terms)
            .filter(|terms| *terms != Terms::default())
            .map(|terms| Verb::Steer { key: key.clone(), change: Steering::Terms(terms) })
            .collect(),
        Verb::Crawl(CrawlVerb::Set(settings)) => {
            let mut simpler = Vec::new();
            for index in 0..settings.len() {
                let mut fewer = settings.clone();
                let (name, value) = fewer.remove(index);
                for value in smaller_value(&value) {
                    let mut smaller = settings.clone();
                    smaller[index] = (name.clone(), value);
                    simpler.push(smaller);
                }
                simpler.push(fewer);
            }
            simpler.retain(|settings| !settings.is_empty());
            simpler.into_iter().map(|settings| Verb::Crawl(CrawlVerb::Set(settings))).collect()
        }
        _ => Vec::new(),
    }
}

fn simpler_terms(terms: &Terms) -> impl Iterator<Item = Terms> {
    let all = terms.clone();
    let budgets =
        terms.queue_budget.into_iter().filter(|budget| *budget != NO_BUDGET).flat_map(smaller_number);
    let replenishes = terms.balance_replenish.into_iter().flat_map(smaller_number);
    let mut smaller: Vec<Terms> = budgets.map(|n| Terms { queue_budget: Some(n), ..all.clone() }).collect();
    smaller.extend(replenishes.map(|n| Terms { balance_replenish: Some(n), ..all.clone() }));
    let fewer = [
        Terms { precedence: None, ..all.clone() },
        Terms { queue_budget: None, ..all.clone() },
        Terms { balance_replenish: None, ..all.clone() },
        Terms { delay: None, ..all.clone() },
        Terms { concurrency: None, ..all.clone() },
        Terms { group: None, ..all.clone() },
    ];
    fewer.into_iter().chain(smaller).filter(move |fewer| *fewer != all)
}

/// Smaller values of a setting, if it is a number: what is counted to is reached sooner.
fn smaller_value(value: &str) -> impl Iterator<Item = String> + use<> {
    value.parse().into_iter().flat_map(smaller_number).map(|smaller| smaller.to_string())
}

fn smaller_number(number: u64) -> impl Iterator<Item = u64> {
    [1, number / 2, number.saturating_sub(1)].into_iter().filter(move |smaller| (1..number).contains(smaller))
}
