//! Which terms queues were told for their hosts: kept in the store, so that each run tells those that are there already what has changed since.

use trapline_core::{QueueKeyPolicy, Terms};
use trapline_crawl::candidate::QueueOptions;
use trapline_frontier::{CrawlChange, Frontier, NoteWrite, Query, QueueChange, Rows, Scan, StoreError};

use super::plan;
use crate::config::{self, FileConfig, Flags};
use crate::moment;

/// The note in which it is kept.
const NOTE: &str = "told-terms";

/// What queues were told: options of the configuration, as they are set.
pub(super) struct TermsTold(Vec<String>);

/// The options that terms of queues come of.
const OPTIONS: [(&str, &str); 3] = [("", "host"), ("pace", "by_domain"), ("queue", "precedence")];

impl TermsTold {
    /// Tells queues that there are already on what terms they stand now, where that has changed since they were last told.
    pub(super) async fn tell(frontier: &Frontier, config: &FileConfig) -> Result<(), StoreError> {
        let told = Self::of(config);
        let before = Self::load(frontier).await?;
        // Only queues of hosts have terms of hosts.
        if told.0 != before.0 && config.queue.key == QueueKeyPolicy::Host {
            let (was, is) = (before.terms(), told.terms());
            tell_changes(frontier, &was, &is).await?;
        }
        if told.0 != before.0 {
            let value = Some(told.0.join("\n").into_bytes());
            let note = NoteWrite { key: NOTE.to_owned(), value, expires: None };
            frontier.steer_crawl(moment::now(), CrawlChange::Note(note)).await?;
        }
        Ok(())
    }

    fn of(config: &FileConfig) -> Self {
        let text = |(section, key): &(&str, &str)| {
            let value = config.section(section).and_then(|options| options.get(key)).unwrap_or_default();
            let name = if section.is_empty() { (*key).to_owned() } else { format!("{section}.{key}") };
            format!("{name}={}", value.replace('\n', " "))
        };
        Self(OPTIONS.iter().map(text).collect())
    }

    async fn load(frontier: &Frontier) -> Result<Self, StoreError> {
        let scan = Scan { limit: 1, ..Scan::new(Query::Notes { prefix: NOTE.to_owned() }) };
        let notes = match frontier.scan(moment::now(), &scan).await?.rows {
            Rows::Notes(notes) => notes,
            _ => Vec::new(),
        };
        let Some(note) = notes.into_iter().find(|note| note.key == NOTE) else {
            // Nobody was told anything: as if there were no terms.
            return Ok(Self::of(&FileConfig::default()));
        };
        Ok(Self(String::from_utf8_lossy(&note.value).lines().map(str::to_owned).collect()))
    }

    /// What does not do any more, because another version wrote it, is as if nobody had been told.
    fn terms(&self) -> QueueOptions {
        let read = config::read_flags(&Flags::default().set(&self.0));
        read.ok().and_then(|config| plan::queue_options(&config).ok()).unwrap_or_default()
    }
}

async fn tell_changes(frontier: &Frontier, was: &QueueOptions, is: &QueueOptions) -> Result<(), StoreError> {
    let mut scan = Scan::new(Query::Queues { keys: None, state: None });
    loop {
        let page = frontier.scan(moment::now(), &scan).await?;
        let Rows::Queues(queues) = page.rows else { return Ok(()) };
        for queue in queues {
            let host = host_of(&queue.key);
            let terms = is.terms(host);
            if was.terms(host) == terms {
                continue;
            }
            frontier.steer_queue(moment::now(), &queue.key, QueueChange::DefaultTerms).await?;
            if terms != Terms::default() {
                frontier.steer_queue(moment::now(), &queue.key, QueueChange::Terms(terms)).await?;
            }
        }
        match page.cursor {
            None => return Ok(()),
            cursor => scan.cursor = cursor,
        }
    }
}

/// A queue is named after its host, with the port behind it if that is another than usual.
fn host_of(key: &str) -> &str {
    match key.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => key,
    }
}
