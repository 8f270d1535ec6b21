//! Prometheus' text format: families of samples, written one after another.

use std::fmt::{Display, Write};

/// A text in the making.
#[derive(Default)]
pub(crate) struct Exposition {
    text: String,
    family: &'static str,
}

impl Exposition {
    /// Begins a family. `kind` is `counter`, `gauge` or `histogram`.
    pub(crate) fn family(&mut self, name: &'static str, kind: &str, help: &str) -> &mut Self {
        self.family = name;
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        self
    }

    /// A sample of the family without labels.
    pub(crate) fn value(&mut self, value: impl Display) {
        let _ = writeln!(self.text, "{} {value}", self.family);
    }

    /// A sample with labels, if any, whose values come from fixed lists: they are not escaped.
    pub(crate) fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<_> = labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.text, "{}{suffix}{labels} {value}", self.family);
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}
