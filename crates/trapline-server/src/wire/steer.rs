//! Acts of steering.

use trapline_core::{IdentityKey, Preparer, Request, Timestamp};
use trapline_frontier::{
    CrawlChange, DeadChange, DeadLetters, NewCrawl, Pattern, QueueChange, Steer, Steered, UrlChange,
    UrlFilter, UrlsChange,
};

use super::{Unreadable, byte, candidate, chosen, read_identity, record, settings, settle, write_identity};
use crate::proto::v1;
use v1::steer_request::Target;
use v1::{crawl_change, dead_change, queue_change, url_change, urls_change};

pub(crate) fn write(steer: &Steer) -> Target {
    match steer {
        Steer::Queue(key, change) => {
            Target::Queue(v1::QueueChange { key: key.clone(), change: Some(write_queue(change)) })
        }
        Steer::Url(identity, change) => Target::Url(v1::UrlChange {
            which: Some(url_change::Which::Identity(write_identity(*identity))),
            change: Some(match change {
                UrlChange::Forget => url_change::Change::Forget(true),
                UrlChange::Class(class) => url_change::Change::Class(u32::from(*class)),
            }),
        }),
        Steer::Urls(UrlFilter { key, pattern }, change) => Target::Urls(v1::UrlsChange {
            key: key.clone(),
            pattern: pattern.as_ref().map(ToString::to_string),
            change: Some(match change {
                UrlsChange::Forget => urls_change::Change::Forget(true),
                UrlsChange::Revisit => urls_change::Change::Revisit(true),
                UrlsChange::ForgetPages(before) => {
                    urls_change::Change::ForgetPagesBeforeMs(before.as_millis())
                }
            }),
        }),
        Steer::Dead(which, change) => Target::Dead(v1::DeadChange {
            which: Some(match which {
                DeadLetters::All => dead_change::Which::All(true),
                DeadLetters::Queue(key) => dead_change::Which::Key(key.clone()),
                DeadLetters::Url(identity) => dead_change::Which::Identity(write_identity(*identity)),
            }),
            change: Some(match change {
                DeadChange::Replay => dead_change::Change::Replay(true),
                DeadChange::Purge => dead_change::Change::Purge(true),
            }),
        }),
        Steer::Crawl(change) => Target::Change(v1::CrawlChange { change: Some(write_crawl(change)) }),
    }
}

fn write_queue(change: &QueueChange) -> queue_change::Change {
    match change {
        QueueChange::Terms(terms) => queue_change::Change::Terms(candidate::write_terms(terms)),
        QueueChange::DefaultTerms => queue_change::Change::DefaultTerms(true),
        QueueChange::Block(until) => queue_change::Change::BlockUntilMs(until.as_millis()),
        QueueChange::Unblock => queue_change::Change::Unblock(true),
        QueueChange::Retire => queue_change::Change::Retire(true),
        QueueChange::Reinstate => queue_change::Change::Reinstate(true),
        QueueChange::Purge(None) => queue_change::Change::PurgeAll(true),
        QueueChange::Purge(Some(pattern)) => queue_change::Change::Purge(pattern.to_string()),
        QueueChange::Delete => queue_change::Change::Delete(true),
    }
}

fn write_crawl(change: &CrawlChange) -> crawl_change::Change {
    use crawl_change::Change;
    match change {
        CrawlChange::Create(NewCrawl { key, partitions, settings }) => Change::Create(v1::NewCrawl {
            key: key.as_bytes().to_vec(),
            partitions: Some(*partitions),
            settings: Some(settings::write(settings)),
        }),
        CrawlChange::Set(given) => {
            let setting =
                |(name, value): &(String, String)| v1::Setting { name: name.clone(), value: value.clone() };
            Change::Set(v1::Settings { settings: given.iter().map(setting).collect() })
        }
        CrawlChange::Pause => Change::Pause(true),
        CrawlChange::Resume => Change::Resume(true),
        CrawlChange::Finish(reason) => Change::Finish(reason.clone()),
        CrawlChange::Delete => Change::Delete(true),
        CrawlChange::Note(note) => Change::Note(settle::write_note(note)),
        CrawlChange::Restore(records) => {
            Change::Restore(v1::Records { rows: records.iter().map(record::write).collect() })
        }
        CrawlChange::Purge(pattern) => Change::Purge(pattern.to_string()),
        CrawlChange::Cancel(job) => Change::Cancel(*job),
    }
}

/// Whether a URL is named by its text, which only the crawl's preparer can find.
pub(crate) fn names_url(target: &Target) -> bool {
    match target {
        Target::Url(change) => matches!(change.which, Some(url_change::Which::Url(_))),
        Target::Dead(change) => matches!(change.which, Some(dead_change::Which::Url(_))),
        _ => false,
    }
}

/// Whether it makes a crawl.
pub(crate) fn creates(target: &Target) -> bool {
    matches!(target, Target::Change(v1::CrawlChange { change: Some(crawl_change::Change::Create(_)) }))
}

