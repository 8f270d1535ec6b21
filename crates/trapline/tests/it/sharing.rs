//! Several processes on one store: the first owns its folder, the others go through its socket.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::folder::Folder;
use crate::operate::{ask, check_trouble, run, start};

/// A child that does not outlive its test.
pub(crate) struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `hold`, and waits until it serves: what it says then.
pub(crate) fn hold(folder: &Folder, parameters: &str) -> (Ended, Value) {
    let child = Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(["frontier", "--store", &format!("{}{parameters}", folder.url()), "hold", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut child = Ended(child);
    let mut line = String::new();
    BufReader::new(child.0.stdout.as_mut().expect("it is piped")).read_line(&mut line).expect("it is text");
    (child, serde_json::from_str(&line).expect("it is JSON"))
}

/// Starts `admit` and gives it a line that it complains of, which it does once it has opened the store.
fn admit(folder: &Folder) -> Ended {
    let mut child = Ended(start(folder, &["admit", "--json"]));
    child.0.stdin.as_mut().expect("it is piped").write_all(b"nope\n").expect("it reads");
    let mut complaint = String::new();
    BufReader::new(child.0.stderr.as_mut().expect("it is piped"))
        .read_line(&mut complaint)
        .expect("it is text");
    assert!(complaint.starts_with("line 1: "), "{complaint}");
    child
}

/// Ends the input of `admit`: what it printed, and its exit code.
fn finish(mut admit: Ended, input: &str) -> (Value, Option<i32>) {
    admit.0.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("it reads");
    let mut line = String::new();
    BufReader::new(admit.0.stdout.as_mut().expect("it is piped")).read_line(&mut line).expect("it is text");
    (serde_json::from_str(&line).expect("it is JSON"), admit.0.wait().expect("it ends").code())
}

fn signal(child: &Ended, name: &str) {
    let kill = format!("kill -{name} {}", child.0.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("there is a shell").success());
}

#[test]
fn commands_work_on_a_store_that_another_one_owns() {
    let folder = Folder::new("beside");
    let owner = admit(&folder);
    assert_eq!(ask(&folder, &["admit"], "http://a.example/1\nhttp://b.example/\n", 0)[0]["added"], 2);
    let leases = ask(&folder, &["claim", "-n", "1", "--key", "a.example", "--lease", "1h"], "", 0);
    let settlement = json!({"id": leases[0]["id"], "outcome": "done", "links": ["http://a.example/2"]});
    let settled = ask(&folder, &["settle"], &settlement.to_string(), 0);
    assert_eq!(settled, [json!({"id": leases[0]["id"], "answer": "done", "links": ["added"]})]);
    ask(&folder, &["steer", "queue", "a.example", "delay=1h"], "", 0);
    assert_eq!(ask(&folder, &["queue", "a.example"], "", 0)[0]["done"], 1);
    assert_eq!(ask(&folder, &["urls"], "", 0).len(), 3);
    let stats = &ask(&folder, &["stats"], "", 0)[0];
    assert_eq!((&stats["urls"]["pending"], &stats["durability"]), (&json!(2), &json!("batch")));

    let (admitted, code) = finish(owner, "http://a.example/2\nhttp://c.example/\n");
    assert_eq!((&admitted["added"], &admitted["known"], code), (&json!(1), &json!(1), Some(1)));
    assert!(!folder.path.join("socket").exists());
    assert_eq!(ask(&folder, &["stats"], "", 0)[0]["urls"]["pending"], 3);
}

#[test]
fn hold_serves_until_it_is_told_to_end() {
    let folder = Folder::new("hold");
    ask(&folder, &["admit"], "http://a.example/\n", 0);
    let (mut holder, told) = hold(&folder, "?durability=interval&period=100ms");
    let id = holder.0.id();
    assert_eq!((&told["process"], &told["durability"]), (&json!(id), &json!("interval 100ms")));
    let crawl = json!({"crawl": "default", "pending": 1, "leased": 0, "seen": 1, "dead": 0});
    assert_eq!((&told["log_position"], &told["crawls"]), (&json!(2), &json!([crawl])));
    let path = folder.path.display();
    check_trouble(
        &folder,
        &["hold"],
        &format!("hold: disk store: cannot open `{path}`: process {id} holds it; stop that one first"),
    );
    assert_eq!(ask(&folder, &["admit"], "http://a.example/2\n", 0)[0]["added"], 1);
    let stats = &ask(&folder, &["stats"], "", 0)[0];
    assert_eq!((&stats["urls"]["pending"], &stats["durability"]), (&json!(2), &json!("interval 100ms")));
    assert_eq!(stats["recovered"]["pending"], 1);
    let table = run(&folder, &["stats"], b"").out;
    assert!(table.contains("\ndurability      interval 100ms\n"), "{table}");

    signal(&holder, "TERM");
    assert_eq!(holder.0.wait().unwrap().code(), Some(0));
    assert!(!folder.path.join("socket").exists());
    let stats = &ask(&folder, &["stats"], "", 0)[0];
    assert_eq!((&stats["recovered"]["pending"], &stats["durability"]), (&json!(2), &json!("batch")));
}

#[test]
fn an_owner_that_is_killed_is_in_nobodys_way() {
    let folder = Folder::new("killed");
    let (holder, _) = hold(&folder, "");
    ask(&folder, &["admit"], "http://a.example/\n", 0);
    drop(holder);
    assert!(folder.path.join("socket").exists(), "nobody could remove it");
    assert_eq!(ask(&folder, &["stats"], "", 0)[0]["urls"]["pending"], 1);
    let (_holder, told) = hold(&folder, "");
    assert_eq!(told["crawls"][0]["pending"], 1);
    assert_eq!(ask(&folder, &["stats"], "", 0)[0]["urls"]["pending"], 1);
}

#[test]
fn a_command_goes_on_when_its_owner_ends() {
    for how in ["INT", "KILL"] {
        let folder = Folder::new(&format!("goes-on-{how}"));
        let (mut holder, _) = hold(&folder, "");
        let guest = admit(&folder);
        signal(&holder, how);
        let code = holder.0.wait().unwrap().code();
        assert_eq!(code, (how == "INT").then_some(0));
        let (admitted, code) = finish(guest, "http://a.example/\n");
        assert_eq!((&admitted["added"], code), (&json!(1), Some(1)), "{how}");
        assert_eq!(ask(&folder, &["stats"], "", 0)[0]["urls"]["pending"], 1);
    }
}

#[test]
fn what_cannot_be_chosen_for_a_store_is_told() {
    let check = |url: &str, message: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_trapline"))
            .args(["frontier", "--store", url, "hold"])
            .output()
            .expect("the binary runs");
        assert_eq!(String::from_utf8_lossy(&output.stderr), format!("trapline frontier hold: {message}\n"));
        assert_eq!(output.status.code(), Some(2));
    };
    check(
        "disk:x?durability=never",
        "`disk:x?durability=never` is not a store: `never` is no durability; there are `batch`, `interval` and `explicit`",
    );
    check(
        "memory:",
        "a store in memory keeps nothing from one command to the next; name one that does, such as --store disk:crawl",
    );
}
