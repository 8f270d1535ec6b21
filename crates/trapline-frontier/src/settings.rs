//! The settings of a crawl: what can be said of one, by the names the configuration uses.
//!
//! Stores interpret them; here they are only read, written and defaulted.

use std::fmt;
use std::time::Duration;

use trapline_core::{ClassPolicy, CostPolicy, format_duration, parse_duration};

/// Everything that can be set for a crawl. `order` is fixed when the crawl is created, the rest can be steered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a lease lasts, unless the claim says otherwise. Defaults to 60s.
    pub lease: Duration,
    /// How long a queue waits after a fetch. Defaults to 1s.
    pub delay: Duration,
    /// How many URLs of a queue may be leased at a time; 0 means no limit. Defaults to 1.
    pub concurrency: u32,
    /// The order inside a class of a queue. Defaults to `fifo`.
    pub order: Order,
    /// Whether a delay counts from the settlement or from the grant. Defaults to `settle`.
    pub pace: Pace,
    /// Whether new queues start inactive and wait for their turn. Defaults to true.
    pub hold_queues: bool,
    /// The balance a queue gets for a session; 0 retires queues. Defaults to 3000.
    pub balance_replenish: u64,
    /// What may be spent on a queue in total, or in each period. Defaults to none.
    pub queue_budget: Option<u64>,
    /// After this long, counted from the crawl's start, what was spent starts at 0 again. Defaults to none.
    pub queue_budget_period: Option<Duration>,
    /// How URLs are priced that come without a cost. Defaults to `unit`.
    pub cost: CostPolicy,
    /// How URLs are classed that come without a class. Defaults to `priority`.
    pub class: ClassPolicy,
    /// What a retry or a death adds to what its queue has spent. Defaults to 0.
    pub error_penalty: u64,
    /// After so many expired leases in a row a URL is a dead letter; 0 means never. Defaults to 5.
    pub max_deliveries: u32,
    /// Whether a claim that finds the crawl exhausted pauses it. Defaults to false.
    pub pause_at_finish: bool,
    /// The crawl finishes when so many fetches are done. Also sizes the seen set ahead. Defaults to none.
    pub max_urls: Option<u64>,
    /// The crawl finishes when so many bytes were received. Defaults to none.
    pub max_bytes: Option<u64>,
    /// The crawl finishes after this long. Defaults to none.
    pub max_time: Option<Duration>,
    /// Deeper candidates are refused. Defaults to none.
    pub max_depth: Option<u32>,
    /// Candidates for a queue with so many pending URLs are refused. Defaults to none.
    pub max_queue_length: Option<u64>,
    /// `open`, or `blocked` to refuse new URLs while the rest drains. Defaults to `open`.
    pub admission: AdmissionGate,
}

/// The order inside a class of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// First admitted, first served.
    #[default]
    Fifo,
    /// Last admitted, first served.
    Lifo,
    /// Earliest scheduled time first, then by the URL's text.
    Date,
}

/// From when a delay counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// From the settlement.
    #[default]
    Settle,
    /// From the grant.
    Claim,
}

/// Whether a crawl takes new URLs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdmissionGate {
    /// It does.
    #[default]
    Open,
    /// It refuses them.
    Blocked,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(60),
            delay: Duration::from_secs(1),
            concurrency: 1,
            order: Order::default(),
            pace: Pace::default(),
            hold_queues: true,
            balance_replenish: 3000,
            queue_budget: None,
            queue_budget_period: None,
            cost: CostPolicy::default(),
            class: ClassPolicy::default(),
            error_penalty: 0,
            max_deliveries: 5,
            pause_at_finish: false,
            max_urls: None,
            max_bytes: None,
            max_time: None,
            max_depth: None,
            max_queue_length: None,
            admission: AdmissionGate::default(),
        }
    }
}

