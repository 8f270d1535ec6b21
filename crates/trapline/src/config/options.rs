//! How options are declared: each once, with its meaning, its name, its kind and its default.
//!
//! `options!` makes of them the struct that the program reads, and what the commands tell about it.

use toml::de::DeTable;
use trapline_frontier::nearest;

use super::reading::{Given, Reading};

/// One option, as it was declared.
pub(crate) struct Item {
    pub(crate) key: &'static str,
    /// Its comment, line by line.
    pub(crate) doc: &'static [&'static str],
}

/// Options that belong together.
pub(crate) trait Options {
    /// What they are about, line by line.
    fn about(&self) -> &'static [&'static str];

    fn items(&self) -> &'static [Item];

    /// Sets one of them, and says whether it could.
    fn set(&mut self, key: &str, value: &Given<'_>, reading: &mut Reading<'_>) -> bool;

    /// The value of one of them, as TOML.
    fn get(&self, key: &str) -> Option<String>;
}

/// Declares options.
///
/// ```text
/// options! {
///     /// How often a host is asked.
///     Pace {
///         /// How long a host is left alone after a fetch. Defaults to 1s.
///         delay: Duration = Duration::from_secs(1);
///     }
/// }
/// ```
///
/// `field as "key"` gives an option another name in the file than in the program.
macro_rules! options {
    (
        $(#[doc = $about:literal])+
        $name:ident {
            $($(#[doc = $doc:literal])+ $field:ident $(as $key:literal)? : $kind:ty = $default:expr;)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            $($(#[doc = $doc])+ pub(crate) $field: $kind,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        impl $crate::config::options::Options for $name {
            fn about(&self) -> &'static [&'static str] {
                &[$($about),+]
            }

            fn items(&self) -> &'static [$crate::config::options::Item] {
                &[$($crate::config::options::Item {
                    key: $crate::config::options::key!($field $($key)?),
                    doc: &[$($doc),+],
                }),+]
            }

            fn set(
                &mut self,
                key: &str,
                value: &$crate::config::reading::Given<'_>,
                reading: &mut $crate::config::reading::Reading<'_>,
            ) -> bool {
                $(if key == $crate::config::options::key!($field $($key)?) {
                    let read = $crate::config::value::Value::read(value, reading);
                    return read.map(|read| self.$field = read).is_some();
                })+
                false
            }

            fn get(&self, key: &str) -> Option<String> {
                $(if key == $crate::config::options::key!($field $($key)?) {
                    return Some($crate::config::value::Value::write(&self.$field));
                })+
                None
            }
        }
    };
}

macro_rules! key {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $key:literal) => {
        $key
    };
}

pub(crate) use {key, options};

/// The names of options.
pub(crate) fn keys(options: &dyn Options) -> Vec<&'static str> {
    options.items().iter().map(|item| item.key).collect()
}

/// The nearest name, as a question, if one is near.
pub(crate) fn did_you_mean(name: &str, names: &[&'static str]) -> String {
    nearest(name, names).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

/// The nearest name, or all there are.
pub(crate) fn hint(name: &str, names: &[&'static str]) -> String {
    match did_you_mean(name, names) {
        near if near.is_empty() => format!("; there is {}", names.join(", ")),
        near => near,
    }
}

/// Sets all options that a table has. `unknown` says what is told of others; `note` hears what was set, and where it stands.
pub(crate) fn set_all(
    options: &mut dyn Options,
    table: &DeTable<'_>,
    reading: &mut Reading<'_>,
    mut unknown: impl FnMut(&str) -> String,
    mut note: impl FnMut(&str, &Reading<'_>, std::ops::Range<usize>),
) {
    let known = keys(options);
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        if !known.contains(&name) {
            reading.astray(key.span(), unknown(name));
        } else if reading.within(name, |reading| options.set(name, value, reading)) {
            note(name, reading, key.span());
        }
    }
}

/// Reads an entry of a list: a table with options of its own.
pub(crate) fn entry<O: Options + Default>(
    value: &Given<'_>,
    reading: &mut Reading<'_>,
    required: &[&str],
    check: impl Fn(&O) -> Result<(), &'static str>,
) -> Option<O> {
    entry_onto(O::default(), value, reading, required, check)
}

/// The same, onto options that are there.
pub(crate) fn entry_onto<O: Options>(
    mut options: O,
    value: &Given<'_>,
    reading: &mut Reading<'_>,
    required: &[&str],
    check: impl Fn(&O) -> Result<(), &'static str>,
) -> Option<O> {
    let table = match value.get_ref() {
        toml::de::DeValue::Table(table) => table,
        toml::de::DeValue::String(text) if reading.is_bare() && text.starts_with('{') => {
            return reading.unfold(text, value.span(), |value, reading| {
                entry_onto(options, value, reading, required, check)
            });
        }
        other => {
            reading.wrong(value.span(), super::value::misfit(other, "a table in braces, such as { … }"));
            return None;
        }
    };
    let known = keys(&options);
    let mut set = 0;
    let unknown = |name: &str| format!("there is no `{name}` here{}", hint(name, &known));
    set_all(&mut options, table, reading, unknown, |_, _, _| set += 1);
    let mut whole = set == table.len();
    for key in required.iter().filter(|key| !table.contains_key(**key)) {
        reading.wrong(value.span(), format!("`{key}` is missing"));
        whole = false;
    }
    if !whole {
        return None;
    }
    match check(&options) {
        Ok(()) => Some(options),
        Err(message) => {
            reading.wrong(value.span(), message);
            None
        }
    }
}

/// Writes an entry of a list, leaving out what nobody chose.
pub(crate) fn write_entry<O: Options + Default>(options: &O, required: &[&str]) -> String {
    let usual = O::default();
    let mut pairs = Vec::new();
    for item in options.items() {
        let value = options.get(item.key).unwrap_or_default();
        if required.contains(&item.key) || Some(&value) != usual.get(item.key).as_ref() {
            pairs.push(format!("{} = {value}", item.key));
        }
    }
    format!("{{ {} }}", pairs.join(", "))
}
