//! Random scripts for the model test: few hosts, few URLs and few durations, so that collisions and coincidences
//! are the rule.
//!
//! A script is made while the model plays it, so that settlements can name leases that were really granted and
//! times can fall exactly on what is due. The same seed makes the same script.

use std::sync::Arc;
use std::time::Duration;

use crate::script::{Admit, Claim, CrawlVerb, Script, Settle, SettleAs, Steering, Step, Verb};
use trapline_core::{NO_BUDGET, Statement, Terms, Timestamp};

use super::naive::Model;

/// How many steps a script has at least.
pub(super) const STEPS: usize = 100;

/// With their queue keys.
const HOSTS: [(&str, &str); 5] = [
    ("http://a.example", "a.example"),
    ("http://b.example", "b.example"),
    ("http://c.example:8080", "c.example:8080"),
    ("https://D.example", "d.example"),
    ("http://e.example", "e.example"),
];
const PATHS: [&str; 6] = ["/1", "/2", "/1?x=1", "/3", "/2?x=1", "/4"];
const OWN_KEY: &str = "slot";
const SECONDS: [u64; 7] = [0, 1, 1, 2, 2, 5, 10];

/// A script and the model's answers as its expectations.
pub(super) fn script(seed: u64) -> Script {
    let mut random = Random(seed);
    let settings = settings(&mut random);
    let mut generator = Generator {
        hosts: 2 + random.below(4),
        paths: 1 + random.below(PATHS.len()),
        has_own_keys: random.one_in(4),
        model: Model::new(&settings),
        random,
        now: Timestamp::ZERO,
        script: Script { settings, steps: Vec::new() },
    };
    generator.run();
    generator.script
}

/// SplitMix64: small, and good enough for a test.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn one_in(&mut self, odds: usize) -> bool {
        self.below(odds) == 0
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// One of the choices, by their weights.
    fn weighed<T: Copy>(&mut self, choices: &[(usize, T)]) -> T {
        let total: usize = choices.iter().map(|(weight, _)| weight).sum();
        let mut left = self.below(total);
        for (weight, choice) in choices {
            if left < *weight {
                return *choice;
            }
            left -= weight;
        }
        choices[0].1
    }

    fn seconds(&mut self) -> Duration {
        Duration::from_secs(self.one_of(&SECONDS))
    }

    /// How long a lease lasts: seldom no time at all.
    fn lease(&mut self) -> Duration {
        Duration::from_secs(if self.one_in(20) { 0 } else { self.one_of(&[1, 2, 5, 10, 60]) })
    }
}

/// Values that settings may have, at the start or later; `order` only at the start.
const SETTINGS: [(&str, &[&str]); 19] = [
    ("order", &["fifo", "lifo", "lifo", "date", "date"]),
    ("lease", &["1s", "2s", "5s", "10s", "10s", "60s"]),
    ("delay", &["0", "0", "1s", "2s"]),
    ("concurrency", &["0", "1", "2", "2", "3"]),
    ("pace", &["settle", "claim"]),
    ("hold_queues", &["true", "false"]),
    ("balance_replenish", &["0", "1", "1", "1", "2", "2", "2", "2", "3", "3", "3", "3000"]),
    ("queue_budget", &["none", "0", "1", "2", "3", "3", "5", "5", "8", "8"]),
    ("queue_budget_period", &["none", "2s", "5s", "10s", "10s"]),
    ("cost", &["zero", "unit", "wag"]),
    ("class", &["priority", "score", "depth", "depth_first", "cost"]),
    ("error_penalty", &["0", "1", "2"]),
    ("max_deliveries", &["0", "1", "2", "3"]),
    ("pause_at_finish", &["true", "false"]),
    ("max_urls", &["none", "3", "5", "10"]),
    ("max_time", &["none", "20s", "30s"]),
    ("max_depth", &["none", "0", "1", "2"]),
    ("max_queue_length", &["none", "0", "1", "2", "3", "3"]),
    ("admission", &["open", "open", "blocked"]),
];

