//! Faults planted in the engine on purpose, one at a time, to see that the tests would find them.
//!
//! Only with the feature `planted`, which nothing but tests turns on. Without it every question here is answered with
//! a constant no, and nothing of it is left in the program.

/// What goes wrong. Each breaks one promise of the frontier, most of them only now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "planted"), expect(unreachable_pub, reason = "only tests plant any"))]
pub enum Fault {
    /// A queue waits a millisecond less than its delay.
    DelayOneShort,
    /// A lease gets the number of the one before.
    LeaseReused,
    /// The first link of a settlement is not admitted.
    LinkLost,
    /// A queue is found to be over its budget only after the grant that takes it there.
    BudgetAfterGrant,
    /// A settlement whose lease has ended is accepted.
    StaleAccepted,
    /// A lease ends a millisecond before its deadline.
    ExpiryEarly,
    /// A release gives its cost not back.
    RefundForgotten,
    /// A queue that was served is woken at once, although as much of it is leased as may be.
    WokenTwice,
    /// Queues with a worse precedence are served first.
    PrecedenceInverted,
    /// Claims that name their queues are served while the crawl is paused.
    PauseForgotten,
    /// Pending URLs of retired queues count as something to do.
    RetiredCounted,
    /// One in eight new URLs is taken for a known one.
    FilterBelieved,
    /// A released URL goes behind the others of its class.
    ReleasedLast,
    /// Expiries are not counted, so a page can kill its workers for ever.
    ExpiriesUncounted,
    /// A group's wait holds only for the queue that was settled.
    GroupForgotten,
    /// A session's balance is never charged.
    BalanceUncharged,
    /// A block ends when its queue gets a URL.
    BlockForgotten,
    /// The next visit of a done URL is forgotten.
    VisitForgotten,
    /// A claim says that more will be eligible a millisecond later than it is.
    NextLate,
    /// A retry counts as if it were new: it goes behind the others of its class.
    RetryLast,
}

#[cfg(feature = "planted")]
impl Fault {
    /// All of them.
    pub const ALL: [Self; 20] = [
        Self::DelayOneShort,
        Self::LeaseReused,
        Self::LinkLost,
        Self::BudgetAfterGrant,
        Self::StaleAccepted,
        Self::ExpiryEarly,
        Self::RefundForgotten,
        Self::WokenTwice,
        Self::PrecedenceInverted,
        Self::PauseForgotten,
        Self::RetiredCounted,
        Self::FilterBelieved,
        Self::ReleasedLast,
        Self::ExpiriesUncounted,
        Self::GroupForgotten,
        Self::BalanceUncharged,
        Self::BlockForgotten,
        Self::VisitForgotten,
        Self::NextLate,
        Self::RetryLast,
    ];
}

/// The fault planted in an engine, if any is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Planted {
    #[cfg(feature = "planted")]
    fault: Option<Fault>,
}

impl Planted {
    #[cfg(feature = "planted")]
    pub(crate) fn with(fault: Fault) -> Self {
        Self { fault: Some(fault) }
    }

    /// Whether this one is.
    #[inline]
    pub(crate) fn is(self, fault: Fault) -> bool {
        #[cfg(feature = "planted")]
        return self.fault == Some(fault);
        #[cfg(not(feature = "planted"))]
        {
            let _ = fault;
            false
        }
    }
}
