//! What is held back when a crawl has nothing else to do: URLs that wait in retired queues, and what lets them go on.

use trapline_frontier::{Frontier, Query, QueueState, Rows, Scan, StoreError};

use crate::demo_command::thousands;
use crate::moment;

/// How many URLs wait in retired queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Because the budget that all queues have is used up.
    pub(crate) budgets: u64,
    /// Because the budget is used up that their queue has of its own.
    pub(crate) own_budgets: u64,
    /// Because somebody wants it, or for what else `queues --state retired` tells.
    pub(crate) others: u64,
    /// Whether budgets are for a time.
    pub(crate) in_periods: bool,
}

impl Held {
    /// Goes through all retired queues.
    pub(crate) async fn count(frontier: &Frontier) -> Result<Self, StoreError> {
        let settings = frontier.report(moment::now()).await?.settings;
        let usual = settings.queue_budget;
        let mut held = Self { in_periods: settings.queue_budget_period.is_some(), ..Self::default() };
        let mut scan = Scan::new(Query::Queues { keys: None, state: Some(QueueState::Retired) });
        loop {
            let page = frontier.scan(moment::now(), &scan).await?;
            if let Rows::Queues(queues) = &page.rows {
                for queue in queues {
                    let count = match queue.is_over_budget() {
                        true if queue.budget == usual => &mut held.budgets,
                        true => &mut held.own_budgets,
                        false => &mut held.others,
                    };
                    *count += queue.pending;
                }
            }
            if page.cursor.is_none() {
                return Ok(held);
            }
            scan.cursor = page.cursor;
        }
    }

    /// Whether something waits because of a budget.
    pub(crate) fn by_budget(self) -> bool {
        self.budgets + self.own_budgets > 0
    }

    /// What waits, why, and what lets it go on.
    pub(crate) fn sentence(self) -> String {
        if self.budgets + self.own_budgets + self.others == 0 {
            // It was changed since.
            return "what is left waited in queues that were retired; run the same command again".to_owned();
        }
        format!("{}; {}", self.reason(), self.remedy())
    }

    fn budget_remedy(self) -> &'static str {
        if self.in_periods {
            "it goes on with the same command when the period has ended, or with a higher --budget"
        } else {
            "a higher --budget goes on"
        }
    }

    /// What waits, and why.
    pub(crate) fn reason(self) -> String {
        let over_budget = self.budgets + self.own_budgets;
        let used_up = match over_budget {
            1 => "the budget of its queue is used up",
            _ => "the budgets of their queues are used up",
        };
        let reasons = [
            (over_budget, format!("{} because {used_up}", urls(over_budget))),
            (self.others, format!("{} in queues that are retired", urls(self.others))),
        ];
        those(&reasons)
    }

    /// What lets it go on.
    pub(crate) fn remedy(self) -> String {
        const FRONTIER: &str = "`trapline frontier --store URL";
        let remedies = [
            (self.budgets, self.budget_remedy().to_owned()),
            (
                self.own_budgets,
                "`trapline steer DIR --host HOST --set budget=N` lets a host go on that has a budget of its own".to_owned(),
            ),
            (
                self.others,
                format!(
                    "{FRONTIER} queues --state retired` says why, and `steer queue KEY reinstate` lets one go on"
                ),
            ),
        ];
        those(&remedies)
    }
}

/// What is to be said where something waits.
fn those(said: &[(u64, String)]) -> String {
    let said: Vec<_> = said.iter().filter(|(waits, _)| *waits > 0).map(|(_, said)| said.as_str()).collect();
    said.join(", ")
}

fn urls(count: u64) -> String {
    if count == 1 { "1 URL waits".to_owned() } else { format!("{} URLs wait", thousands(count)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_told_with_what_can_be_done() {
        let said = |budgets, own_budgets, others| {
            Held { budgets, own_budgets, others, in_periods: false }.sentence()
        };
        for (told, expected) in [
            (
                said(1200, 0, 0),
                "1,200 URLs wait because the budgets of their queues are used up; a higher --budget goes on",
            ),
            (
                said(0, 1, 0),
                "1 URL waits because the budget of its queue is used up; `trapline steer DIR --host HOST --set budget=N` \
                 lets a host go on that has a budget of its own",
            ),
            (
                said(0, 0, 3),
                "3 URLs wait in queues that are retired; `trapline frontier --store URL queues --state retired` says why, and \
                 `steer queue KEY reinstate` lets one go on",
            ),
            (
                said(1, 1, 1),
                "2 URLs wait because the budgets of their queues are used up, 1 URL waits in queues that are retired; a higher \
                 --budget goes on, `trapline steer DIR --host HOST --set budget=N` lets a host go on that has a \
                 budget of its own, `trapline frontier --store URL queues --state retired` says why, and `steer queue KEY \
                 reinstate` lets one go on",
            ),
        ] {
            assert_eq!(told, expected);
        }
        let daily = Held { budgets: 2, in_periods: true, ..Held::default() };
        assert_eq!(
            daily.remedy(),
            "it goes on with the same command when the period has ended, or with a higher --budget"
        );
        assert!(Held::default().sentence().ends_with("run the same command again"));
    }
}