/// Settings that end or stifle many a crawl are rarer.
fn is_stifling(name: &str) -> bool {
    matches!(
        name,
        "max_urls" | "max_time" | "max_depth" | "max_queue_length" | "admission" | "pause_at_finish"
    )
}

fn settings(random: &mut Random) -> Vec<(String, String)> {
    // Some scripts have few settings, others many.
    let odds = random.one_of(&[2, 3, 6]);
    let mut settings = Vec::new();
    for (name, values) in SETTINGS {
        let odds = if is_stifling(name) { odds * 6 } else { odds };
        if random.one_in(odds) && name != "admission" {
            settings.push((name.to_owned(), random.one_of(values).to_owned()));
        }
    }
    settings
}

struct Generator {
    random: Random,
    hosts: usize,
    paths: usize,
    has_own_keys: bool,
    model: Model,
    now: Timestamp,
    script: Script,
}

/// What a step is about.
#[derive(Clone, Copy)]
enum Kind {
    Admit,
    Claim,
    Settle,
    Steer,
    Crawl,
    Replay,
    Forget,
    Queue,
    Url,
    ShowCrawl,
    ShowAll,
}

const KINDS: [(usize, Kind); 11] = [
    (26, Kind::Admit),
    (20, Kind::Claim),
    (22, Kind::Settle),
    (7, Kind::Steer),
    (3, Kind::Crawl),
    (2, Kind::Replay),
    (2, Kind::Forget),
    (12, Kind::Queue),
    (5, Kind::Url),
    (3, Kind::ShowCrawl),
    (2, Kind::ShowAll),
];

impl Generator {
    fn run(&mut self) {
        if self.random.one_in(4) {
            self.form_groups();
        }
        while self.script.steps.len() < STEPS {
            self.pass_time();
            let kind = if self.script.steps.len() < 6 { Kind::Admit } else { self.random.weighed(&KINDS) };
            match kind {
                Kind::Admit => {
                    let admit = self.admit();
                    self.play(Verb::Admit(admit));
                }
                Kind::Claim => {
                    let claim = self.claim();
                    self.play(Verb::Claim(claim));
                }
                Kind::Settle => {
                    if let Some(settle) = self.settle() {
                        self.play(Verb::Settle(settle));
                    }
                }
                Kind::Steer => {
                    let (key, change) = (self.key(), self.steering());
                    self.play(Verb::Steer { key, change });
                }
                Kind::Crawl => {
                    let crawl = self.crawl();
                    self.play(Verb::Crawl(crawl));
                }
                Kind::Replay => {
                    let dead = self.model.dead();
                    let unlikely = dead.is_empty() || self.random.one_in(4);
                    let url = if unlikely { self.url() } else { dead[self.random.below(dead.len())].clone() };
                    self.play(Verb::DeadReplay(url));
                }
                Kind::Forget => {
                    let url = self.url();
                    self.play(Verb::Forget(url));
                }
                Kind::Queue => {
                    let key = self.key();
                    self.play(Verb::Queue(key));
                }
                Kind::Url => {
                    let url = self.url();
                    self.play(Verb::Url(url));
                }
                Kind::ShowCrawl => self.play(Verb::Crawl(CrawlVerb::Show)),
                Kind::ShowAll => self.show_all(),
            }
        }
        self.show_all();
    }

    /// A group is only worth having with several members.
    fn form_groups(&mut self) {
        for (_, key) in &HOSTS[..self.hosts] {
            if !self.random.one_in(3) {
                let terms = Terms { group: Some(Arc::from("g")), ..Terms::default() };
                self.play(Verb::Steer { key: (*key).to_owned(), change: Steering::Terms(terms) });
            }
        }
    }

    fn play(&mut self, verb: Verb) {
        let expected = Some(self.model.play(self.now, &verb));
        self.script.steps.push(Step { line: 0, at: self.now, verb, expected });
    }

