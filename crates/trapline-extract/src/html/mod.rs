//! HTML: the scanner that finds tags and text, and the reader that finds links and facts in them.

mod attributes;
mod foreign;
mod reader;
mod refresh;
mod scanner;
mod srcset;
mod tag;
mod visible;

#[cfg(test)]
mod oracle;

pub(crate) use reader::{Harvest, HtmlReader};
pub(crate) use refresh::refresh_target;
