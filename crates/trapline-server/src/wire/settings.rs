//! Settings, by their names in the configuration.

use trapline_frontier::Settings;

use super::Unreadable;
use crate::proto::v1;

/// Those that are not the defaults.
pub(super) fn write(settings: &Settings) -> v1::Settings {
    let usual = Settings::default();
    let differing = Settings::NAMES.into_iter().filter_map(|name| {
        let value = settings.get(name).filter(|value| Some(value) != usual.get(name).as_ref())?;
        Some(v1::Setting { name: name.to_owned(), value })
    });
    v1::Settings { settings: differing.collect() }
}

pub(super) fn read(given: v1::Settings) -> Result<Settings, Unreadable> {
    let mut settings = Settings::default();
    for v1::Setting { name, value } in given.settings {
        settings.set(&name, &value).map_err(|error| Unreadable(error.to_string()))?;
    }
    Ok(settings)
}
