//! A machine whose clock is wrong, for one process: a library that is loaded before all others adds to what the kernel says.

use std::path::{Path, PathBuf};
use std::process::Command;

/// How far off, in seconds.
const OFF: &str = "TRAPLINE_CLOCK_OFF_SECS";

const LIBRARY: &str = "
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *t) {
    int answer = (int) syscall(SYS_clock_gettime, id, t);
    const char *off = getenv(\"TRAPLINE_CLOCK_OFF_SECS\");
    if (id == CLOCK_REALTIME && off) t->tv_sec += atol(off);
    return answer;
}
";

/// The library, in a folder that is removed with it.
pub(super) struct WrongClock(PathBuf);

impl WrongClock {
    /// Compiles it, with the compiler that Rust needs as well.
    pub(super) fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("trapline-clock-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let (source, library) = (folder.join("clock.c"), folder.join("clock.so"));
        std::fs::write(&source, LIBRARY).expect("a file can be written");
        let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status();
        assert!(built.expect("there is a C compiler").success());
        Self(folder)
    }

    /// Lets a process begin with its clock off by this.
    pub(super) fn set(&self, process: &mut Command, off_secs: i64) {
        process.env("LD_PRELOAD", self.library()).env(OFF, off_secs.to_string());
    }

    fn library(&self) -> PathBuf {
        Path::join(&self.0, "clock.so")
    }
}

impl Drop for WrongClock {
    fn drop(&mut self) {
        // What is left in a temporary folder is nobody's trouble.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
