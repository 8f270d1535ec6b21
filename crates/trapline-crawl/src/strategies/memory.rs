//! What a strategy remembers of a site: kept in the store as a note.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use trapline_core::Timestamp;
use trapline_frontier::{ErrorKind, Frontier, NoteWrite, Query, Rows, Scan, StoreError};

use crate::ports::World;

/// What a strategy remembers of a site: a few texts and numbers under names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    things: BTreeMap<String, String>,
}

impl Memory {
    /// The text under a name.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.things.get(name).map(String::as_str)
    }

    /// Remembers a text. It is kept on one line, and `=` in a name is another way to write `-`.
    pub fn set(&mut self, name: &str, text: impl AsRef<str>) {
        self.things.insert(one_line(name).replace('=', "-"), one_line(text.as_ref()));
    }

    /// The number under a name; 0 if there is none.
    pub fn number(&self, name: &str) -> u64 {
        self.text(name).and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// Remembers a number.
    pub fn set_number(&mut self, name: &str, number: u64) {
        self.set(name, number.to_string());
    }

    /// Forgets what is under a name.
    pub fn forget(&mut self, name: &str) {
        self.things.remove(name);
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.things.is_empty()
    }

    /// As a note has it: a line each, `name=text`.
    fn write(&self) -> Vec<u8> {
        let lines: String = self.things.iter().map(|(name, text)| format!("{name}={text}\n")).collect();
        lines.into_bytes()
    }

    /// What is kept of a strategy's memory of a site.
    pub(crate) async fn kept(
        frontier: &Frontier,
        now: Timestamp,
        strategy: &str,
        site: &str,
    ) -> Result<Self, StoreError> {
        Ok(Self::of(&frontier.scan(now, &note_of(&key(strategy, site))).await?.rows))
    }

    fn of(rows: &Rows) -> Self {
        match rows {
            Rows::Notes(notes) => notes.first().map(|note| Self::read(&note.value)).unwrap_or_default(),
            _ => Self::default(),
        }
    }

    /// What is no line of that kind does not count.
    fn read(note: &[u8]) -> Self {
        let text = String::from_utf8_lossy(note);
        let things = text.lines().filter_map(|line| line.split_once('='));
        Self { things: things.map(|(name, text)| (name.to_owned(), text.to_owned())).collect() }
    }
}

/// It ends with a sign that no site has, so that none is the beginning of another.
fn key(strategy: &str, site: &str) -> String {
    format!("strategy/{strategy}/{site}/")
}

fn note_of(key: &str) -> Scan {
    Scan { limit: 1, ..Scan::new(Query::Notes { prefix: key.to_owned() }) }
}

/// Without ends of lines.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// The memory of one site, while visits to it are under way.
#[derive(Debug)]
pub(crate) struct SiteMemory {
    key: String,
    memory: Mutex<Memory>,
}

impl SiteMemory {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be kept of it now.
    pub(crate) fn note(&self) -> NoteWrite {
        let memory = self.lock();
        let value = (!memory.is_empty()).then(|| memory.write());
        NoteWrite { key: self.key.clone(), value, expires: None }
    }
}

/// The memories of sites with visits under way: those of one site share one. When the last is settled, the store has it.
pub(crate) struct Memories {
    frontier: Frontier,
    world: Arc<dyn World>,
    present: Mutex<BTreeMap<String, Weak<SiteMemory>>>,
}

/// How long a store that is away is left alone, at first and at most.
const WAIT: Duration = Duration::from_millis(200);
const WAIT_MAX: Duration = Duration::from_secs(10);

/// So many are looked through at once for those that nobody has any more.
const SWEEP: usize = 1024;

impl Memories {
    pub(crate) fn new(frontier: Frontier, world: Arc<dyn World>) -> Self {
        Self { frontier, world, present: Mutex::default() }
    }

    /// What a strategy remembers of a site. Waits while the store is away.
    pub(crate) async fn of(&self, strategy: &str, site: &str) -> Result<Arc<SiteMemory>, StoreError> {
        let key = key(strategy, site);
        if let Some(memory) = self.present().get(&key).and_then(Weak::upgrade) {
            return Ok(memory);
        }
        let memory = Memory::of(&self.patiently(&note_of(&key)).await?);
        let mut present = self.present();
        // Somebody else may have asked meanwhile.
        if let Some(memory) = present.get(&key).and_then(Weak::upgrade) {
            return Ok(memory);
        }
        if present.len() >= SWEEP {
            present.retain(|_, memory| memory.strong_count() > 0);
        }
        let memory = Arc::new(SiteMemory { key: key.clone(), memory: Mutex::new(memory) });
        present.insert(key, Arc::downgrade(&memory));
        Ok(memory)
    }

    /// Asks the store, again and again while it is away.
    pub(crate) async fn patiently(&self, scan: &Scan) -> Result<Rows, StoreError> {
        let mut wait = WAIT;
        loop {
            let asked = async {
                let now = self.frontier.now().await?.unwrap_or_else(|| self.world.now());
                self.frontier.scan(now, scan).await
            };
            match asked.await {
                Ok(page) => return Ok(page.rows),
                Err(error) if error.kind() != ErrorKind::Unavailable => return Err(error),
                Err(_) => self.world.sleep_until(self.world.now() + wait).await,
            }
            wait = (wait * 2).min(WAIT_MAX);
        }
    }

    fn present(&self) -> MutexGuard<'_, BTreeMap<String, Weak<SiteMemory>>> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_reads_what_it_wrote_and_minds_nothing_else() {
        let mut memory = Memory::default();
        assert_eq!(memory.write(), b"");
        memory.set("why", "a\nb=c");
        memory.set_number("pages", 7);
        memory.set("gone", "x");
        memory.forget("gone");
        let read = Memory::read(&memory.write());
        assert_eq!(read, memory);
        assert_eq!((read.text("why"), read.number("pages"), read.number("why")), (Some("a b=c"), 7, 0));
        for bad in [&b"\xff\xfe=\x00"[..], b"no sign", b"=\n=="] {
            let _ = Memory::read(bad);
        }
        assert_eq!(Memory::read(b"pages=99999999999999999999").number("pages"), 0);
    }
}
