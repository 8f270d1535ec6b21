//! Single values as bytes, for stores that keep them one by one: settings, terms, page records.

use std::sync::Arc;

use prost::Message;
use trapline_core::Terms;
use trapline_frontier::{PageRecord, Settings};

use super::Unreadable;
use super::candidate::TermsMessage;
use super::lease::PageMessage;
use super::settings::SettingsMessage;

pub(crate) fn settings(settings: &Settings) -> Vec<u8> {
    SettingsMessage::from(settings).encode_to_vec()
}

pub(crate) fn read_settings(bytes: &[u8]) -> Result<Settings, Unreadable> {
    SettingsMessage::decode(bytes)?.read()
}

/// Nothing for terms of which none is given.
pub(crate) fn terms(terms: &Terms) -> Option<Vec<u8>> {
    (*terms != Terms::default()).then(|| TermsMessage::from(terms).encode_to_vec())
}

pub(crate) fn read_terms(bytes: Option<&[u8]>) -> Result<Terms, Unreadable> {
    bytes.map_or(Ok(Terms::default()), |bytes| TermsMessage::decode(bytes)?.read())
}

pub(crate) fn page(page: &PageRecord) -> Vec<u8> {
    PageMessage::from(page).encode_to_vec()
}

pub(crate) fn read_page(bytes: &[u8]) -> Result<Arc<PageRecord>, Unreadable> {
    PageMessage::decode(bytes)?.read()
}
