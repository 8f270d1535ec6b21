//! From a run that went wrong to the smallest trace on which the same still does.

use trapline_frontier::script::{self, Script, Step, Verb, Verdict, shrink};

use super::Run;
use super::act::Act;
use super::rig::Rig;
use super::scene::read_settings;
use crate::oracle::{Breach, Rule};
use crate::stores::Stores;

/// A small trace on which something goes wrong at the last line.
#[derive(Clone, Debug)]
pub struct Find {
    /// The trace, with what came back; its last line with what should have, where a trace can show that.
    pub script: Script,
    /// On how many partitions it goes wrong; a trace is replayed on one.
    pub partitions: u32,
    /// What goes wrong.
    pub breach: Breach,
}

/// What a smaller script must still show.
#[derive(Clone, Copy)]
struct Wanted {
    /// The rule that is broken; None for any.
    rule: Option<Rule>,
    /// It is known what should have come back.
    is_answered: bool,
    /// Everything is audited after each line: that finds more, and often something else.
    audits: bool,
}

/// Shrinks a run that went wrong, best to a trace for one partition that breaks the same rule and knows what should have
/// come back; if there is none, to the next best. None if its lines, one by one, do not show it.
pub(super) fn shrink_to_find(run: &Run, breach: &Breach, stores: &dyn Stores) -> Option<Find> {
    // Two histories that differ are no history that shows it.
    if breach.rule == Rule::N10 {
        return None;
    }
    let mut partitions = vec![1, run.partitions];
    partitions.dedup();
    let rule = Some(breach.rule.shown_as());
    let wanted = [(rule, true), (rule, false), (None, true), (None, false)];
    let wanted = wanted
        .into_iter()
        .flat_map(|(rule, is_answered)| [false, true].map(|audits| Wanted { rule, is_answered, audits }));
    let wanted: Vec<Wanted> = wanted.collect();
    // The same rule on several partitions is better than another on one.
    let (same, other) = wanted.split_at(wanted.len() / 2);
    [same, other].into_iter().find_map(|wanted| {
        let tried = partitions.iter().flat_map(|count| wanted.iter().map(|wanted| (*count, *wanted)));
        tried.into_iter().find_map(|(partitions, wanted)| find(run, partitions, wanted, stores))
    })
}

fn find(run: &Run, partitions: u32, wanted: Wanted, stores: &dyn Stores) -> Option<Find> {
    let wrong = |script: &Script| Trial::play(script, partitions, wanted, stores).wrong.map(|(step, _)| step);
    wrong(&run.history)?;
    let unnumbered = Some(unnumbered(&run.history)).filter(|script| wrong(script).is_some());
    let script = shrink(unnumbered.unwrap_or_else(|| run.history.clone()), wrong);
    let Trial { answers, wrong } = Trial::play(&script, partitions, wanted, stores);
    let (last, breach) = wrong?;
    let script = with_answers(&script, answers, last, &breach);
    let shown = Find { script, partitions, breach };
    Some(if partitions > 1 || shown.is_shown(stores) { shown } else { shown.without_answer(last) })
}

impl Find {
    /// Whether playing the trace shows that its last line is wrong.
    fn is_shown(&self, stores: &dyn Stores) -> bool {
        let Ok(opened) = stores.open() else { return false };
        let mut last = Verdict::NotCompared;
        let played =
            script::run(&self.script, opened.store, opened.reopen, |_, _, verdict| last = verdict.clone());
        pollster::block_on(played).is_ok() && last == Verdict::Different
    }

    /// The trace up to a line, which expects nothing: it cannot show what is wrong.
    fn without_answer(mut self, last: usize) -> Self {
        self.script.steps.truncate(last + 1);
        if let Some(step) = self.script.steps.last_mut() {
            step.expected = None;
        }
        self
    }
}

/// A script played line by line.
struct Trial {
    answers: Vec<String>,
    /// What was wanted, and where.
    wrong: Option<(usize, Breach)>,
}

impl Trial {
    fn play(script: &Script, partitions: u32, wanted: Wanted, stores: &dyn Stores) -> Self {
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
                    if wanted.audits { rig.audit(step.at).err() } else { None }
                }
                Err(breach) => Some(breach),
            };
            if let Some(breach) = wrong {
                let is_wanted = wanted.rule.is_none_or(|rule| rule == breach.rule)
                    && (!wanted.is_answered || breach.expected.is_some());
                trial.wrong = is_wanted.then_some((index, breach));
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
    let now = steps.last().map(|step| step.at).unwrap_or_default();
    match &breach.line {
        Some(verb) => {
            let line = steps.len() + 1;
            let at = breach.at.unwrap_or(now).max(now);
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

/// Settlements of the newest lease of a URL do not name it: then they mean the same lease when earlier claims are gone.
fn unnumbered(script: &Script) -> Script {
    let mut script = script.clone();
    let mut granted: Vec<&str> = Vec::new();
    for step in &mut script.steps {
        match &mut step.verb {
            Verb::Claim(_) => granted.extend(step.expected.as_deref().unwrap_or_default().split_whitespace()),
            Verb::Settle(settle) => {
                let newest = granted.iter().rposition(|url| **url == settle.url);
                settle.lease = settle.lease.filter(|lease| newest.map(|newest| newest + 1) != Some(*lease));
            }
            _ => {}
        }
    }
    script
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