    fn show_all(&mut self) {
        for (_, key) in &HOSTS[..self.hosts] {
            self.play(Verb::Queue((*key).to_owned()));
        }
        if self.has_own_keys {
            self.play(Verb::Queue(OWN_KEY.to_owned()));
        }
        self.play(Verb::Crawl(CrawlVerb::Show));
    }

    /// Time often stands still, or jumps to exactly what is due, or falls just short of it.
    fn pass_time(&mut self) {
        let ahead = self.model.ahead();
        let whole = Timestamp::from_millis(self.now.as_millis() / 1000 * 1000);
        let how = [(90, "still"), (10, "nearest"), (4, "any"), (2, "short"), (1, "a little"), (8, "on")];
        let passed = match self.random.weighed(&how) {
            "nearest" => ahead.iter().min().copied().unwrap_or(self.now),
            "any" if !ahead.is_empty() => self.random.one_of(&ahead),
            "short" if !ahead.is_empty() => {
                Timestamp::from_millis(self.random.one_of(&ahead).as_millis() - 1)
            }
            "a little" => self.now + Duration::from_millis(1),
            // Onto whole seconds again, where coincidences are.
            "on" => whole + self.random.seconds(),
            _ => self.now,
        };
        self.now = passed.max(self.now);
    }

    fn url(&mut self) -> String {
        let (host, _) = HOSTS[self.random.below(self.hosts)];
        format!("{host}{}", PATHS[self.random.below(self.paths)])
    }

    fn key(&mut self) -> String {
        if self.has_own_keys && self.random.one_in(5) {
            return OWN_KEY.to_owned();
        }
        HOSTS[self.random.below(self.hosts)].1.to_owned()
    }

    /// Mostly ahead, on a whole second.
    fn time(&mut self) -> Timestamp {
        let whole = Timestamp::from_millis(self.now.as_millis() / 1000 * 1000);
        if self.random.one_in(10) {
            return Timestamp::from_millis(whole.as_millis().saturating_sub(1000));
        }
        if self.random.one_in(4) {
            let ahead = self.model.ahead();
            return ahead.first().copied().unwrap_or(self.now);
        }
        whole + self.random.seconds()
    }

    fn admit(&mut self) -> Admit {
        let mut admit = Admit { url: self.url(), ..Admit::default() };
        if self.random.one_in(200) {
            "mailto:someone".clone_into(&mut admit.url);
            return admit;
        }
        let random = &mut self.random;
        if random.one_in(5) {
            admit.class = Some(random.one_of(&[0, 100, 126, 127, 128, 255]));
        }
        if random.one_in(6) {
            admit.cost = Some(random.one_of(&[0, 1, 2, 3]));
        }
        if random.one_in(6) {
            admit.priority = Some(random.one_of(&[-128, -1, 0, 1, 127]));
        }
        if random.one_in(8) {
            admit.score = Some(random.one_of(&[0.0, 0.25, 0.5, 1.0]));
        }
        if random.one_in(4) {
            admit.depth = random.one_of(&[1, 1, 2, 3, 300]);
        }
        admit.improve = random.one_in(4);
        admit.dont_filter = random.one_in(10);
        if random.one_in(4) {
            admit.via = Some(self.url());
        }
        if self.has_own_keys && self.random.one_in(4) {
            admit.key = Some(self.key());
        }
        if self.random.one_in(8) {
            admit.terms = self.terms();
        }
        if self.random.one_in(10) {
            let next = Statement::Next(self.time());
            admit.statement = Some(if self.random.one_in(3) { Statement::Done } else { next });
        }
        admit
    }

