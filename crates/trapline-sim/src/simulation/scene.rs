//! The scene of a run, drawn from its seed: which web, which settings, how many workers, how much of which trouble.

use trapline_frontier::Settings;

use super::SimPlan;
use crate::faults::Trouble;
use crate::random::Random;
use crate::web::{Web, WebSize};

/// What a seed stands for.
pub(super) struct Scene {
    pub(super) web: Web,
    /// By name, as a script has them.
    pub(super) settings: Vec<(String, String)>,
    pub(super) partitions: u32,
    pub(super) workers: u32,
    /// Out of a hundred occasions, by fault.
    rates: [u64; Trouble::ALL.len()],
    /// Out of a hundred pages, how many are to be visited again.
    pub(super) revisits: u64,
    /// Out of a hundred visits, how many are recorded.
    pub(super) records: u64,
    /// Out of a hundred candidates, how many come with wishes of their own.
    pub(super) wishes: u64,
}

/// Values that settings may have, at the start or later; `order` only at the start. What ends or stifles a crawl is drawn
/// less often.
const SETTINGS: [(&str, u64, &[&str]); 20] = [
    ("order", 40, &["fifo", "lifo", "date"]),
    ("lease", 90, &["1s", "2s", "5s", "10s", "60s"]),
    ("delay", 60, &["0", "0", "250ms", "1s", "3s"]),
    ("concurrency", 40, &["0", "1", "2", "2", "3"]),
    ("pace", 30, &["settle", "claim"]),
    ("hold_queues", 25, &["true", "false"]),
    ("balance_replenish", 50, &["1", "2", "3", "5", "3000"]),
    ("queue_budget", 30, &["none", "3", "5", "10", "25"]),
    ("queue_budget_period", 20, &["none", "5s", "30s", "10m"]),
    ("cost", 40, &["zero", "unit", "wag"]),
    ("class", 40, &["priority", "score", "depth", "depth_first", "cost"]),
    ("error_penalty", 25, &["0", "1", "2"]),
    ("max_deliveries", 40, &["0", "1", "2", "3"]),
    ("pause_at_finish", 5, &["true", "false"]),
    ("max_urls", 4, &["none", "10", "40"]),
    ("max_bytes", 4, &["none", "100000", "500000"]),
    ("max_time", 4, &["none", "60s", "5m"]),
    ("max_depth", 15, &["none", "1", "2", "4", "8"]),
    ("max_queue_length", 10, &["none", "2", "5", "20"]),
    ("admission", 3, &["open", "open", "blocked"]),
];

/// Hosts whose queues are all in one partition are the common case, so that order can be judged.
const PARTITIONS: [u32; 8] = [1, 1, 1, 1, 1, 2, 4, 256];

impl Scene {
    pub(super) fn draw(plan: &SimPlan) -> Self {
        const SCENE: u64 = 11;
        let mut random = Random::of(&[plan.seed, SCENE]);
        let hosts = random.number(1..9);
        let pages = hosts + random.number(4..80);
        let web = Web::wild(plan.seed, WebSize { hosts, pages });
        // Some crawls have few settings of their own, others many.
        let share = *random.choose(&[20, 60, 100]);
        let settings = SETTINGS
            .iter()
            .filter_map(|(name, odds, values)| {
                let chosen = random.chance(odds * share, 10_000);
                chosen.then(|| ((*name).to_owned(), (*random.choose(values)).to_owned()))
            })
            .filter(|(name, _)| name != "admission")
            .collect();
        let rates = Trouble::ALL.map(|fault| {
            let rate = *random.choose(&[0, 2, 5, 15, 40]);
            if plan.faults.has(fault) { rate } else { 0 }
        });
        Self {
            web,
            settings,
            partitions: *random.choose(&PARTITIONS),
            workers: random.number(1..7),
            rates,
            revisits: *random.choose(&[0, 10, 30, 60]),
            records: *random.choose(&[0, 60, 100]),
            wishes: *random.choose(&[0, 10, 40]),
        }
    }

    /// The settings as a value.
    pub(super) fn crawl_settings(&self) -> Settings {
        read_settings(&self.settings)
    }

    /// Whether a fault happens on this occasion.
    pub(super) fn strikes(&self, fault: Trouble, random: &mut Random) -> bool {
        let rate = self.rates[fault as usize];
        rate > 0 && random.chance(rate, 100)
    }

    /// How often a fault happens, out of a hundred.
    pub(super) fn rate(&self, fault: Trouble) -> u64 {
        self.rates[fault as usize]
    }
}

/// Settings from their names and values.
///
/// # Panics
/// If one cannot be read: they were drawn here, or played before.
pub(super) fn read_settings(named: &[(String, String)]) -> Settings {
    let mut settings = Settings::default();
    for (name, value) in named {
        settings.set(name, value).expect("a setting that can be read");
    }
    settings
}

/// A setting that an operator may change while the crawl goes on.
pub(super) fn some_setting(random: &mut Random) -> (String, String) {
    loop {
        let (name, odds, values) = random.choose(&SETTINGS);
        if *name != "order" && random.chance(*odds, 60) {
            return ((*name).to_owned(), (*random.choose(values)).to_owned());
        }
    }
}
