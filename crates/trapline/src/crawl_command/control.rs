//! Orders to a crawl that runs, through its folder: `trapline pause|resume|stop|status DIR`.
//!
//! Who has an order writes it to `control/NUMBER.order`; the crawl answers in `control/NUMBER.answer`, once it has been followed.
//! Files, because they work in folders with long names and on every file system that a crawl can be kept on.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use trapline_crawl::CrawlHandle;

/// How often somebody looks.
pub(super) const PERIOD: Duration = Duration::from_millis(100);

/// An order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Pause,
    Resume,
    Stop,
}

impl Order {
    const ALL: [(Self, &str); 3] = [(Self::Pause, "pause"), (Self::Resume, "resume"), (Self::Stop, "stop")];

    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(order, _)| *order == self).map_or("", |(_, name)| name)
    }

    fn read(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, name)| *name == text.trim()).map(|(order, _)| *order)
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
    pub(super) fn look(&self, handle: &CrawlHandle) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "order") {
                continue;
            }
            let order = fs::read_to_string(&path).ok().and_then(|text| Order::read(&text));
            let _ = fs::remove_file(&path);
            let (handle, answer) = (handle.clone(), path.with_extension("answer"));
            tokio::spawn(async move {
                let said = match order {
                    Some(Order::Pause) => handle.pause().await.unwrap_or_else(ended),
                    Some(Order::Resume) => handle.resume().await.unwrap_or_else(ended),
                    Some(Order::Stop) => {
                        handle.stop().await;
                        Ok(())
                    }
                    None => Err("this is no order".to_owned()),
                };
                let text = said.map_or_else(|wrong| format!("wrong: {wrong}"), |()| "done".to_owned());
                // Nobody may be waiting any more.
                let _ = write_whole(&answer, &text);
            });
        }
    }
}

fn ended() -> Result<(), String> {
    Err("the crawl has ended meanwhile".to_owned())
}

/// Gives an order to the crawl in a folder, and waits until it has been followed.
pub(crate) fn order(folder: &Path, order: Order, patience: Duration) -> Result<(), String> {
    let control = folder.join("control");
    let number = format!("{}-{:x}", std::process::id(), getrandom::u64().unwrap_or_default());
    let (ask, answer) = (control.join(format!("{number}.order")), control.join(format!("{number}.answer")));
    write_whole(&ask, order.name()).map_err(|error| format!("cannot write {}: {error}", ask.display()))?;
    let begun = std::time::Instant::now();
    loop {
        if let Ok(text) = fs::read_to_string(&answer) {
            let _ = fs::remove_file(&answer);
            return match text.strip_prefix("wrong: ") {
                Some(wrong) => Err(wrong.to_owned()),
                None => Ok(()),
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