    fn terms(&mut self) -> Terms {
        let mut terms = Terms::default();
        let random = &mut self.random;
        for _ in 0..random.one_of(&[1, 1, 1, 2, 3]) {
            match random.below(6) {
                0 => terms.precedence = Some(random.one_of(&[0, 2, 3, 3, 4])),
                1 => terms.queue_budget = Some(random.one_of(&[0, 1, 2, 3, 5, 8, NO_BUDGET, NO_BUDGET])),
                2 => terms.balance_replenish = Some(random.one_of(&[0, 1, 1, 2, 2, 3, 3])),
                3 => terms.delay = Some(random.seconds()),
                4 => terms.concurrency = Some(random.one_of(&[0, 1, 2, 3])),
                _ => terms.group = Some(Arc::from(random.one_of(&["", "g", "g", "h"]))),
            }
        }
        terms
    }

    fn claim(&mut self) -> Claim {
        let random = &mut self.random;
        let mut claim = Claim { urls: random.one_of(&[1, 1, 1, 1, 2, 2, 3, 5]), ..Claim::default() };
        if random.one_in(6) {
            claim.per_queue = Some(random.one_of(&[1, 1, 2]));
        }
        if random.one_in(6) {
            claim.queues = Some(random.one_of(&[1, 1, 2]));
        }
        if random.one_in(6) {
            claim.lease = Some(random.lease());
        }
        if self.random.one_in(10) {
            claim.keys = Some((0..=self.random.below(2)).map(|_| self.key()).collect());
        }
        if self.random.one_in(10) {
            claim.except = vec![self.key()];
        }
        claim
    }

    /// Mostly of a live lease; None if there is none yet.
    fn settle(&mut self) -> Option<Settle> {
        let live = self.model.live();
        let granted = self.model.granted();
        if granted == 0 {
            return None;
        }
        let lease = match live.len() {
            0 if !self.random.one_in(4) => return None,
            0 => self.random.below(granted),
            _ if self.random.one_in(12) => self.random.below(granted),
            _ => self.random.one_of(&live),
        };
        let url = self.model.url_of_lease(lease).to_owned();
        let is_newest = (lease + 1..granted).all(|later| self.model.url_of_lease(later) != url);
        let outcome = match self.random.below(20) {
            0..=6 => SettleAs::done(None),
            7..=8 => SettleAs::done(Some(self.time())),
            9..=11 => SettleAs::Retry { at: self.time() },
            12..=13 => SettleAs::Release,
            14..=15 => SettleAs::Dead { reason: "gone".to_owned() },
            16..=17 => SettleAs::Disregard,
            _ => SettleAs::Renew { lease: self.random.lease() },
        };
        let delay = self.random.one_in(6).then(|| self.random.seconds());
        let links = if self.random.one_in(3) { 1 + self.random.below(3) } else { 0 };
        let links = (0..links).map(|_| self.url()).collect();
        let is_named = !is_newest || self.random.one_in(3);
        Some(Settle { url, outcome, delay, links, lease: is_named.then_some(lease + 1) })
    }

    fn steering(&mut self) -> Steering {
        match self.random.below(24) {
            0..=10 => Steering::Terms(self.terms()),
            11..=14 => Steering::Block(self.time()),
            15..=16 => Steering::Unblock,
            17..=18 => Steering::Retire,
            19..=21 => Steering::Reinstate,
            22 => Steering::Purge,
            _ => Steering::Delete,
        }
    }

    fn crawl(&mut self) -> CrawlVerb {
        if self.model.is_paused() && !self.random.one_in(3) {
            return CrawlVerb::Resume;
        }
        match self.random.below(40) {
            0 if self.random.one_in(3) => CrawlVerb::Finish,
            0..=5 => CrawlVerb::Pause,
            6..=7 => CrawlVerb::Resume,
            _ => {
                let count = self.random.one_of(&[1, 1, 1, 2]);
                CrawlVerb::Set((0..count).map(|_| self.setting()).collect())
            }
        }
    }

    fn setting(&mut self) -> (String, String) {
        loop {
            let (name, values) = self.random.one_of(&SETTINGS);
            if name != "order" && (!is_stifling(name) || self.random.one_in(3)) {
                return (name.to_owned(), self.random.one_of(values).to_owned());
            }
        }
    }
}
