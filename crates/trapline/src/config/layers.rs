//! The layers one upon the other: defaults, the file, the environment, flags.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::check::check;
use super::file_config::FileConfig;
use super::flags::Flags;
use super::options::{did_you_mean, entry_onto, hint, keys, set_all};
use super::reading::{Given, Layer, Mistake, Reading, Source};
use super::sections::HostOverride;

/// What the variables of the environment begin with.
const PREFIX: &str = "TRAPLINE__";

/// A configuration, and where each value came from.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) config: FileConfig,
    /// By option, as `section.key`; what is not there is the default.
    sources: BTreeMap<String, Source>,
}

impl Loaded {
    /// Where the value of an option came from.
    pub(crate) fn source(&self, option: &str) -> &Source {
        self.sources.get(option).unwrap_or(&Source::Default)
    }
}

/// Why there is no configuration.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The file cannot be read.
    Unreadable(String),
    /// What it says, or what flags and the environment say, cannot be meant. Never empty.
    Mistakes(Vec<Mistake>),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(message) => f.write_str(message),
            Self::Mistakes(mistakes) => {
                f.write_str("the configuration cannot be meant:")?;
                mistakes.iter().try_for_each(|mistake| write!(f, "\n  {mistake}"))
            }
        }
    }
}

/// Reads the file, if one is named, then the environment, then flags. Finds all mistakes, not only the first.
pub(crate) fn load(
    file: Option<&Path>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    flags: &Flags,
) -> Result<Loaded, Refused> {
    read(file, environment, flags)?.finish()
}

/// The same of flags alone, as far as each value can be meant by itself: what others say to it is not known yet.
pub(crate) fn read_flags(flags: &Flags) -> Result<FileConfig, Refused> {
    let Layers { config, mistakes, .. } = read(None, [], flags)?;
    if mistakes.is_empty() { Ok(config) } else { Err(Refused::Mistakes(mistakes)) }
}

/// A configuration that was put together, if all of it can be meant.
pub(crate) fn checked(config: FileConfig) -> Result<FileConfig, Refused> {
    let layers = Layers { config, ..Layers::default() };
    layers.finish().map(|loaded| loaded.config)
}

/// An entry of `[[host]]` with some options set, written as a table in braces.
pub(crate) fn with_options(host: HostOverride, table: &str) -> Result<HostOverride, Refused> {
    let layer = Layer::Flag("--host".to_owned());
    let mut mistakes = Vec::new();
    let mut reading = Reading::new(&layer, &mut mistakes);
    let set = reading.unfold(table, 0..0, |value, reading| entry_onto(host, value, reading, &[], |_| Ok(())));
    set.ok_or(Refused::Mistakes(mistakes))
}

fn read(
    file: Option<&Path>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    flags: &Flags,
) -> Result<Layers, Refused> {
    let mut layers = Layers::default();
    if let Some(path) = file {
        let name = path.display().to_string();
        let bytes = std::fs::read(path)
            .map_err(|error| Refused::Unreadable(format!("cannot read the configuration {name}: {error}")))?;
        layers.file(name, &bytes);
    }
    let mut variables: Vec<_> = environment.into_iter().collect();
    variables.sort();
    for (name, value) in &variables {
        layers.variable(name, value);
    }
    for flag in &flags.0 {
        let layer = Layer::Flag(flag.name.clone());
        let value = match &flag.texts[..] {
            [text] => bare(text),
            texts => Spanned::new(0..0, DeValue::Array(texts.iter().map(|text| bare(text)).collect())),
        };
        layers.set(&layer, &flag.option, &value);
    }
    Ok(layers)
}

/// A text as a value, which may stand for anything.
fn bare(text: &str) -> Given<'_> {
    Spanned::new(0..0, DeValue::String(text.into()))
}

#[derive(Default)]
struct Layers {
    config: FileConfig,
    sources: BTreeMap<String, Source>,
    mistakes: Vec<Mistake>,
}

