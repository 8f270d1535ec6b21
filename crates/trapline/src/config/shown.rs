//! `trapline config --show`: the configuration as it is in force, and where each value comes from.

use super::file_config::FileConfig;
use super::layers::Loaded;
use super::reading::Source;

/// All values, as TOML, each with its source. Passwords are left out.
pub(crate) fn shown(loaded: &Loaded) -> String {
    let mut text = String::new();
    let sections = FileConfig::SECTIONS.iter().chain([&""]);
    for name in sections {
        let Some(section) = loaded.config.section(name) else { continue };
        if !name.is_empty() {
            text.push_str(&format!("[{name}]\n"));
        }
        let mut lines = String::new();
        for item in section.items() {
            let option = if name.is_empty() { item.key.to_owned() } else { format!("{name}.{}", item.key) };
            let source = loaded.source(&option);
            let value = section.get(item.key).unwrap_or_default();
            // Keys that stand in no section would belong to the last one down here.
            if name.is_empty() && *source == Source::Default {
                continue;
            }
            lines.push_str(&format!("{} = {value}  # {source}\n", item.key));
        }
        if name.is_empty() {
            text = lines + if text.is_empty() { "" } else { "\n" } + &text;
        } else {
            text.push_str(&lines);
            text.push('\n');
        }
    }
    text
}
