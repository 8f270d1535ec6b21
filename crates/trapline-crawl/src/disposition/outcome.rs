//! Success, another try, or a dead letter; and what a visit leaves behind for the next one.

use std::time::Duration;

use async_trait::async_trait;
use trapline_frontier::{Outcome, Visit as Found};

use super::Disposition;
use crate::candidate::HostPolicies;
use crate::chain::{Flow, Processor};
use crate::fetch::Verdict;
use crate::response::{ErrorClass, Response};

/// How often a page that fails is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryOptions {
    /// How often it is tried again. Defaults to 3.
    pub max: u32,
    /// How long it is left alone after the first failure; each time twice as long. Defaults to 30 s.
    pub wait: Duration,
    /// The longest such wait. Defaults to 1 h.
    pub wait_max: Duration,
}

impl Default for RetryOptions {
    fn default() -> Self {
        Self { max: 3, wait: Duration::from_secs(30), wait_max: Duration::from_secs(3600) }
    }
}

/// Decides what becomes of a URL.
pub(super) struct Decide {
    pub(super) retry: RetryOptions,
    pub(super) hosts: HostPolicies,
}

#[async_trait]
impl Processor<Disposition> for Decide {
    fn name(&self) -> &'static str {
        "outcome"
    }

    async fn process(&self, disposition: &mut Disposition) -> Flow {
        let visit = &disposition.visit;
        disposition.outcome = match (&visit.verdict, &visit.response) {
            (Some(Verdict::Disregard { rule, detail }), _) => {
                Outcome::Disregard { reason: reason(rule, detail) }
            }
            (Some(Verdict::Release { .. }), _) | (None, None) => Outcome::Release,
            (Some(Verdict::Dead { reason }), _) => Outcome::Dead { reason: reason.clone() },
            (Some(Verdict::Retry { at, reason, .. }), _) => self.again(disposition, *at, reason),
            (None, Some(response)) => self.of(disposition, response),
        };
        Flow::Next
    }
}

impl Decide {
    fn of(&self, disposition: &Disposition, response: &Response) -> Outcome {
        if let Some(error) = &response.error {
            return match error.class {
                ErrorClass::Refused => Outcome::Dead { reason: reason(error.kind, &error.message) },
                ErrorClass::Passing => self.again(disposition, None, &reason(error.kind, &error.message)),
            };
        }
        match response.status {
            None => self.again(disposition, None, "no response"),
            Some(status @ (408 | 425 | 429 | 500..=599)) => {
                self.again(disposition, None, &format!("status {status}"))
            }
            Some(status) => {
                let host = disposition.visit.url().host_str().unwrap_or_default();
                let revisit = self.hosts.of(host).and_then(|terms| terms.revisit);
                let next = revisit.map(|interval| disposition.ended + interval);
                Outcome::Done { visit: found(disposition, response, status), next }
            }
        }
    }

    /// Another try, unless there were enough.
    fn again(
        &self,
        disposition: &Disposition,
        at: Option<trapline_core::Timestamp>,
        reason: &str,
    ) -> Outcome {
        let tries = disposition.visit.lease.retries;
        if tries >= self.retry.max {
            let between = if reason.contains(": ") { ", " } else { ": " };
            return Outcome::Dead { reason: format!("{reason}{between}after {} tries", tries + 1) };
        }
        let wait = self.retry.wait.saturating_mul(1 << tries.min(20)).min(self.retry.wait_max);
        Outcome::Retry { at: at.unwrap_or(disposition.ended + wait) }
    }
}

/// What the visit found, for the next one.
fn found(disposition: &Disposition, response: &Response, status: u16) -> Found {
    let visit = &disposition.visit;
    let before = visit.lease.page.as_ref().filter(|_| response.not_modified);
    let page = visit.page.as_ref();
    let text = |name: &str| response.header(name).map(str::to_owned);
    Found {
        status,
        bytes: response.encoded_bytes,
        etag: text("etag").or_else(|| before.and_then(|page| page.visit.etag.clone())),
        last_modified: text("last-modified")
            .or_else(|| before.and_then(|page| page.visit.last_modified.clone())),
        digest: match (page, before) {
            (Some(page), _) => Some(page.digest[..16].to_vec()),
            (None, Some(before)) => before.visit.digest.clone(),
            (None, None) => None,
        },
        simhash: page
            .and_then(|page| page.simhash.map(|hash| hash.0))
            .or_else(|| before.and_then(|before| before.visit.simhash)),
    }
}

fn reason(rule: &str, detail: &str) -> String {
    if detail.is_empty() { rule.to_owned() } else { format!("{rule}: {detail}") }
}
