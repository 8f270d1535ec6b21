//! Panics: caught where the simulation can go on to say so, and noticed where they happen beside it, in a thread of a
//! store.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::{Mutex, Once, PoisonError};

thread_local! {
    /// Whether a panic of this thread is caught, and told by whoever catches it.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
    /// Where the last one was that is.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Panics of threads whose panics nobody catches.
static STRAY: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// From now on a panic that is told as a breach is not printed besides, and one in a thread that a store has begun lets the
/// seed fail that is run meanwhile. For the whole process; once is enough.
pub fn watch_panics() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        let print = take_hook();
        set_hook(Box::new(move |info| {
            let place = info.location().map(|place| format!(" ({}:{})", place.file(), place.line()));
            let place = place.unwrap_or_default();
            if IS_CAUGHT.get() {
                PLACE.set(place);
                return;
            }
            print(info);
            let stray = format!("{}{place}", said(PanicHookInfo::payload(info)));
            STRAY.lock().unwrap_or_else(PoisonError::into_inner).push(stray);
        }));
    });
}

/// What was said by whoever panicked.
fn said(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("without a word")
}

/// Does something; Err is what was said if it panicked.
pub(crate) fn caught<T>(something: impl FnOnce() -> T) -> Result<T, String> {
    let was_caught = IS_CAUGHT.replace(true);
    let done = catch_unwind(AssertUnwindSafe(something));
    IS_CAUGHT.set(was_caught);
    done.map_err(|payload| format!("{}{}", said(&*payload), PLACE.take()))
}

/// What panicked beside the simulation since the last time somebody asked.
pub(crate) fn stray() -> Option<String> {
    let mut stray = STRAY.lock().unwrap_or_else(PoisonError::into_inner);
    (!stray.is_empty()).then(|| std::mem::take(&mut *stray).join("; "))
}
