//! An nginx for tests: several websites, each on a loopback address of its own, all on one port, with one access log.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::keeper::Keeper;
use crate::place::{PORTS_TRIED, fetched, free_port, new_folder};
use crate::site::Site;
use crate::visit::{FORMAT, Visit};

/// Names another nginx.
const CHOSEN: &str = "TRAPLINE_NGINX";

/// The site that is asked to find out how far the log is.
const LAST: &str = "trapline-nginx-last";

/// A server of its own. Stopped and removed when dropped, and also when the process ends in any other way.
///
/// One worker process does everything in turn, so its log is in order.
#[derive(Debug)]
pub struct Nginx {
    folder: PathBuf,
    program: PathBuf,
    sites: Vec<Site>,
    /// The address of the first site; the others follow.
    first: Ipv4Addr,
    port: u16,
    /// How much of the log was taken.
    taken: Mutex<usize>,
    keeper: Mutex<Keeper>,
}

impl Nginx {
    /// Starts a server of these sites, 200 at most, and waits until it is ready.
    pub fn start(sites: Vec<Site>) -> Result<Self, String> {
        let program = program()?;
        let folder = new_folder("nginx")?;
        let keeper = Mutex::new(Keeper::start(include_str!("nginx.sh"), &[&folder, &program])?);
        let first = next_block();
        let mut server = Self { folder, program, sites, first, port: 0, taken: Mutex::new(0), keeper };
        let mut started = Err(String::new());
        for _ in 0..PORTS_TRIED {
            server.port = free_port()?;
            server.configure()?;
            started = server.order("start", "ready");
            if started.is_ok() {
                break;
            }
        }
        started.map(|()| server)
    }

    /// Stops it; the log stays.
    pub fn stop(&self) -> Result<(), String> {
        self.order("stop", "stopped")
    }

    /// Starts it after it was stopped, on the same addresses, with these sites instead.
    pub fn start_again(&mut self, sites: Vec<Site>) -> Result<(), String> {
        self.sites = sites;
        self.configure()?;
        self.order("start", "ready")
    }

    /// The sites, in the order of their addresses.
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// The address of a site, by its number.
    pub fn address(&self, site: usize) -> SocketAddrV4 {
        let number = u32::try_from(site).expect("a block of addresses has few sites");
        SocketAddrV4::new(Ipv4Addr::from(u32::from(self.first) + number), self.port)
    }

    /// The URL of a site's root, by its address: `http://127.98.7.1:4711/`.
    pub fn url(&self, site: usize) -> String {
        format!("http://{}/", self.address(site))
    }

    /// The URL of a site's root, by its name.
    pub fn named_url(&self, site: usize) -> String {
        format!("http://{}:{}/", self.sites[site].name, self.port)
    }

    /// The folder that its log is in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What was asked of it since this was last called, in the order of the ends. Requests that are still being answered are left for
    /// the next time.
    pub fn take_visits(&self) -> Result<Vec<Visit>, String> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        self.write_out()?;
        let path = self.folder.join("visits");
        let log = std::fs::read_to_string(&path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let visits = log[*taken..].lines().map(Visit::read).collect::<Result<Vec<_>, _>>();
        *taken = log.len();
        Ok(visits?.into_iter().filter(|visit| visit.site != LAST).collect())
    }

    /// How many requests it has answered so far, those that were taken among them.
    pub fn answered(&self) -> usize {
        let log = std::fs::read(self.folder.join("visits")).unwrap_or_default();
        log.iter().filter(|&&byte| byte == b'\n').count()
    }

    /// A request is logged after its answer was sent but before its connection is closed: when this one is closed, those answered
    /// before it are in the log.
    fn write_out(&self) -> Result<(), String> {
        let ask = || -> std::io::Result<()> {
            let mut stream = TcpStream::connect(self.address(self.sites.len()))?;
            stream.write_all(b"GET / HTTP/1.1\r\nHost: last\r\nConnection: close\r\n\r\n")?;
            stream.read_to_end(&mut Vec::new()).map(drop)
        };
        ask().map_err(|error| format!("nginx does not answer: {error}; its log:\n{}", self.log()))
    }

    fn configure(&self) -> Result<(), String> {
        let folder = self.folder.display();
        let mut text = format!(
            "daemon off;\npid {folder}/pid;\nerror_log {folder}/log;\nworker_processes 1;\n{}\
             events {{ worker_connections 8192; }}\nhttp {{\nlog_format visits '{FORMAT}';\naccess_log {folder}/visits visits;\n\
             client_body_temp_path {folder}/body;\nproxy_temp_path {folder}/proxy;\nfastcgi_temp_path {folder}/fastcgi;\n\
             uwsgi_temp_path {folder}/uwsgi;\nscgi_temp_path {folder}/scgi;\n\
             default_type application/octet-stream;\nabsolute_redirect off;\nkeepalive_requests 1000000;\ntcp_nodelay on;\n\
             large_client_header_buffers 4 32k;\nserver_names_hash_bucket_size 256;\n",
            // Its workers would take another name if they could, and then not be able to read what the test can.
            if is_root() { "user root;\nworker_rlimit_nofile 20000;\n" } else { "" }
        );
        for (number, site) in self.sites.iter().enumerate() {
            let robots = self.folder.join(format!("robots-{number}.txt"));
            if let Some(text) = &site.robots {
                write(&robots, text)?;
            }
            text.push_str(&site.configuration(&self.address(number).to_string(), &robots));
        }
        let last = self.address(self.sites.len());
        text.push_str(&format!("server {{\nlisten {last};\nserver_name {LAST};\nreturn 204;\n}}\n}}\n"));
        write(&self.folder.join("nginx.conf"), &text)
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
        let program = self.program.display();
        Err(format!("{program}: `{order}` answered `{answer}`; its log:\n{}", self.log()))
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// A block of 256 addresses for each server: one of this process's own, most likely. The port is what makes sure.
fn next_block() -> Ipv4Addr {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = std::process::id().wrapping_mul(7).wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed));
    let [_, _, second, third] = number.to_be_bytes();
    Ipv4Addr::new(127, second.max(1), third, 1)
}

fn program() -> Result<PathBuf, String> {
    if let Some(chosen) = std::env::var_os(CHOSEN) {
        return Ok(PathBuf::from(chosen));
    }
    let unpacked = fetched("nginx").map(|folder| folder.join("unpacked/usr/sbin/nginx"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<_> = std::env::split_paths(&path).map(|folder| folder.join("nginx")).collect();
    places.push(PathBuf::from("/usr/sbin/nginx"));
    unpacked.into_iter().chain(places).find(|program| program.is_file()).ok_or_else(|| {
        format!(
            "there is no nginx here: `./test` fetches it, `./test quick` does without, and {CHOSEN} names one"
        )
    })
}