/// Reads one. `preparer` is there if a URL is named by its text.
pub(crate) fn read(target: Target, preparer: Option<&Preparer>) -> Result<Steer, Unreadable> {
    let no_change = || Unreadable::lacks("a `change`");
    Ok(match target {
        Target::Queue(v1::QueueChange { key, change }) => {
            Steer::Queue(key, read_queue(change.ok_or_else(no_change)?)?)
        }
        Target::Url(v1::UrlChange { which, change }) => {
            let identity = match which.ok_or_else(|| Unreadable::lacks("a `url` or an `identity`"))? {
                url_change::Which::Url(url) => identify(url, preparer)?,
                url_change::Which::Identity(identity) => read_identity(&identity)?,
            };
            let change = match change.ok_or_else(no_change)? {
                url_change::Change::Forget(word) => chosen("forget", word, UrlChange::Forget)?,
                url_change::Change::Class(class) => UrlChange::Class(byte("class", class)?),
            };
            Steer::Url(identity, change)
        }
        Target::Urls(v1::UrlsChange { key, pattern, change }) => {
            let change = match change.ok_or_else(no_change)? {
                urls_change::Change::Forget(word) => chosen("forget", word, UrlsChange::Forget)?,
                urls_change::Change::Revisit(word) => chosen("revisit", word, UrlsChange::Revisit)?,
                urls_change::Change::ForgetPagesBeforeMs(before) => {
                    UrlsChange::ForgetPages(Timestamp::from_millis(before))
                }
            };
            Steer::Urls(UrlFilter { key, pattern: pattern.map(Pattern::new) }, change)
        }
        Target::Dead(v1::DeadChange { which, change }) => {
            let which = match which
                .ok_or_else(|| Unreadable::lacks("which dead letters: `all`, a `key`, a `url`"))?
            {
                dead_change::Which::All(word) => chosen("all", word, DeadLetters::All)?,
                dead_change::Which::Key(key) => DeadLetters::Queue(key),
                dead_change::Which::Url(url) => DeadLetters::Url(identify(url, preparer)?),
                dead_change::Which::Identity(identity) => DeadLetters::Url(read_identity(&identity)?),
            };
            let change = match change.ok_or_else(no_change)? {
                dead_change::Change::Replay(word) => chosen("replay", word, DeadChange::Replay)?,
                dead_change::Change::Purge(word) => chosen("purge", word, DeadChange::Purge)?,
            };
            Steer::Dead(which, change)
        }
        Target::Change(v1::CrawlChange { change }) => {
            Steer::Crawl(read_crawl(change.ok_or_else(no_change)?)?)
        }
    })
}

pub(super) fn identify(
    url: String,
    preparer: Option<&Preparer>,
) -> Result<trapline_core::Identity, Unreadable> {
    let preparer = preparer.ok_or_else(|| Unreadable::lacks("an `identity`"))?;
    let candidate = preparer.prepare(Request::get(url)).map_err(|error| Unreadable(error.to_string()))?;
    Ok(candidate.identity)
}

fn read_queue(change: queue_change::Change) -> Result<QueueChange, Unreadable> {
    Ok(match change {
        queue_change::Change::Terms(terms) => QueueChange::Terms(candidate::read_terms(terms)?),
        queue_change::Change::DefaultTerms(word) => chosen("default_terms", word, QueueChange::DefaultTerms)?,
        queue_change::Change::BlockUntilMs(until) => QueueChange::Block(Timestamp::from_millis(until)),
        queue_change::Change::Unblock(word) => chosen("unblock", word, QueueChange::Unblock)?,
        queue_change::Change::Retire(word) => chosen("retire", word, QueueChange::Retire)?,
        queue_change::Change::Reinstate(word) => chosen("reinstate", word, QueueChange::Reinstate)?,
        queue_change::Change::PurgeAll(word) => chosen("purge_all", word, QueueChange::Purge(None))?,
        queue_change::Change::Purge(pattern) => QueueChange::Purge(Some(Pattern::new(pattern))),
        queue_change::Change::Delete(word) => chosen("delete", word, QueueChange::Delete)?,
    })
}

fn read_crawl(change: crawl_change::Change) -> Result<CrawlChange, Unreadable> {
    use crawl_change::Change;
    Ok(match change {
        Change::Create(v1::NewCrawl { key, partitions, settings }) => CrawlChange::Create(NewCrawl {
            key: match &*key {
                [] => IdentityKey::draw(),
                key => read_key(key)?,
            },
            partitions: partitions.unwrap_or(256),
            settings: settings::read(settings.unwrap_or_default())?,
        }),
        Change::Set(given) => CrawlChange::Set(
            given.settings.into_iter().map(|setting| (setting.name, setting.value)).collect(),
        ),
        Change::Pause(word) => chosen("pause", word, CrawlChange::Pause)?,
        Change::Resume(word) => chosen("resume", word, CrawlChange::Resume)?,
        Change::Finish(reason) => CrawlChange::Finish(reason),
        Change::Delete(word) => chosen("delete", word, CrawlChange::Delete)?,
        Change::Note(note) => CrawlChange::Note(settle::read_note(note)),
        Change::Restore(records) => {
            CrawlChange::Restore(records.rows.into_iter().map(record::read).collect::<Result<_, _>>()?)
        }
        Change::Purge(pattern) => CrawlChange::Purge(Pattern::new(pattern)),
        Change::Cancel(job) => CrawlChange::Cancel(job),
    })
}

pub(super) fn read_key(bytes: &[u8]) -> Result<IdentityKey, Unreadable> {
    let bytes = bytes
        .try_into()
        .map_err(|_| Unreadable::beyond("key", format!("{} bytes long", bytes.len()), "32 bytes long"))?;
    Ok(IdentityKey::from_bytes(bytes))
}

pub(crate) fn write_steered(steered: Steered) -> v1::SteerResponse {
    let Steered { affected, job } = steered;
    v1::SteerResponse { affected, job }
}

pub(crate) fn read_steered(steered: v1::SteerResponse) -> Steered {
    let v1::SteerResponse { affected, job } = steered;
    Steered { affected, job }
}
