//! The flags that every command has which reads the configuration.

use std::path::PathBuf;

use clap::Args;

use super::flags::Flags;
use super::layers::{Loaded, Refused, load};

/// Where the configuration comes from, and what is logged.
#[derive(Args, Clone, Default)]
pub(crate) struct ConfigFlags {
    /// The configuration: a TOML file. `trapline config --defaults` prints one with everything in it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Any option of the configuration, as section.key=value, such as pace.jitter=500ms. Can be given several times
    #[arg(long, value_name = "OPTION=VALUE")]
    set: Vec<String>,
    /// What is logged: error, warn, info, debug, trace or off; also by module, as in info,trapline_fetch=debug
    #[arg(long, value_name = "LEVELS")]
    log: Option<String>,
    /// How it is logged: text or json
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// A file to which the log is appended, instead of standard error
    #[arg(long, value_name = "FILE")]
    log_file: Option<String>,
}

impl ConfigFlags {
    /// Reads file, environment and flags; `flags` are those of the command itself, which win over `--set`.
    pub(crate) fn load(&self, flags: Flags) -> Result<Loaded, Refused> {
        let flags = Flags::default()
            .set(&self.set)
            .text("--log", "log.level", self.log.as_ref())
            .text("--log-format", "log.format", self.log_format.as_ref())
            .text("--log-file", "log.file", self.log_file.as_ref())
            .and(flags);
        load(self.config.as_deref(), std::env::vars_os(), &flags)
    }
}
