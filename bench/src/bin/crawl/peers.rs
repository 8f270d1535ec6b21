//! The other crawlers: how each is made, below the target folder, and how it is called.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::choice::Choice;

/// Where the sources of the peers are.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers");

/// Makes a crawler, if need be, and says how it is called.
pub fn command(name: &str, choice: &Choice, seeds: &Path, out: &Path) -> Result<Command, String> {
    let peers = target()?.join("peers");
    let source = Path::new(SOURCES).join(name);
    let Choice { concurrency, per_host, delay_s, robots, .. } = choice;
    let (concurrency, per_host) = (concurrency.to_string(), per_host.to_string());
    let (delay_s, delay_ms) = (delay_s.to_string(), format!("{:.0}", delay_s * 1000.0));
    let robots = if *robots { "on" } else { "off" };
    let mut command;
    match name {
        "ours" => {
            let program =
                choice.ours.as_ref().ok_or("`--ours PATH` says where a release binary of trapline is")?;
            command = Command::new(program);
            command.arg("crawl").arg("--seeds").arg(seeds).arg("--out").arg(out);
            command.args([
                "--concurrency",
                &concurrency,
                "--per-host",
                &per_host,
                "--no-sitemaps",
                "--quiet",
            ]);
            command.arg("--delay").arg(format!("{delay_ms}ms"));
            command.args([
                "--allow-network",
                "127.0.0.0/8",
                "--scope",
                "any",
                "--contact",
                "bench@example.org",
            ]);
            if robots == "off" {
                command.arg("--ignore-robots");
            }
            command.args(&choice.ours_flags);
        }
        "scrapy" | "scrapy-set" => {
            let source = Path::new(SOURCES).join("scrapy");
            let python = scrapy(&source, &peers.join("scrapy"))?;
            command = Command::new(python);
            command
                .arg(source.join("crawl.py"))
                .arg(seeds)
                .args([&concurrency, &per_host, &delay_s])
                .args([robots, if name == "scrapy" { "scrapy" } else { "set" }]);
        }
        "colly" => {
            let program = peers.join("colly/colly");
            run(Command::new("go").current_dir(&source).args(["build", "-o"]).arg(&program).arg("."))?;
            command = Command::new(program);
            command.arg(seeds).args([&concurrency, &delay_ms]).arg(robots);
        }
        "spider" => {
            let folder = peers.join("spider");
            let mut build = Command::new("cargo");
            build.args(["build", "--quiet", "--release", "--manifest-path"]).arg(source.join("Cargo.toml"));
            run(build.arg("--target-dir").arg(&folder))?;
            command = Command::new(folder.join("release/trapline-bench-spider"));
            command.arg(seeds).args([&concurrency, &per_host, &delay_ms]).arg(robots);
        }
        _ => return Err(format!("nobody is called `{name}`: ours, scrapy, scrapy-set, colly, spider")),
    }
    Ok(command)
}

/// The interpreter that has Scrapy.
fn scrapy(source: &Path, folder: &Path) -> Result<PathBuf, String> {
    let python = folder.join("bin/python");
    if !folder.join("bin/scrapy").is_file() {
        run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", "--requirement"]);
        run(install.arg(source.join("requirements.txt")))?;
    }
    Ok(python)
}

fn run(command: &mut Command) -> Result<(), String> {
    let shown = format!("{command:?}");
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{shown} failed: {status}")),
        Err(error) => Err(format!("cannot run {shown}: {error}")),
    }
}

/// The folder that this program was built into.
fn target() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    program
        .ancestors()
        .nth(2)
        .map(Path::to_owned)
        .ok_or_else(|| "this program is in no target folder".to_owned())
}
