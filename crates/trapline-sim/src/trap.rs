//! A trap: a calendar whose every day leads to the next, for ever.
//!
//! Not part of a web's pages: no walk would come to an end in it.

/// The first day of a host's calendar.
pub(crate) fn first_day(host: &str) -> String {
    day(host, 1)
}

/// What a day leads to: the next one, the next week, and a variation of itself.
pub(crate) fn links(host: &str, number: u64) -> Vec<String> {
    let (next, week) = (number.saturating_add(1), number.saturating_add(7));
    vec![day(host, next), day(host, week), format!("{}&view=print", day(host, number))]
}

/// The day of a path, if it is one of a calendar.
pub(crate) fn day_of(path: &str) -> Option<u64> {
    let day = path.strip_prefix("calendar?day=")?;
    day.strip_suffix("&view=print").unwrap_or(day).parse().ok()
}

fn day(host: &str, number: u64) -> String {
    format!("https://{host}/calendar?day={number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_leads_on() {
        let mut url = first_day("otter0.example");
        for number in 1..50 {
            let path = url.strip_prefix("https://otter0.example/").unwrap();
            assert_eq!(day_of(path), Some(number));
            url = links("otter0.example", number).swap_remove(0);
        }
        assert_eq!(day_of("calendar?day=4&view=print"), Some(4));
        for other in ["", "page/1", "calendar", "calendar?day=", "calendar?day=x"] {
            assert_eq!(day_of(other), None);
        }
    }
}
