//! Orders to a crawl that runs, through its folder: `trapline pause|resume|stop|reload|steer|status DIR`.
//!
//! Who has an order writes it to `control/NUMBER.order`; the crawl answers in `control/NUMBER.answer`, once it has been followed.
//! Files, because they work in folders with long names and on every file system that a crawl can be kept on.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use trapline_crawl::CrawlHandle;

use super::reloading::Reloading;
use super::steered::Steered;

/// How often somebody looks.
pub(super) const PERIOD: Duration = Duration::from_millis(100);

/// An order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Pause,
    Resume,
    Stop,
    /// Read the configuration anew.
    Reload,
    /// Set options.
    Steer(Steered),
    /// Forget all options that were set so.
    Forget,
}

impl Order {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Stop => "stop",
            Self::Reload => "reload",
            Self::Steer(_) => "steer",
            Self::Forget => "forget",
        }
    }

    /// Its name on a line, and what else it says on further ones.
    fn write(&self) -> String {
        match self {
            Self::Steer(steered) => format!("{}\n{}", self.name(), steered.write()),
            _ => self.name().to_owned(),
        }
    }

    fn read(text: &str) -> Option<Self> {
        let (name, rest) = text.split_once('\n').unwrap_or((text, ""));
        let steer = Self::Steer(Steered::read(rest));
        let all = [Self::Pause, Self::Resume, Self::Stop, Self::Reload, steer, Self::Forget];
        all.into_iter().find(|order| order.name() == name.trim())
    }
}

/// The side of the crawl.
pub(super) struct Control {
    folder: PathBuf,
}

impl Control {
    /// Orders that nobody waits for any more are forgotten.
    pub(super) fn new(folder: &Path) -> Result<Self, String> {
        let folder = folder.join("control");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        Ok(Self { folder })
    }

    /// Follows the orders that are there.
    pub(super) fn look(&self, handle: &CrawlHandle, reloading: &Arc<Reloading>) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "order") {
                continue;
            }
            let order = fs::read_to_string(&path).ok().and_then(|text| Order::read(&text));
            let _ = fs::remove_file(&path);
            let (handle, answer) = (handle.clone(), path.with_extension("answer"));
            let reloading = Arc::clone(reloading);
            tokio::spawn(async move {
                let done = |()| "done".to_owned();
                let said = match order {
                    Some(Order::Pause) => handle.pause().await.unwrap_or_else(ended).map(done),
                    Some(Order::Resume) => handle.resume().await.unwrap_or_else(ended).map(done),
                    Some(Order::Stop) => {
                        handle.stop().await;
                        Ok(done(()))
                    }
                    Some(Order::Reload) => reloading.reload().await,
                    Some(Order::Steer(steered)) => reloading.steer(steered).await,
                    Some(Order::Forget) => reloading.forget().await,
                    None => Err("this is no order".to_owned()),
                };
                let text = said.unwrap_or_else(|wrong| format!("wrong: {wrong}"));
                // Nobody may be waiting any more.
                let _ = write_whole(&answer, &text);
            });
        }
    }
}

fn ended() -> Result<(), String> {
    Err("the crawl has ended meanwhile".to_owned())
}

/// Gives an order to the crawl in a folder, waits until it has been followed, and answers what the crawl says.
pub(crate) fn order(folder: &Path, order: &Order, patience: Duration) -> Result<String, String> {
    let control = folder.join("control");
    let number = format!("{}-{:x}", std::process::id(), getrandom::u64().unwrap_or_default());
    let (ask, answer) = (control.join(format!("{number}.order")), control.join(format!("{number}.answer")));
    write_whole(&ask, &order.write()).map_err(|error| format!("cannot write {}: {error}", ask.display()))?;
    let begun = std::time::Instant::now();
    loop {
        if let Ok(text) = fs::read_to_string(&answer) {
            let _ = fs::remove_file(&answer);
            return match text.strip_prefix("wrong: ") {
                Some(wrong) => Err(wrong.to_owned()),
                None => Ok(text),
            };
        }
        if begun.elapsed() > patience {
            let _ = fs::remove_file(&ask);
            return Err(format!("the crawl did not answer within {} s", patience.as_secs()));
        }
        std::thread::sleep(PERIOD / 2);
    }
}

/// Writes a file that is there as a whole or not at all.
pub(super) fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    let part = path.with_extension("part");
    fs::write(&part, text)?;
    fs::rename(part, path)
}
