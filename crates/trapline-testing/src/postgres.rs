//! A PostgreSQL server for tests.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::authority::Certificate;
use crate::keeper::Keeper;
use crate::place::{PORTS_TRIED, free_port, new_folder};
use crate::programs;

const ROLE: &str = "trapline";
const PASSWORD: &str = "for-tests-only";

/// How a server is made.
#[derive(Clone, Default)]
pub struct PostgresBuilder {
    careless: bool,
    tls: Option<Certificate>,
    settings: Vec<String>,
}

/// A server of its own: the superuser `trapline`, reached with a password on 127.0.0.1. Stopped and removed when dropped, and also when the
/// process ends in any other way.
#[derive(Debug)]
pub struct PostgresServer {
    folder: PathBuf,
    bin: PathBuf,
    port: u16,
    databases: AtomicU32,
    keeper: Mutex<Keeper>,
}

/// How a server is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Connections are closed, and everything is written.
    Fast,
    /// As if the power had failed, as far as processes go: it recovers when it starts again.
    Immediate,
}

impl PostgresBuilder {
    /// Nothing is synced to the disk, for tests that only want answers. Defaults to syncing.
    pub fn careless(mut self) -> Self {
        self.careless = true;
        self
    }

    /// Offers TLS with this certificate. Defaults to none.
    pub fn tls(mut self, certificate: Certificate) -> Self {
        self.tls = Some(certificate);
        self
    }

    /// A line of `postgresql.conf`, such as `max_connections = 20`.
    pub fn setting(mut self, line: &str) -> Self {
        self.settings.push(line.to_owned());
        self
    }

    /// Makes the server and waits until it is ready.
    pub fn start(self) -> Result<PostgresServer, String> {
        let (mut server, owner) = PostgresServer::bare()?;
        server.write("password", PASSWORD, owner)?;
        let local = "--username=trapline --auth-local=trust --auth-host=scram-sha-256 --encoding=UTF8 --locale=C --no-sync";
        let password = server.folder.join("password");
        server.order(&format!("initdb {local} --pwfile={}", password.display()), "made")?;
        if let Some(Certificate { certificate, key }) = &self.tls {
            server.write("server.crt", certificate, owner)?;
            server.write("server.key", key, owner)?;
        }
        server.start_somewhere(owner, |server| self.configuration(server))?;
        Ok(server)
    }

    fn configuration(&self, server: &PostgresServer) -> String {
        let folder = server.folder.display();
        let mut lines = vec![
            format!("port = {}", server.port),
            "listen_addresses = '127.0.0.1'".to_owned(),
            format!("unix_socket_directories = '{folder}'"),
        ];
        if self.careless {
            lines.extend(
                ["fsync = off", "synchronous_commit = off", "full_page_writes = off"].map(str::to_owned),
            );
        }
        if self.tls.is_some() {
            lines.push("ssl = on".to_owned());
            lines.push(format!("ssl_cert_file = '{folder}/server.crt'"));
            lines.push(format!("ssl_key_file = '{folder}/server.key'"));
        }
        lines.extend(self.settings.iter().cloned());
        lines.join("\n") + "\n"
    }
}

impl PostgresServer {
    /// Begins to make a server.
    pub fn builder() -> PostgresBuilder {
        PostgresBuilder::default()
    }

