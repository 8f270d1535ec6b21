//! Everything again and again, at a fixed interval.

use std::sync::Arc;
use std::time::Duration;

use super::{After, ArgumentError, Arguments, Memory, Seen, Strategy, wrong};

const DAY: Duration = Duration::from_secs(86_400);

/// Visits each page again when `interval` has passed; what was given up, too.
#[derive(Debug)]
struct Revisit {
    interval: Duration,
}

pub(super) fn make(arguments: &mut Arguments) -> Result<Arc<dyn Strategy>, ArgumentError> {
    let interval = arguments.duration("interval", DAY)?;
    if interval.is_zero() {
        return Err(wrong("interval", "0", "no page would ever be left alone; 1d is usual"));
    }
    Ok(Arc::new(Revisit { interval }))
}

impl Strategy for Revisit {
    fn name(&self) -> &'static str {
        "revisit"
    }

    fn page(&self, seen: &Seen<'_>, _: &mut Memory) -> After {
        After { next: Some(seen.now + self.interval), ..After::default() }
    }

    fn error(&self, seen: &Seen<'_>, _: &mut Memory) -> After {
        // While it is tried again anyway, that comes first.
        let again = (!seen.tries_again).then(|| seen.now + self.interval);
        After { again, ..After::default() }
    }
}
