//! Flags of commands as a layer of the configuration: which option each one sets.

/// One flag that was given.
#[derive(Clone)]
pub(super) struct Flag {
    /// What people call it, such as `--delay`.
    pub(super) name: String,
    /// The option, as `section.key`.
    pub(super) option: String,
    pub(super) texts: Vec<String>,
}

/// The flags that were given.
#[derive(Clone, Default)]
pub(crate) struct Flags(pub(super) Vec<Flag>);

impl Flags {
    /// A flag with a text, if it was given.
    pub(crate) fn text(mut self, name: &str, option: &str, text: Option<impl ToString>) -> Self {
        if let Some(text) = text {
            let texts = vec![text.to_string()];
            self.0.push(Flag { name: name.to_owned(), option: option.to_owned(), texts });
        }
        self
    }

    /// A flag that can be given several times, for an option that is a list.
    pub(crate) fn texts<T: ToString>(mut self, name: &str, option: &str, texts: &[T]) -> Self {
        if !texts.is_empty() {
            let texts = texts.iter().map(T::to_string).collect();
            self.0.push(Flag { name: name.to_owned(), option: option.to_owned(), texts });
        }
        self
    }

    /// A flag without a text, which sets an option to something.
    pub(crate) fn switch(self, name: &str, option: &str, given: bool, to: &str) -> Self {
        self.text(name, option, given.then_some(to))
    }

    /// These, and then others.
    pub(crate) fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// `--set section.key=value`, for every option there is.
    pub(crate) fn set(mut self, assignments: &[String]) -> Self {
        for assignment in assignments {
            let (option, text) = assignment.split_once('=').unwrap_or((assignment, ""));
            let name = format!("--set {}", option.trim());
            self = self.text(&name, option.trim(), Some(text.trim()));
        }
        self
    }
}