impl Order {
    /// Every order, with the name it has in the configuration.
    pub const NAMES: [(&'static str, Self); 3] =
        [("fifo", Self::Fifo), ("lifo", Self::Lifo), ("date", Self::Date)];
}

impl Pace {
    /// Every way to count, with the name it has in the configuration.
    pub const NAMES: [(&'static str, Self); 2] = [("settle", Self::Settle), ("claim", Self::Claim)];
}

const GATES: [(&str, AdmissionGate); 2] =
    [("open", AdmissionGate::Open), ("blocked", AdmissionGate::Blocked)];
const SWITCH: [(&str, bool); 2] = [("true", true), ("false", false)];

impl Settings {
    /// The names of all settings.
    pub const NAMES: [&'static str; 20] = [
        "lease",
        "delay",
        "concurrency",
        "order",
        "pace",
        "hold_queues",
        "balance_replenish",
        "queue_budget",
        "queue_budget_period",
        "cost",
        "class",
        "error_penalty",
        "max_deliveries",
        "pause_at_finish",
        "max_urls",
        "max_bytes",
        "max_time",
        "max_depth",
        "max_queue_length",
        "admission",
    ];

    /// Sets one setting by its name, from the text the configuration would have.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SettingError> {
        match name {
            "lease" => self.lease = duration(name, value)?,
            "delay" => self.delay = duration(name, value)?,
            "concurrency" => self.concurrency = number(name, value)?,
            "order" => self.order = choice(name, value, &Order::NAMES)?,
            "pace" => self.pace = choice(name, value, &Pace::NAMES)?,
            "hold_queues" => self.hold_queues = choice(name, value, &SWITCH)?,
            "balance_replenish" => self.balance_replenish = number(name, value)?,
            "queue_budget" => self.queue_budget = optional(name, value, number)?,
            "queue_budget_period" => self.queue_budget_period = optional(name, value, period)?,
            "cost" => self.cost = choice(name, value, &CostPolicy::NAMES)?,
            "class" => self.class = choice(name, value, &ClassPolicy::NAMES)?,
            "error_penalty" => self.error_penalty = number(name, value)?,
            "max_deliveries" => self.max_deliveries = number(name, value)?,
            "pause_at_finish" => self.pause_at_finish = choice(name, value, &SWITCH)?,
            "max_urls" => self.max_urls = optional(name, value, number)?,
            "max_bytes" => self.max_bytes = optional(name, value, number)?,
            "max_time" => self.max_time = optional(name, value, duration)?,
            "max_depth" => self.max_depth = optional(name, value, number)?,
            "max_queue_length" => self.max_queue_length = optional(name, value, number)?,
            "admission" => self.admission = choice(name, value, &GATES)?,
            _ => {
                return Err(SettingError::Unknown {
                    name: name.to_owned(),
                    nearest: nearest(name, &Self::NAMES),
                });
            }
        }
        Ok(())
    }

    /// The value of a setting, as [`Settings::set`] reads it.
    pub fn get(&self, name: &str) -> Option<String> {
        let none = || "none".to_owned();
        Some(match name {
            "lease" => format_duration(self.lease),
            "delay" => format_duration(self.delay),
            "concurrency" => self.concurrency.to_string(),
            "order" => name_of(self.order, &Order::NAMES),
            "pace" => name_of(self.pace, &Pace::NAMES),
            "hold_queues" => self.hold_queues.to_string(),
            "balance_replenish" => self.balance_replenish.to_string(),
            "queue_budget" => self.queue_budget.map_or_else(none, |n| n.to_string()),
            "queue_budget_period" => self.queue_budget_period.map_or_else(none, format_duration),
            "cost" => self.cost.to_string(),
            "class" => self.class.to_string(),
            "error_penalty" => self.error_penalty.to_string(),
            "max_deliveries" => self.max_deliveries.to_string(),
            "pause_at_finish" => self.pause_at_finish.to_string(),
            "max_urls" => self.max_urls.map_or_else(none, |n| n.to_string()),
            "max_bytes" => self.max_bytes.map_or_else(none, |n| n.to_string()),
            "max_time" => self.max_time.map_or_else(none, format_duration),
            "max_depth" => self.max_depth.map_or_else(none, |n| n.to_string()),
            "max_queue_length" => self.max_queue_length.map_or_else(none, |n| n.to_string()),
            "admission" => name_of(self.admission, &GATES),
            _ => return None,
        })
    }
}

/// A setting that could not be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// There is no setting of that name.
    #[error("there is no setting `{name}`{}", nearest.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default())]
    Unknown {
        /// The name given.
        name: String,
        /// The nearest name there is.
        nearest: Option<&'static str>,
    },
    /// The value does not fit.
    #[error("`{name}` cannot be `{value}`: {expected}")]
    Value {
        /// The setting.
        name: String,
        /// The value given.
        value: String,
        /// What would fit.
        expected: String,
    },
    /// It is fixed when a crawl is created.
    #[error("`{0}` is fixed when a crawl is created and cannot be changed later")]
    Fixed(&'static str),
}

fn value_error(name: &str, value: &str, expected: impl fmt::Display) -> SettingError {
    SettingError::Value { name: name.to_owned(), value: value.to_owned(), expected: expected.to_string() }
}

pub(crate) fn duration(name: &str, value: &str) -> Result<Duration, SettingError> {
    parse_duration(value)
        .map_err(|_| value_error(name, value, "write digits and a unit (ms, s, m, h or d), or plain 0"))
}

fn period(name: &str, value: &str) -> Result<Duration, SettingError> {
    let period = duration(name, value)?;
    if period.is_zero() {
        Err(value_error(name, value, "a period takes some time; write `none` for no period"))
    } else {
        Ok(period)
    }
}

pub(crate) fn number<N: TryFrom<u64>>(name: &str, value: &str) -> Result<N, SettingError> {
    let number = value.parse::<u64>().ok().and_then(|number| N::try_from(number).ok());
    number.ok_or_else(|| value_error(name, value, "write a whole number, not negative, that fits"))
}

pub(crate) fn optional<T>(
    name: &str,
    value: &str,
    read: fn(&str, &str) -> Result<T, SettingError>,
) -> Result<Option<T>, SettingError> {
    if value == "none" { Ok(None) } else { read(name, value).map(Some) }
}

fn choice<T: Copy>(name: &str, value: &str, choices: &[(&str, T)]) -> Result<T, SettingError> {
    let found = choices.iter().find(|(choice, _)| *choice == value);
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let names: Vec<_> = choices.iter().map(|(choice, _)| *choice).collect();
        value_error(name, value, format_args!("write one of {}", names.join(", ")))
    })
}

fn name_of<T: Copy + PartialEq>(value: T, choices: &[(&str, T)]) -> String {
    choices
        .iter()
        .find(|(_, meaning)| *meaning == value)
        .map_or_else(String::new, |(name, _)| (*name).to_owned())
}

/// The nearest of `names`, if one is near enough to be a slip of the hand.
pub fn nearest(name: &str, names: &[&'static str]) -> Option<&'static str> {
    let close = names.iter().map(|known| (distance(name, known), *known)).min()?;
    (close.0 <= name.len().max(3) / 3 + 1).then_some(close.1)
}

/// How many single-letter edits lie between two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_can_be_read_back_as_it_is_written() {
        let defaults = Settings::default();
        for name in Settings::NAMES {
            let value = defaults.get(name).unwrap_or_else(|| panic!("{name} has no value"));
            let mut again = Settings::default();
            again.set(name, &value).unwrap();
            assert_eq!(again, defaults, "{name} = {value}");
        }
    }

    #[test]
    fn mistakes_are_named_with_what_would_fit() {
        let message = |name: &str, value: &str| Settings::default().set(name, value).unwrap_err().to_string();
        assert_eq!(
            message("quue_budget", "3"),
            "there is no setting `quue_budget`; did you mean `queue_budget`?"
        );
        assert_eq!(message("xyzzy", "3"), "there is no setting `xyzzy`");
        assert_eq!(
            message("lease", "60"),
            "`lease` cannot be `60`: write digits and a unit (ms, s, m, h or d), or plain 0"
        );
        assert_eq!(message("order", "random"), "`order` cannot be `random`: write one of fifo, lifo, date");
        assert_eq!(
            message("concurrency", "-1"),
            "`concurrency` cannot be `-1`: write a whole number, not negative, that fits"
        );
        assert!(message("queue_budget_period", "0").contains("a period takes some time"));
    }
}