impl Layers {
    fn file(&mut self, name: String, bytes: &[u8]) {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
            Err(error) => {
                let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
                let source = Source::File { name, line };
                let message = "this is not UTF-8, which TOML is written in".to_owned();
                return self.mistakes.push(Mistake { source, option: String::new(), message });
            }
        };
        let layer = Layer::file(name, text);
        let (table, errors) = DeTable::parse_recoverable(text);
        self.mistakes.extend(errors.iter().map(|error| Mistake {
            source: layer.at(error.span().unwrap_or(0..0)),
            option: String::new(),
            message: format!("this is not TOML: {}", error.message()),
        }));
        // What follows from a line that cannot be read need not be told as well.
        let broken: Vec<_> = self.mistakes.iter().map(|mistake| mistake.source.clone()).collect();
        self.document(&layer, table.get_ref());
        let told = broken.len();
        let mut place = 0;
        self.mistakes.retain(|mistake| {
            place += 1;
            place <= told || !broken.contains(&mistake.source)
        });
    }

    fn document(&mut self, layer: &Layer, table: &DeTable<'_>) {
        let lists = keys(&self.config.lists);
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let is_section = FileConfig::SECTIONS.contains(&name);
            let message = match value.get_ref() {
                _ if lists.contains(&name) => {
                    self.set(layer, name, value);
                    continue;
                }
                DeValue::Table(table) if is_section => {
                    self.section(layer, name, table);
                    continue;
                }
                _ if is_section => format!("`{name}` is a section: write [{name}] on a line of its own"),
                _ => self.no_section(name),
            };
            Reading::new(layer, &mut self.mistakes).astray(key.span(), message);
        }
    }

    fn section(&mut self, layer: &Layer, name: &str, table: &DeTable<'_>) {
        let usual = FileConfig::default();
        let Some(options) = self.config.section_mut(name) else { return };
        let sources = &mut self.sources;
        Reading::new(layer, &mut self.mistakes).within(name, |reading| {
            let unknown = |key: &str| no_option(&usual, name, key);
            set_all(options, table, reading, unknown, |key, reading, span| {
                sources.insert(format!("{name}.{key}"), reading.source(span));
            });
        });
    }

    fn no_section(&self, name: &str) -> String {
        if let Some(first) = self.config.section(name).and_then(|section| section.items().first()) {
            return format!("`{name}` is a section: name one of its options, such as {name}.{}", first.key);
        }
        let inside = self.config.sections_with(name);
        if let [section] = inside[..] {
            return format!("`{name}` belongs to the section [{section}]");
        }
        let mut known = FileConfig::SECTIONS.to_vec();
        known.extend(keys(&self.config.lists));
        format!("there is no section [{name}]{}", hint(name, &known))
    }

    fn variable(&mut self, name: &OsString, value: &OsString) {
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { return };
        let layer = Layer::Variable(format!("{PREFIX}{rest}"));
        let option = rest.to_lowercase().replacen("__", ".", 1);
        match value.to_str() {
            Some(text) => self.set(&layer, &option, &bare(text)),
            None => {
                let mut reading = Reading::new(&layer, &mut self.mistakes);
                reading.within(&option, |reading| reading.wrong(0..0, "its value is not UTF-8"));
            }
        }
    }

    /// Sets one option, named as `section.key`, or `key` where it stands in no section.
    fn set(&mut self, layer: &Layer, option: &str, value: &Given<'_>) {
        let (section, key) = option.split_once('.').unwrap_or(("", option));
        let message = match self.config.section(section) {
            Some(options) if keys(options).contains(&key) => None,
            Some(_) if !section.is_empty() => Some(no_option(&self.config, section, key)),
            _ => Some(self.no_section(if section.is_empty() { key } else { section })),
        };
        let mut reading = Reading::new(layer, &mut self.mistakes);
        if let Some(message) = message {
            return reading.astray(value.span(), message);
        }
        let Some(options) = self.config.section_mut(section) else { return };
        if reading.within(option, |reading| options.set(key, value, reading)) {
            let source = reading.source(value.span());
            self.sources.insert(option.to_owned(), source);
        }
    }

    fn finish(mut self) -> Result<Loaded, Refused> {
        let loaded = Loaded { config: self.config, sources: self.sources };
        let known: Vec<_> = self.mistakes.iter().map(|mistake| mistake.option.clone()).collect();
        self.mistakes.extend(check(&loaded, &known));
        if self.mistakes.is_empty() {
            return Ok(loaded);
        }
        self.mistakes.sort();
        self.mistakes.dedup();
        Err(Refused::Mistakes(self.mistakes))
    }
}

/// What is told of an option that a section does not have.
fn no_option(config: &FileConfig, section: &str, key: &str) -> String {
    let known = config.section(section).map(keys).unwrap_or_default();
    let hint = match config.sections_with(key)[..] {
        [other] if did_you_mean(key, &known).is_empty() => format!("; it belongs to [{other}]"),
        _ => hint(key, &known),
    };
    format!("there is no option `{key}` in [{section}]{hint}")
}
