//! Wakes those who wait for something to claim, by a connection that listens; where it cannot, they look again after a while.
//!
//! The channel is called like the schema, and a message on it is the number of the crawl that has something new, `7`, or will have in so
//! many milliseconds, `7@1000`: `SELECT pg_notify(current_schema(), …)`. A pooler's connection that is shared among transactions hears nothing; then waiting takes
//! as long as the caller allows.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_postgres::{AsyncMessage, Error};

use super::connector::{Carrier, Connector};
use super::gate;
use super::pool::Pool;

/// Between two attempts of which the first failed in a way that will not pass by itself, such as a password that was changed.
const NO_HOPE_WAIT: Duration = Duration::from_secs(30);

/// One for each store handle. Connects when somebody first wants to wait.
pub struct Wakeups {
    pool: Pool,
    heard: Arc<Heard>,
    listener: OnceLock<AbortHandle>,
}

/// Waits for news of one crawl, or of any. Each worker has its own, made before it looks for something to claim: what
/// comes between its look and its wait is not missed.
pub struct Ear {
    pool: Pool,
    heard: Arc<Heard>,
    news: watch::Receiver<News>,
    /// The news that it knows, and up to when it has looked for what it was told would come.
    known: u64,
    looked: Instant,
    /// How many waits in a row were for nothing, while nobody listened.
    in_vain: u32,
}

/// What is new.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    /// How often there was something.
    count: u64,
    /// When there will be something: the first that was told and had not come by then.
    soonest: Option<Instant>,
}

/// What the listener tells the ears.
struct Heard {
    any: watch::Sender<News>,
    /// By the crawl's number as it is written. Those that nobody waits for any more are dropped now and then.
    crawls: Mutex<BTreeMap<String, watch::Sender<News>>>,
    is_listening: AtomicBool,
}

impl Wakeups {
    pub(super) fn new(pool: &Pool) -> Self {
        let heard = Heard {
            any: watch::Sender::new(News::default()),
            crawls: Mutex::default(),
            is_listening: AtomicBool::new(false),
        };
        Self { pool: pool.clone(), heard: Arc::new(heard), listener: OnceLock::new() }
    }

    /// An ear for one crawl, by its number, or for all of them.
    pub fn ear(&self, crawl: Option<&str>) -> Ear {
        self.listener.get_or_init(|| {
            let channel = self.pool.address().schema().to_owned();
            let listening = listen(self.pool.connector().clone(), channel, Arc::clone(&self.heard));
            self.pool.spawn(listening).abort_handle()
        });
        let news = self.heard.subscribe(crawl);
        let known = news.borrow().count;
        let (pool, heard) = (self.pool.clone(), Arc::clone(&self.heard));
        Ear { pool, heard, news, known, looked: Instant::now(), in_vain: 0 }
    }

    /// Waits for news of a crawl from now on. A worker that looks first should have an [`ear`](Self::ear) before.
    pub async fn wait(&self, crawl: &str, at_most: Duration) -> bool {
        self.ear(Some(crawl)).wait(at_most).await
    }

    /// Whether somebody listens at the moment.
    pub fn is_listening(&self) -> bool {
        self.heard.is_listening.load(Ordering::Acquire)
    }
}

impl Drop for Wakeups {
    fn drop(&mut self) {
        if let Some(listener) = self.listener.get() {
            listener.abort();
        }
    }
}

impl Ear {
    /// Waits until there was news since the last wait, but no longer than that. True if there was. While nobody listens it
    /// returns sooner, so that somebody looks: after 25 to 50 ms at first, and later and later.
    pub async fn wait(&mut self, at_most: Duration) -> bool {
        let patience = if self.heard.is_listening.load(Ordering::Acquire) {
            self.in_vain = 0;
            at_most
        } else {
            self.in_vain = self.in_vain.saturating_add(1);
            at_most.min(gate::backed_off(self.in_vain))
        };
        let pool = self.pool.clone();
        let is_news = pool.run(self.hear(Instant::now().checked_add(patience))).await;
        if is_news {
            self.in_vain = 0;
        }
        is_news
    }
}

