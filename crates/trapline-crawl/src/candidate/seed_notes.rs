//! Where seeds are, kept in the store: a crawl that goes on, or another crawler on the same store, must know it before it
//! judges the first URL.

use trapline_core::{SplitUrl, Timestamp, public_hash};
use trapline_frontier::{Frontier, NoteWrite, Query, Rows, Scan, StoreError};

use super::scope::SeedPlaces;

/// What the keys of these notes begin with.
const PREFIX: &str = "seeds/";

/// The note of some places that are new.
pub(crate) fn note(places: &[String]) -> NoteWrite {
    let value = places.join("\n");
    let key = format!("{PREFIX}{:016x}", public_hash(&value));
    NoteWrite { key, value: Some(value.into_bytes()), expires: None }
}

/// Counts all places that were noted among the seeds.
pub(crate) async fn load(frontier: &Frontier, now: Timestamp, places: &SeedPlaces) -> Result<(), StoreError> {
    let mut scan = Scan::new(Query::Notes { prefix: PREFIX.to_owned() });
    loop {
        let page = frontier.scan(now, &scan).await?;
        let Rows::Notes(notes) = page.rows else { return Ok(()) };
        for note in notes {
            let text = String::from_utf8_lossy(&note.value);
            for url in text.lines().filter_map(|place| SplitUrl::parse(place).ok()) {
                places.add(&url);
            }
        }
        match page.cursor {
            None => return Ok(()),
            cursor => scan.cursor = cursor,
        }
    }
}
