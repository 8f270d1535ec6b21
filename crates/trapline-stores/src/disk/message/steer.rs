//! Acts of steering as messages, the creation of crawls among them.

use prost::{Message, Oneof};
use trapline_core::IdentityKey;
use trapline_frontier::{
    CrawlChange, DeadChange, DeadLetters, NewCrawl, Pattern, QueueChange, Steer, UrlChange, UrlFilter,
    UrlsChange,
};

use super::candidate::TermsMessage;
use super::record::RecordMessage;
use super::settings::SettingsMessage;
use super::settle::NoteMessage;
use super::{IdentityMessage, Unreadable, read_byte, read_time};

#[derive(Clone, PartialEq, Message)]
pub(super) struct ActMessage {
    #[prost(oneof = "Target", tags = "1, 2, 3, 4, 5")]
    target: Option<Target>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Target {
    #[prost(message, tag = "1")]
    Queue(QueueMessage),
    #[prost(message, tag = "2")]
    Url(UrlMessage),
    #[prost(message, tag = "3")]
    Dead(DeadMessage),
    #[prost(message, tag = "4")]
    Crawl(CrawlMessage),
    #[prost(message, tag = "5")]
    Urls(UrlsMessage),
}

#[derive(Clone, PartialEq, Message)]
struct QueueMessage {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(oneof = "QueueChangeMessage", tags = "2, 3, 4, 5, 6, 7, 8, 9, 10")]
    change: Option<QueueChangeMessage>,
}

#[derive(Clone, PartialEq, Oneof)]
enum QueueChangeMessage {
    #[prost(message, tag = "2")]
    Terms(TermsMessage),
    #[prost(bool, tag = "3")]
    DefaultTerms(bool),
    #[prost(uint64, tag = "4")]
    Block(u64),
    #[prost(bool, tag = "5")]
    Unblock(bool),
    #[prost(bool, tag = "6")]
    Retire(bool),
    #[prost(bool, tag = "7")]
    Reinstate(bool),
    #[prost(bool, tag = "8")]
    PurgeAll(bool),
    #[prost(string, tag = "9")]
    Purge(String),
    #[prost(bool, tag = "10")]
    Delete(bool),
}

#[derive(Clone, PartialEq, Message)]
struct UrlMessage {
    #[prost(message, optional, tag = "1")]
    identity: Option<IdentityMessage>,
    #[prost(oneof = "UrlChangeMessage", tags = "2, 3")]
    change: Option<UrlChangeMessage>,
}

#[derive(Clone, PartialEq, Oneof)]
enum UrlChangeMessage {
    #[prost(bool, tag = "2")]
    Forget(bool),
    #[prost(uint32, tag = "3")]
    Class(u32),
}

#[derive(Clone, PartialEq, Message)]
struct UrlsMessage {
    #[prost(string, optional, tag = "1")]
    key: Option<String>,
    #[prost(string, optional, tag = "2")]
    pattern: Option<String>,
    #[prost(oneof = "UrlsChangeMessage", tags = "3, 4, 5")]
    change: Option<UrlsChangeMessage>,
}

#[derive(Clone, PartialEq, Oneof)]
enum UrlsChangeMessage {
    #[prost(bool, tag = "3")]
    Forget(bool),
    #[prost(bool, tag = "4")]
    Revisit(bool),
    #[prost(uint64, tag = "5")]
    ForgetPages(u64),
}

#[derive(Clone, PartialEq, Message)]
struct DeadMessage {
    #[prost(oneof = "WhichMessage", tags = "1, 2, 3")]
    which: Option<WhichMessage>,
    #[prost(oneof = "DeadChangeMessage", tags = "4, 5")]
    change: Option<DeadChangeMessage>,
}

#[derive(Clone, PartialEq, Oneof)]
enum WhichMessage {
    #[prost(bool, tag = "1")]
    All(bool),
    #[prost(string, tag = "2")]
    Queue(String),
    #[prost(message, tag = "3")]
    Url(IdentityMessage),
}

#[derive(Clone, PartialEq, Oneof)]
enum DeadChangeMessage {
    #[prost(bool, tag = "4")]
    Replay(bool),
    #[prost(bool, tag = "5")]
    Purge(bool),
}

