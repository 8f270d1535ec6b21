//! A server that speaks S3, for tests: Versity's gateway, which keeps buckets as folders.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::keeper::Keeper;
use crate::place::{PORTS_TRIED, fetched, free_port, new_folder};

/// Names another program.
const CHOSEN: &str = "TRAPLINE_S3_SERVER";

/// How long it may take to begin.
const PATIENCE: Duration = Duration::from_secs(30);

const ACCESS_KEY: &str = "trapline-test";
const SECRET_KEY: &str = "for-tests-only";

/// A server of its own. Stopped and removed when dropped, and also when the process ends in any other way.
#[derive(Debug)]
pub struct S3Server {
    folder: PathBuf,
    port: u16,
    keeper: Mutex<Keeper>,
}

impl S3Server {
    /// Starts a server with one bucket, and waits until it is ready.
    pub fn start(bucket: &str) -> Result<Self, String> {
        let program = program()?;
        let folder = new_folder("s3")?;
        for name in ["sidecar".to_owned(), format!("buckets/{bucket}")] {
            let path = folder.join(name);
            std::fs::create_dir_all(&path)
                .map_err(|error| format!("cannot make {}: {error}", path.display()))?;
        }
        // Its keeper hands the environment on. Nobody else starts processes that would mind.
        let script = format!(
            "export ROOT_ACCESS_KEY={ACCESS_KEY} ROOT_SECRET_KEY={SECRET_KEY}\n{}",
            include_str!("s3.sh")
        );
        let keeper = Mutex::new(Keeper::start(&script, &[&folder, &program])?);
        let mut server = Self { folder, port: 0, keeper };
        let mut started = Err(String::new());
        for _ in 0..PORTS_TRIED {
            server.port = free_port()?;
            started = server.start_again();
            if started.is_ok() {
                break;
            }
        }
        started.map(|()| server)
    }

    /// What a program needs in its environment to find it.
    pub fn environment(&self) -> [(&'static str, String); 5] {
        [
            ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port)),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY.to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
        ]
    }

    /// The folder that has the objects of a bucket in it, as files under their keys.
    pub fn bucket(&self, name: &str) -> PathBuf {
        self.folder.join("buckets").join(name)
    }

    /// Stops it at once; what it has stays.
    pub fn stop(&self) -> Result<(), String> {
        self.order("stop", "stopped")
    }

    /// Starts it after it was stopped, on the same port.
    pub fn start_again(&self) -> Result<(), String> {
        self.order(&format!("start {}", self.port), "started")?;
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            self.order("look", "running")?;
            if begun.elapsed() > PATIENCE {
                return Err(format!("the S3 server does not begin; its log:\n{}", log(&self.folder)));
            }
        }
        Ok(())
    }

    fn order(&self, order: &str, expected: &str) -> Result<(), String> {
        let answer = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).order(order)?;
        if answer == expected {
            return Ok(());
        }
        Err(format!("the S3 server: `{order}` answered `{answer}`; its log:\n{}", log(&self.folder)))
    }
}

fn log(folder: &Path) -> String {
    std::fs::read(folder.join("log"))
        .map(|log| String::from_utf8_lossy(&log).into_owned())
        .unwrap_or_default()
}

fn program() -> Result<PathBuf, String> {
    if let Some(chosen) = std::env::var_os(CHOSEN) {
        return Ok(PathBuf::from(chosen));
    }
    let built =
        fetched("s3-server").map(|folder| folder.join("versitygw")).filter(|program| program.is_file());
    built.ok_or_else(|| {
        format!("there is no S3 server here: `./test` builds one, `./test quick` does without, and {CHOSEN} names one")
    })
}
