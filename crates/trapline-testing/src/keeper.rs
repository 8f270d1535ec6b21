//! The process that keeps a server on behalf of this one, and cleans up when this one is gone.
//!
//! Statics are not dropped, and a test that is killed drops nothing at all; but the pipe to the keeper is closed in either case.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A keeper. Dropping it waits until everything is cleaned up.
#[derive(Debug)]
pub(crate) struct Keeper {
    process: Child,
    /// None only while it is dropped.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Keeper {
    /// Starts a keeper: a script of ours, and what it is told.
    pub(crate) fn start(script: &str, arguments: &[&Path]) -> Result<Self, String> {
        let mut process = Command::new("sh")
            .arg("-c")
            .arg(script)
            .arg("keeper")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A group of its own, so that whoever kills the test's group does not kill its keeper.
            .process_group(0)
            .spawn()
            .map_err(|error| format!("cannot start `sh` to keep a server: {error}"))?;
        let orders = process.stdin.take();
        let answers = process.stdout.take().ok_or("the keeper has no output")?;
        Ok(Self { process, orders, answers: BufReader::new(answers) })
    }

    /// Gives an order, and waits for what came of it.
    pub(crate) fn order(&mut self, order: &str) -> Result<String, String> {
        let gone = |error| format!("the keeper of the server is gone, which was told to `{order}`: {error}");
        let orders = self.orders.as_mut().ok_or("the keeper is being dropped")?;
        writeln!(orders, "{order}").map_err(gone)?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer).map_err(gone)?;
        Ok(answer.trim_end().to_owned())
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.orders.take());
        // Nothing can be done about it here, and the next test will notice.
        let _ = self.process.wait();
    }
}