#[derive(Clone, PartialEq, Message)]
struct CrawlMessage {
    #[prost(oneof = "CrawlChangeMessage", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10")]
    change: Option<CrawlChangeMessage>,
}

#[derive(Clone, PartialEq, Oneof)]
enum CrawlChangeMessage {
    #[prost(message, boxed, tag = "1")]
    Create(Box<CreateMessage>),
    #[prost(message, tag = "2")]
    Set(SetMessage),
    #[prost(bool, tag = "3")]
    Pause(bool),
    #[prost(bool, tag = "4")]
    Resume(bool),
    #[prost(string, tag = "5")]
    Finish(String),
    #[prost(bool, tag = "6")]
    Delete(bool),
    #[prost(message, tag = "7")]
    Note(NoteMessage),
    #[prost(uint64, tag = "8")]
    Cancel(u64),
    #[prost(string, tag = "9")]
    Purge(String),
    #[prost(message, tag = "10")]
    Restore(RestoreMessage),
}

#[derive(Clone, PartialEq, Message)]
struct CreateMessage {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(uint32, tag = "2")]
    partitions: u32,
    #[prost(message, optional, tag = "3")]
    settings: Option<SettingsMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct RestoreMessage {
    #[prost(message, repeated, tag = "1")]
    records: Vec<RecordMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct SetMessage {
    #[prost(message, repeated, tag = "1")]
    settings: Vec<SettingMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct SettingMessage {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

impl From<&Steer> for ActMessage {
    fn from(steer: &Steer) -> Self {
        let target = match steer {
            Steer::Queue(key, change) => {
                Target::Queue(QueueMessage { key: key.clone(), change: Some(change.into()) })
            }
            Steer::Url(identity, change) => Target::Url(UrlMessage {
                identity: Some((*identity).into()),
                change: Some(match change {
                    UrlChange::Forget => UrlChangeMessage::Forget(true),
                    UrlChange::Class(class) => UrlChangeMessage::Class((*class).into()),
                }),
            }),
            Steer::Urls(UrlFilter { key, pattern }, change) => Target::Urls(UrlsMessage {
                key: key.clone(),
                pattern: pattern.as_ref().map(ToString::to_string),
                change: Some(match change {
                    UrlsChange::Forget => UrlsChangeMessage::Forget(true),
                    UrlsChange::Revisit => UrlsChangeMessage::Revisit(true),
                    UrlsChange::ForgetPages(before) => UrlsChangeMessage::ForgetPages(before.as_millis()),
                }),
            }),
            Steer::Dead(which, change) => Target::Dead(DeadMessage {
                which: Some(match which {
                    DeadLetters::All => WhichMessage::All(true),
                    DeadLetters::Queue(key) => WhichMessage::Queue(key.clone()),
                    DeadLetters::Url(identity) => WhichMessage::Url((*identity).into()),
                }),
                change: Some(match change {
                    DeadChange::Replay => DeadChangeMessage::Replay(true),
                    DeadChange::Purge => DeadChangeMessage::Purge(true),
                }),
            }),
            Steer::Crawl(change) => Target::Crawl(CrawlMessage { change: Some(change.into()) }),
        };
        Self { target: Some(target) }
    }
}

impl ActMessage {
    pub(super) fn read(self) -> Result<Steer, Unreadable> {
        let lacks_change = Unreadable::Lacks("a change");
        Ok(match self.target.ok_or(Unreadable::Lacks("a target"))? {
            Target::Queue(QueueMessage { key, change }) => {
                Steer::Queue(key, change.ok_or(lacks_change)?.read()?)
            }
            Target::Url(UrlMessage { identity, change }) => {
                let identity = identity.ok_or(Unreadable::Lacks("an identity"))?.into();
                let change = match change.ok_or(lacks_change)? {
                    UrlChangeMessage::Forget(_) => UrlChange::Forget,
                    UrlChangeMessage::Class(class) => UrlChange::Class(read_byte(class, "a class")?),
                };
                Steer::Url(identity, change)
            }
            Target::Urls(UrlsMessage { key, pattern, change }) => {
                let change = match change.ok_or(lacks_change)? {
                    UrlsChangeMessage::Forget(_) => UrlsChange::Forget,
                    UrlsChangeMessage::Revisit(_) => UrlsChange::Revisit,
                    UrlsChangeMessage::ForgetPages(before) => UrlsChange::ForgetPages(read_time(before)),
                };
                Steer::Urls(UrlFilter { key, pattern: pattern.map(Pattern::new) }, change)
            }
            Target::Dead(DeadMessage { which, change }) => {
                let which = match which.ok_or(Unreadable::Lacks("which dead letters"))? {
                    WhichMessage::All(_) => DeadLetters::All,
                    WhichMessage::Queue(key) => DeadLetters::Queue(key),
                    WhichMessage::Url(identity) => DeadLetters::Url(identity.into()),
                };
                let change = match change.ok_or(lacks_change)? {
                    DeadChangeMessage::Replay(_) => DeadChange::Replay,
                    DeadChangeMessage::Purge(_) => DeadChange::Purge,
                };
                Steer::Dead(which, change)
            }
            Target::Crawl(CrawlMessage { change }) => Steer::Crawl(change.ok_or(lacks_change)?.read()?),
        })
    }
}

impl From<&QueueChange> for QueueChangeMessage {
    fn from(change: &QueueChange) -> Self {
        match change {
            QueueChange::Terms(terms) => Self::Terms(terms.into()),
            QueueChange::DefaultTerms => Self::DefaultTerms(true),
            QueueChange::Block(until) => Self::Block(until.as_millis()),
            QueueChange::Unblock => Self::Unblock(true),
            QueueChange::Retire => Self::Retire(true),
            QueueChange::Reinstate => Self::Reinstate(true),
            QueueChange::Purge(None) => Self::PurgeAll(true),
            QueueChange::Purge(Some(pattern)) => Self::Purge(pattern.to_string()),
            QueueChange::Delete => Self::Delete(true),
        }
    }
}

impl QueueChangeMessage {
    fn read(self) -> Result<QueueChange, Unreadable> {
        Ok(match self {
            Self::Terms(terms) => QueueChange::Terms(terms.read()?),
            Self::DefaultTerms(_) => QueueChange::DefaultTerms,
            Self::Block(until) => QueueChange::Block(read_time(until)),
            Self::Unblock(_) => QueueChange::Unblock,
            Self::Retire(_) => QueueChange::Retire,
            Self::Reinstate(_) => QueueChange::Reinstate,
            Self::PurgeAll(_) => QueueChange::Purge(None),
            Self::Purge(pattern) => QueueChange::Purge(Some(Pattern::new(pattern))),
            Self::Delete(_) => QueueChange::Delete,
        })
    }
}

impl From<&CrawlChange> for CrawlChangeMessage {
    fn from(change: &CrawlChange) -> Self {
        match change {
            CrawlChange::Create(NewCrawl { key, partitions, settings }) => {
                Self::Create(Box::new(CreateMessage {
                    key: key.as_bytes().to_vec(),
                    partitions: *partitions,
                    settings: Some(settings.into()),
                }))
            }
            CrawlChange::Set(settings) => {
                let setting = |(name, value): &(String, String)| SettingMessage {
                    name: name.clone(),
                    value: value.clone(),
                };
                Self::Set(SetMessage { settings: settings.iter().map(setting).collect() })
            }
            CrawlChange::Pause => Self::Pause(true),
            CrawlChange::Resume => Self::Resume(true),
            CrawlChange::Finish(reason) => Self::Finish(reason.clone()),
            CrawlChange::Delete => Self::Delete(true),
            CrawlChange::Note(note) => Self::Note(note.into()),
            CrawlChange::Cancel(job) => Self::Cancel(*job),
            CrawlChange::Restore(records) => {
                Self::Restore(RestoreMessage { records: records.iter().map(RecordMessage::from).collect() })
            }
            CrawlChange::Purge(pattern) => Self::Purge(pattern.to_string()),
        }
    }
}

impl CrawlChangeMessage {
    fn read(self) -> Result<CrawlChange, Unreadable> {
        Ok(match self {
            Self::Create(create) => {
                let CreateMessage { key, partitions, settings } = *create;
                let key = key.try_into().map_err(|_| Unreadable::Beyond("a key"))?;
                CrawlChange::Create(NewCrawl {
                    key: IdentityKey::from_bytes(key),
                    partitions,
                    settings: settings.ok_or(Unreadable::Lacks("settings"))?.read()?,
                })
            }
            Self::Set(SetMessage { settings }) => {
                CrawlChange::Set(settings.into_iter().map(|setting| (setting.name, setting.value)).collect())
            }
            Self::Pause(_) => CrawlChange::Pause,
            Self::Resume(_) => CrawlChange::Resume,
            Self::Finish(reason) => CrawlChange::Finish(reason),
            Self::Delete(_) => CrawlChange::Delete,
            Self::Note(note) => CrawlChange::Note(note.read()),
            Self::Cancel(job) => CrawlChange::Cancel(job),
            Self::Restore(RestoreMessage { records }) => CrawlChange::Restore(
                records.into_iter().map(RecordMessage::read).collect::<Result<_, Unreadable>>()?,
            ),
            Self::Purge(pattern) => CrawlChange::Purge(Pattern::new(pattern)),
        })
    }
}

/// Every act there is.
#[cfg(test)]
pub(super) fn samples() -> Vec<Steer> {
    use trapline_core::{Identity, Terms, Timestamp};
    let identity = Identity(3 << 64 | 4);
    let queue = [
        QueueChange::Terms(super::candidate::sample_terms()),
        QueueChange::Terms(Terms::default()),
        QueueChange::DefaultTerms,
        QueueChange::Block(Timestamp::ZERO),
        QueueChange::Unblock,
        QueueChange::Retire,
        QueueChange::Reinstate,
        QueueChange::Purge(None),
        QueueChange::Purge(Some(Pattern::new(""))),
        QueueChange::Purge(Some(Pattern::new("*x*"))),
        QueueChange::Delete,
    ];
    let mut samples: Vec<_> = queue.into_iter().map(|change| Steer::Queue("k".to_owned(), change)).collect();
    for change in [UrlChange::Forget, UrlChange::Class(0), UrlChange::Class(255)] {
        samples.push(Steer::Url(identity, change));
    }
    for which in [
        UrlFilter::default(),
        UrlFilter { key: Some(String::new()), pattern: Some(Pattern::new("")) },
        UrlFilter { key: None, pattern: Some(Pattern::new("*x*")) },
    ] {
        for change in [
            UrlsChange::Forget,
            UrlsChange::Revisit,
            UrlsChange::ForgetPages(Timestamp::ZERO),
            UrlsChange::ForgetPages(Timestamp::from_millis(u64::MAX)),
        ] {
            samples.push(Steer::Urls(which.clone(), change));
        }
    }
    for which in [DeadLetters::All, DeadLetters::Queue(String::new()), DeadLetters::Url(identity)] {
        for change in [DeadChange::Replay, DeadChange::Purge] {
            samples.push(Steer::Dead(which.clone(), change));
        }
    }
    let mut crawl = vec![
        CrawlChange::Set(Vec::new()),
        CrawlChange::Set(vec![("a".to_owned(), "b".to_owned()), (String::new(), String::new())]),
        CrawlChange::Pause,
        CrawlChange::Resume,
        CrawlChange::Finish(String::new()),
        CrawlChange::Delete,
        CrawlChange::Cancel(0),
        CrawlChange::Purge(Pattern::new("")),
        CrawlChange::Restore(Vec::new()),
        CrawlChange::Restore(super::record::samples()),
        CrawlChange::Purge(Pattern::new("*x*")),
    ];
    crawl.extend(super::settle::sample_notes().into_iter().map(CrawlChange::Note));
    crawl.extend(super::settings::samples().into_iter().map(|settings| {
        CrawlChange::Create(NewCrawl { key: IdentityKey::from_seed(9), partitions: 7, settings })
    }));
    samples.extend(crawl.into_iter().map(Steer::Crawl));
    samples
}
