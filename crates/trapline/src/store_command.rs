//! `trapline store`: looks after stores as a whole, where `trapline frontier` looks after what is in them.

#[cfg(feature = "postgres")]
mod check;
mod copy;
#[cfg(feature = "postgres")]
mod migrate;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::ended;
use crate::output::Output;

/// Look after whole stores: copy them, and get databases ready
///
/// A store is named by its URL: disk:PATH for a folder, postgres://USER:PASSWORD@HOST:PORT/DATABASE for a database,
/// or grpc://HOST:PORT for what `trapline serve` serves.
///
/// Of a database: the password may also be in the environment, as PGPASSWORD. Behind a `?` there can be schema=NAME (`trapline` unless chosen), pool=COUNT (8),
/// sslmode=disable, prefer, require, verify-ca or verify-full, sslrootcert=FILE, connect_timeout=10s, statement_timeout=30s,
/// lock_timeout=5s, and some more that the manual lists.
///
/// Exit code 0: done. 1: done, with complaints. 2: it could not be done.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline store migrate postgres://crawler@db.example/frontier
  trapline store check 'postgres://crawler@db.example/frontier?sslmode=verify-full'
  trapline store check postgres://crawler@db.example/frontier --json | jq .complaints
  trapline store copy disk:crawl postgres://crawler@db.example/frontier")]
pub(crate) struct StoreCommand {
    /// Print for programs: one JSON object a line
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[cfg(feature = "postgres")]
    Check(check::CheckStore),
    Copy(copy::CopyStore),
    #[cfg(feature = "postgres")]
    Migrate(migrate::MigrateStore),
}

pub(crate) fn run(command: &StoreCommand) -> ExitCode {
    let mut out = Output::new(command.json);
    let (name, ended) = match &command.command {
        #[cfg(feature = "postgres")]
        Command::Check(check) => ("store check", check.run(&mut out)),
        Command::Copy(copy) => ("store copy", copy.run(&mut out)),
        #[cfg(feature = "postgres")]
        Command::Migrate(migrate) => ("store migrate", migrate.run(&mut out)),
    };
    let printed = out.finish();
    ended::exit(name, ended.and_then(|ended| printed.map(|()| ended)))
}
