//! Values on their way in: which option is being read, from where, and the mistakes that were found.
//!
//! Reading goes on after a mistake, so that people see all of them at once.

use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::DeValue;

/// A value as somebody wrote it, with its place in the text.
pub(crate) type Given<'i> = Spanned<DeValue<'i>>;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// Nobody chose it.
    Default,
    /// A line of the file.
    File { name: String, line: usize },
    /// A variable of the environment.
    Variable(String),
    /// An argument of the command.
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { name, line } => write!(f, "{name}:{line}"),
            Self::Variable(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

/// Something that cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mistake {
    pub(crate) source: Source,
    /// The option, as `section.key`; empty if it cannot be said.
    pub(crate) option: String,
    /// What is wrong, and what would fit.
    pub(crate) message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.source)?;
        if !self.option.is_empty() {
            write!(f, "{}: ", self.option)?;
        }
        f.write_str(&self.message)
    }
}

/// What a layer of the configuration is written in.
pub(crate) enum Layer {
    /// The name of the file, and where its lines begin.
    File {
        name: String,
        lines: Vec<usize>,
    },
    Variable(String),
    Flag(String),
}

impl Layer {
    pub(crate) fn file(name: String, text: &str) -> Self {
        let lines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self::File { name, lines: lines.collect() }
    }

    /// The source of what stands there.
    pub(crate) fn at(&self, span: Range<usize>) -> Source {
        match self {
            Self::File { name, lines } => {
                let line = lines.partition_point(|begin| *begin <= span.start) + 1;
                Source::File { name: name.clone(), line }
            }
            Self::Variable(name) => Source::Variable(name.clone()),
            Self::Flag(name) => Source::Flag(name.clone()),
        }
    }
}

/// One option being read.
pub(crate) struct Reading<'r> {
    layer: &'r Layer,
    mistakes: &'r mut Vec<Mistake>,
    /// The option, as `section.key`, with places in lists.
    option: String,
    /// Whether values are bare texts, as in the environment, without the quotes and brackets of TOML.
    bare: bool,
}

impl<'r> Reading<'r> {
    pub(crate) fn new(layer: &'r Layer, mistakes: &'r mut Vec<Mistake>) -> Self {
        let bare = !matches!(layer, Layer::File { .. });
        Self { layer, mistakes, option: String::new(), bare }
    }

    /// Whether this value is a text without quotes, which may stand for anything.
    pub(crate) fn is_bare(&self) -> bool {
        self.bare
    }

    pub(crate) fn source(&self, span: Range<usize>) -> Source {
        self.layer.at(span)
    }

    /// Notes a mistake in the option that is being read.
    pub(crate) fn wrong(&mut self, span: Range<usize>, message: impl Into<String>) {
        let (source, option) = (self.layer.at(span), self.option.clone());
        self.mistakes.push(Mistake { source, option, message: message.into() });
    }

    /// Notes a mistake outside of all options.
    pub(crate) fn astray(&mut self, span: Range<usize>, message: impl Into<String>) {
        let source = self.layer.at(span);
        self.mistakes.push(Mistake { source, option: String::new(), message: message.into() });
    }

    /// Reads something inside what is being read: a key of a section, or an entry of a list.
    pub(crate) fn within<T>(&mut self, name: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.option.len();
        if before > 0 && !name.starts_with('[') {
            self.option.push('.');
        }
        self.option.push_str(name);
        let done = read(self);
        self.option.truncate(before);
        done
    }

    /// Reads a text as TOML, if it is one.
    pub(crate) fn unfold<T>(
        &mut self,
        text: &str,
        span: Range<usize>,
        read: impl FnOnce(&Given<'_>, &mut Self) -> Option<T>,
    ) -> Option<T> {
        match DeValue::parse(text) {
            Ok(value) => {
                self.bare = false;
                let done = read(&value, self);
                self.bare = true;
                done
            }
            Err(error) => {
                self.wrong(span, format!("`{text}` cannot be read: {}", error.message()));
                None
            }
        }
    }
}
