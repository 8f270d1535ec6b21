//! The settings of a crawl as a message. Choices are kept by their names.

use prost::Message;
use trapline_frontier::Settings;

use super::{Span, Unreadable, read_span};

#[derive(Clone, PartialEq, Message)]
pub(super) struct SettingsMessage {
    #[prost(message, optional, tag = "1")]
    lease: Option<Span>,
    #[prost(message, optional, tag = "2")]
    delay: Option<Span>,
    #[prost(uint32, tag = "3")]
    concurrency: u32,
    #[prost(string, tag = "4")]
    order: String,
    #[prost(string, tag = "5")]
    pace: String,
    #[prost(bool, tag = "6")]
    hold_queues: bool,
    #[prost(uint64, tag = "7")]
    balance_replenish: u64,
    #[prost(uint64, optional, tag = "8")]
    queue_budget: Option<u64>,
    #[prost(message, optional, tag = "9")]
    queue_budget_period: Option<Span>,
    #[prost(string, tag = "10")]
    cost: String,
    #[prost(string, tag = "11")]
    class: String,
    #[prost(uint64, tag = "12")]
    error_penalty: u64,
    #[prost(uint32, tag = "13")]
    max_deliveries: u32,
    #[prost(bool, tag = "14")]
    pause_at_finish: bool,
    #[prost(uint64, optional, tag = "15")]
    max_urls: Option<u64>,
    #[prost(uint64, optional, tag = "16")]
    max_bytes: Option<u64>,
    #[prost(message, optional, tag = "17")]
    max_time: Option<Span>,
    #[prost(uint32, optional, tag = "18")]
    max_depth: Option<u32>,
    #[prost(uint64, optional, tag = "19")]
    max_queue_length: Option<u64>,
    #[prost(string, tag = "20")]
    admission: String,
}

impl From<&Settings> for SettingsMessage {
    fn from(settings: &Settings) -> Self {
        let name = |name| settings.get(name).unwrap_or_default();
        let Settings {
            lease,
            delay,
            concurrency,
            order: _,
            pace: _,
            hold_queues,
            balance_replenish,
            queue_budget,
            queue_budget_period,
            cost: _,
            class: _,
            error_penalty,
            max_deliveries,
            pause_at_finish,
            max_urls,
            max_bytes,
            max_time,
            max_depth,
            max_queue_length,
            admission: _,
        } = settings;
        Self {
            lease: Some((*lease).into()),
            delay: Some((*delay).into()),
            concurrency: *concurrency,
            order: name("order"),
            pace: name("pace"),
            hold_queues: *hold_queues,
            balance_replenish: *balance_replenish,
            queue_budget: *queue_budget,
            queue_budget_period: queue_budget_period.map(Span::from),
            cost: name("cost"),
            class: name("class"),
            error_penalty: *error_penalty,
            max_deliveries: *max_deliveries,
            pause_at_finish: *pause_at_finish,
            max_urls: *max_urls,
            max_bytes: *max_bytes,
            max_time: max_time.map(Span::from),
            max_depth: *max_depth,
            max_queue_length: *max_queue_length,
            admission: name("admission"),
        }
    }
}

impl SettingsMessage {
    pub(super) fn read(self) -> Result<Settings, Unreadable> {
        let mut settings = Settings {
            lease: read_span(self.lease)?.ok_or(Unreadable::Lacks("a lease"))?,
            delay: read_span(self.delay)?.ok_or(Unreadable::Lacks("a delay"))?,
            concurrency: self.concurrency,
            hold_queues: self.hold_queues,
            balance_replenish: self.balance_replenish,
            queue_budget: self.queue_budget,
            queue_budget_period: read_span(self.queue_budget_period)?,
            error_penalty: self.error_penalty,
            max_deliveries: self.max_deliveries,
            pause_at_finish: self.pause_at_finish,
            max_urls: self.max_urls,
            max_bytes: self.max_bytes,
            max_time: read_span(self.max_time)?,
            max_depth: self.max_depth,
            max_queue_length: self.max_queue_length,
            ..Settings::default()
        };
        let choices = [
            ("order", &self.order),
            ("pace", &self.pace),
            ("cost", &self.cost),
            ("class", &self.class),
            ("admission", &self.admission),
        ];
        for (name, value) in choices {
            settings.set(name, value).map_err(|_| Unreadable::Lacks("a setting it knows the meaning of"))?;
        }
        Ok(settings)
    }
}

/// The defaults, and settings that differ from them everywhere.
#[cfg(test)]
pub(super) fn samples() -> Vec<Settings> {
    use std::time::Duration;
    use trapline_core::{ClassPolicy, CostPolicy};
    use trapline_frontier::{AdmissionGate, Order, Pace};
    let other = Settings {
        lease: Duration::from_micros(1),
        delay: Duration::ZERO,
        concurrency: 0,
        order: Order::Date,
        pace: Pace::Claim,
        hold_queues: false,
        balance_replenish: 0,
        queue_budget: Some(0),
        queue_budget_period: Some(Duration::from_nanos(5)),
        cost: CostPolicy::Wag,
        class: ClassPolicy::DepthFirst,
        error_penalty: 6,
        max_deliveries: 0,
        pause_at_finish: true,
        max_urls: Some(0),
        max_bytes: Some(7),
        max_time: Some(Duration::ZERO),
        max_depth: Some(0),
        max_queue_length: Some(8),
        admission: AdmissionGate::Blocked,
    };
    vec![Settings::default(), Settings { order: Order::Lifo, ..other.clone() }, other]
}
