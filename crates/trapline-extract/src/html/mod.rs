//! HTML: the scanner that finds tags and text, the reader that goes through them, and the harvest of links and facts.

mod attributes;
mod foreign;
mod harvest;
mod reader;
mod refresh;
mod scanner;
mod srcset;
mod tag;
mod visible;

#[cfg(test)]
mod oracle;

pub(crate) use harvest::Harvest;
pub(crate) use reader::HtmlReader;
pub(crate) use refresh::refresh_target;
