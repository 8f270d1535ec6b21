//! Wakes those who wait for something to claim, by a connection that listens; where it cannot, they look again after a while.
//!
//! The channel is called like the schema, and a message on it is the number of the crawl that has something new:
//! `SELECT pg_notify(current_schema(), crawl::text)`. A pooler's connection that is shared among transactions hears nothing; then waiting takes
//! as long as the caller allows.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

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
    news: watch::Receiver<()>,
    /// How many waits in a row were for nothing, while nobody listened.
    in_vain: u32,
}

/// What the listener tells the ears.
struct Heard {
    any: watch::Sender<()>,
    /// By the crawl's number as it is written. Those that nobody waits for any more are dropped now and then.
    crawls: Mutex<BTreeMap<String, watch::Sender<()>>>,
    is_listening: AtomicBool,
}

impl Wakeups {
    pub(super) fn new(pool: &Pool) -> Self {
        let heard = Heard {
            any: watch::Sender::new(()),
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
        Ear { pool: self.pool.clone(), heard: Arc::clone(&self.heard), news, in_vain: 0 }
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
        let waited = pool.run(async { tokio::time::timeout(patience, self.news.changed()).await }).await;
        let is_news = waited.is_ok();
        if is_news {
            self.in_vain = 0;
        }
        is_news
    }
}

impl Heard {
    fn subscribe(&self, crawl: Option<&str>) -> watch::Receiver<()> {
        let mut crawls = self.crawls.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(crawl) = crawl else { return self.any.subscribe() };
        if let Some(sender) = crawls.get(crawl) {
            return sender.subscribe();
        }
        crawls.retain(|_, sender| sender.receiver_count() > 0);
        let (sender, receiver) = watch::channel(());
        crawls.insert(crawl.to_owned(), sender);
        receiver
    }

    fn tell(&self, crawl: &str) {
        self.any.send_replace(());
        let crawls = self.crawls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = crawls.get(crawl) {
            sender.send_replace(());
        }
    }

    /// Somebody listens from now on, or nobody does any more. Something may have been missed, and those who wait may have to be
    /// more patient or less: everybody look. Who makes an ear after that knows it already, hence under the lock.
    fn set_listening(&self, is_listening: bool) {
        let crawls = self.crawls.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_listening.store(is_listening, Ordering::Release);
        self.any.send_replace(());
        for sender in crawls.values() {
            sender.send_replace(());
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
