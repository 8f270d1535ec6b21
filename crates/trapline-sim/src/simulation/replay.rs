//! From a run that went wrong to the smallest trace on which something still does.

use trapline_frontier::script::{Script, Step, Verb, shrink};

use super::Run;
use super::act::Act;
use super::rig::Rig;
use super::scene::read_settings;
use crate::oracle::Breach;
use crate::stores::Stores;

/// A small trace on which something goes wrong at the last line.
#[derive(Clone, Debug)]
pub struct Find {
    /// The trace, with what came back; its last line with what should have, where that is known.
    pub script: Script,
    /// On how many partitions it goes wrong; a trace is replayed on one.
    pub partitions: u32,
    /// What goes wrong.
    pub breach: Breach,
}

/// Shrinks a run that went wrong: to a trace for one partition if it goes wrong there too. None if its lines, one by one,
/// do not show it.
pub(super) fn shrink_to_find(run: &Run, stores: &dyn Stores) -> Option<Find> {
    let mut tried = vec![1, run.partitions];
    tried.dedup();
    tried.into_iter().find_map(|partitions| {
        let wrong = |script: &Script| Trial::play(script, partitions, stores).wrong.map(|(step, _)| step);
        wrong(&run.history)?;
        let script = shrink(run.history.clone(), wrong);
        let Trial { answers, wrong } = Trial::play(&script, partitions, stores);
        let (last, breach) = wrong?;
        Some(Find { script: with_answers(&script, answers, last, &breach), partitions, breach })
    })
}

/// A script played line by line, everything audited after each.
struct Trial {
    answers: Vec<String>,
    wrong: Option<(usize, Breach)>,
}

impl Trial {
    fn play(script: &Script, partitions: u32, stores: &dyn Stores) -> Self {
        let mut trial = Self { answers: Vec::new(), wrong: None };
        let Ok(mut rig) = Rig::new(stores, &read_settings(&script.settings), partitions) else {
            return trial;
        };
        for (index, step) in script.steps.iter().enumerate() {
            if matches!(step.verb, Verb::Restart | Verb::Crash) && !rig.can_restart() {
                return trial;
            }
            let played = rig.play(&Act::new(step.at, step.verb.clone()));
            let wrong = match played {
                Ok(answers) => {
                    trial.answers.extend(answers.texts);
                    rig.audit(step.at).err()
                }
                Err(breach) => Some(breach),
            };
            if let Some(breach) = wrong {
                trial.wrong = Some((index, breach));
                break;
            }
        }
        trial
    }
}

/// The script up to where it goes wrong, with the answers it got and in its last line the one it should have got.
fn with_answers(script: &Script, answers: Vec<String>, last: usize, breach: &Breach) -> Script {
    let steps = script.steps.iter().take(last + 1).enumerate();
    let mut answers = answers.into_iter();
    let mut steps: Vec<Step> = steps
        .map(|(index, step)| Step { line: index + 1, expected: answers.next(), ..step.clone() })
        .collect();
    name_urls(&mut steps);
    let at = steps.last().map(|step| step.at).unwrap_or_default();
    match &breach.line {
        Some(verb) => {
            let line = steps.len() + 1;
            steps.push(Step { line, at, verb: (**verb).clone(), expected: breach.expected.clone() });
        }
        None => {
            if let Some(step) = steps.last_mut() {
                step.expected.clone_from(&breach.expected);
            }
        }
    }
    Script { settings: script.settings.clone(), steps }
}

/// Settlements that name a lease by its number are written with the URL of that lease, whatever they began as.
fn name_urls(steps: &mut [Step]) {
    let mut granted: Vec<String> = Vec::new();
    for step in steps {
        match &mut step.verb {
            Verb::Claim(_) => {
                let urls = step.expected.as_deref().unwrap_or_default();
                granted.extend(urls.split_whitespace().map(str::to_owned));
            }
            Verb::Settle(settle) => {
                let number = settle.lease.and_then(|lease| lease.checked_sub(1));
                if let Some(url) = number.and_then(|number| granted.get(number)) {
                    settle.url.clone_from(url);
                }
            }
            _ => {}
        }
    }
}
