//! `[strategy]`: what the crawl wants.

use trapline_crawl::StrategyChoice;

use crate::config::options::options;
use crate::config::value::Text;

options! {
    /// What the crawl wants: in which order, how much of it, and what again.
    Strategy {
        /// Its name: `basic` (everything once, in the order of the crawl), `breadth_first`, `depth_first`, `fifo`, `lifo`, `score` (by
        /// rules), `discovery` (some pages of each site) or `revisit` (everything again and again). Defaults to basic.
        name: String = "basic".to_owned();
        /// What it is told, each as "name=value", such as "interval=12h". Defaults to none.
        args: Vec<StrategyArgument> = Vec::new();
    }
}

impl Strategy {
    /// Which strategy, and with what arguments.
    pub(crate) fn choice(&self) -> StrategyChoice {
        let arguments = self.args.iter().map(StrategyArgument::pair).collect();
        StrategyChoice { name: self.name.clone(), arguments }
    }
}

/// A name and a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StrategyArgument {
    name: String,
    value: String,
}

impl StrategyArgument {
    pub(crate) fn pair(&self) -> (String, String) {
        (self.name.clone(), self.value.clone())
    }
}

impl Text for StrategyArgument {
    const FORM: &'static str = "\"name=value\", in quotes";

    fn of(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok(Self { name: name.trim().to_owned(), value: value.trim().to_owned() })
            }
            _ => Err(format!("`{text}` is no argument: write a name, = and a value, such as pages=100")),
        }
    }

    fn text(&self) -> String {
        format!("{}={}", self.name, self.value)
    }
}