impl Ear {
    /// Waits for news, or until something comes that was told to come, or until it is time to give up.
    async fn hear(&mut self, give_up: Option<Instant>) -> bool {
        loop {
            let News { count, soonest } = *self.news.borrow_and_update();
            if count != self.known {
                self.known = count;
                return true;
            }
            let soonest = soonest.filter(|soonest| *soonest > self.looked);
            let changed = self.news.changed();
            let Some(until) = soonest.into_iter().chain(give_up).min() else {
                // Who tells is there as long as the ear is.
                let _ = changed.await;
                continue;
            };
            if tokio::time::timeout_at(until.into(), changed).await.is_err() {
                self.looked = until;
                return soonest == Some(until);
            }
        }
    }
}

impl News {
    /// Something is new, or will be after a while.
    fn add(&mut self, after: Duration) {
        let now = Instant::now();
        let passed = self.soonest.is_some_and(|soonest| soonest <= now);
        if after.is_zero() || passed {
            self.count += 1;
        }
        if passed {
            self.soonest = None;
        }
        if !after.is_zero() {
            self.soonest = self.soonest.into_iter().chain(now.checked_add(after)).min();
        }
    }
}

impl Heard {
    fn subscribe(&self, crawl: Option<&str>) -> watch::Receiver<News> {
        let mut crawls = self.crawls.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(crawl) = crawl else { return self.any.subscribe() };
        if let Some(sender) = crawls.get(crawl) {
            return sender.subscribe();
        }
        crawls.retain(|_, sender| sender.receiver_count() > 0);
        let (sender, receiver) = watch::channel(News::default());
        crawls.insert(crawl.to_owned(), sender);
        receiver
    }

    /// What a message says. One that says it in another way is news now.
    fn tell(&self, message: &str) {
        let (crawl, millis) = message.split_once('@').unwrap_or((message, ""));
        let after = Duration::from_millis(millis.parse().unwrap_or(0));
        self.any.send_modify(|news| news.add(after));
        let crawls = self.crawls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = crawls.get(crawl) {
            sender.send_modify(|news| news.add(after));
        }
    }

    /// Somebody listens from now on, or nobody does any more. Something may have been missed, and those who wait may have to be
    /// more patient or less: everybody look. Who makes an ear after that knows it already, hence under the lock.
    fn set_listening(&self, is_listening: bool) {
        let crawls = self.crawls.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_listening.store(is_listening, Ordering::Release);
        self.any.send_modify(|news| news.add(Duration::ZERO));
        for sender in crawls.values() {
            sender.send_modify(|news| news.add(Duration::ZERO));
        }
    }
}

/// Listens for as long as it is let.
async fn listen(connector: Connector, channel: String, heard: Arc<Heard>) {
    loop {
        let listened = listen_once(&connector, &channel, &heard).await;
        heard.set_listening(false);
        if listened.is_err() {
            tokio::time::sleep(NO_HOPE_WAIT).await;
        }
    }
}

/// Listens on one connection, until it ends. An error is one that the next connection would have as well.
async fn listen_once(connector: &Connector, channel: &str, heard: &Arc<Heard>) -> Result<(), Error> {
    let (client, carrier) = connector.connect().await?;
    let carried = tokio::spawn(carry(carrier, Arc::clone(heard)));
    // Listening is all it does: it is never idle.
    client.batch_execute(&format!("SET idle_session_timeout TO 0; LISTEN \"{channel}\"")).await?;
    heard.set_listening(true);
    // The client is kept until here: a connection without one ends.
    let _ = carried.await;
    drop(client);
    Ok(())
}

async fn carry(mut carrier: Carrier, heard: Arc<Heard>) {
    while let Some(Ok(message)) = poll_fn(|context| carrier.poll_message(context)).await {
        if let AsyncMessage::Notification(news) = message {
            heard.tell(news.payload());
        }
    }
}