    /// One that all tests of a process share; each takes a database of its own. It syncs nothing to the disk.
    ///
    /// # Panics
    ///
    /// If there is no PostgreSQL here, with a sentence that says what to do.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<PostgresServer> = OnceLock::new();
        SHARED.get_or_init(|| match Self::builder().careless().start() {
            Ok(server) => server,
            Err(problem) => panic!("{problem}"),
        })
    }

    /// A replica of this one, which takes no writes until it is [promoted](Self::promote). From now on a commit here waits for it, so
    /// that nothing is lost when it takes over.
    pub fn standby(&self) -> Result<Self, String> {
        let (mut standby, owner) = Self::bare()?;
        let (socket, port) = (self.folder.display(), self.port);
        standby.order(
            &format!("copy --host={socket} --port={port} --username={ROLE} --checkpoint=fast"),
            "made",
        )?;
        standby.write("data/standby.signal", "", owner)?;
        standby.start_somewhere(owner, |standby| {
            let lines = [
                format!("port = {}", standby.port),
                "listen_addresses = '127.0.0.1'".to_owned(),
                format!("unix_socket_directories = '{}'", standby.folder.display()),
                format!(
                    "primary_conninfo = 'host={socket} port={port} user={ROLE} application_name=standby'"
                ),
            ];
            lines.join("\n") + "\n"
        })?;
        self.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'standby'")?;
        self.sql("postgres", "SELECT pg_reload_conf()")?;
        Ok(standby)
    }

    /// Makes a replica the one that is written to.
    pub fn promote(&self) -> Result<(), String> {
        let promoted = self.sql("postgres", "SELECT pg_promote()")?;
        if promoted == "t" { Ok(()) } else { Err(format!("pg_promote answered {promoted}")) }
    }

    /// A folder and its keeper, with nothing in it yet; and whom its files must belong to.
    fn bare() -> Result<(Self, Option<u32>), String> {
        let bin = programs::bin()?;
        let account = programs::account()?;
        let folder = new_folder("pg")?;
        // Empty where the server may run as who we are.
        let name = Path::new(account.map_or("", |(name, _)| name));
        let keeper = Keeper::start(include_str!("postgres.sh"), &[&folder, name, &bin])?;
        let owner = account.map(|(_, number)| number);
        give(&folder, owner)?;
        Ok((Self { folder, bin, port: 0, databases: AtomicU32::new(0), keeper: Mutex::new(keeper) }, owner))
    }

    /// Starts it on a free port, with the settings made for that.
    fn start_somewhere(
        &mut self,
        owner: Option<u32>,
        settings: impl Fn(&Self) -> String,
    ) -> Result<(), String> {
        let mut started = Err(String::new());
        for _ in 0..PORTS_TRIED {
            self.port = free_port()?;
            self.write("data/postgresql.auto.conf", &settings(self), owner)?;
            started = self.start_again();
            if started.is_ok() {
                break;
            }
        }
        started
    }

    /// The URL of a database on it.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{ROLE}:{PASSWORD}@127.0.0.1:{}/{database}", self.port)
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder that its socket is in, and its log in the file `log`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes a fresh database, and answers its name.
    pub fn create_database(&self) -> Result<String, String> {
        self.create_database_like("template0")
    }

    /// Makes a database as a copy of another one that nobody uses at the moment, and answers its name.
    pub fn create_database_like(&self, template: &str) -> Result<String, String> {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name} TEMPLATE {template}"))?;
        Ok(name)
    }

    /// Runs SQL in a database as the superuser, and answers what it printed: a line a row, `|` between columns.
    pub fn sql(&self, database: &str, sql: &str) -> Result<String, String> {
        // Some bring only the server's own programs.
        let own = self.bin.join("psql");
        let output = Command::new(if own.is_file() { own } else { PathBuf::from("psql") })
            .args(["--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--set=ON_ERROR_STOP=1"])
            .arg("--host")
            .arg(&self.folder)
            .args([
                "--port",
                &self.port.to_string(),
                "--username",
                ROLE,
                "--dbname",
                database,
                "--command",
                sql,
            ])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("cannot run psql: {error}"))?;
        if !output.status.success() {
            return Err(format!("psql: {sql}: {}", String::from_utf8_lossy(&output.stderr)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    /// Stops it; the folder stays.
    pub fn stop(&self, how: Stop) -> Result<(), String> {
        let signal = match how {
            Stop::Fast => "INT",
            Stop::Immediate => "QUIT",
        };
        self.order(&format!("stop {signal}"), "stopped")
    }

    /// Starts it after it was stopped, on the same port.
    pub fn start_again(&self) -> Result<(), String> {
        self.order("start", "ready")
    }

    /// What it wrote about itself so far.
    pub fn log(&self) -> String {
        std::fs::read(self.folder.join("log"))
            .map(|log| String::from_utf8_lossy(&log).into_owned())
            .unwrap_or_default()
    }

    fn order(&self, order: &str, expected: &str) -> Result<(), String> {
        let answer = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).order(order)?;
        if answer == expected {
            return Ok(());
        }
        let log = self.log();
        let from = log.len().saturating_sub(2_000);
        let end = log.get(from..).unwrap_or(&log);
        Err(format!(
            "PostgreSQL from {}: `{order}` answered `{answer}`; the end of its log:\n{end}",
            self.bin.display()
        ))
    }

    /// Writes a file that only the server may read.
    fn write(&self, name: &str, text: &str, owner: Option<u32>) -> Result<(), String> {
        let path = self.folder.join(name);
        let open =
            std::fs::OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&path);
        let written = open.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        give(&path, owner)
    }
}

fn give(path: &Path, owner: Option<u32>) -> Result<(), String> {
    let Some(owner) = owner else { return Ok(()) };
    std::os::unix::fs::chown(path, Some(owner), None)
        .map_err(|error| format!("cannot give {} to account {owner}: {error}", path.display()))
}
