//! `trapline frontier replay` from outside.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::folder::Folder;

fn replay(script: &[u8], arguments: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(["frontier", "replay", "-"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // A command that refuses its arguments may not read at all.
    let _ = child.stdin.take().expect("it is piped").write_all(script);
    child.wait_with_output().expect("it ends")
}

fn check(script: &str, arguments: &[&str], code: i32, out: &str, error: &str) {
    let output = replay(script.as_bytes(), arguments);
    assert_eq!(String::from_utf8_lossy(&output.stdout), out);
    assert_eq!(String::from_utf8_lossy(&output.stderr), error);
    assert_eq!(output.status.code(), Some(code));
}

#[test]
fn a_script_that_holds_is_printed_with_its_answers() {
    check(
        "set delay 0 # no waiting\n0 admit  http://a.example/1\n0 claim 1 -> http://a.example/1\n",
        &["--store", "memory:"],
        0,
        "set delay 0\n0 admit http://a.example/1 -> added\n0 claim 1 -> http://a.example/1\n",
        "-: 2 lines played, 1 compared, all as expected\n",
    );
}

#[test]
fn a_difference_is_shown_where_it_is_and_ends_with_1() {
    check(
        "0 admit http://a.example/1 -> known\n0 queue a.example -> pending=2\n0 claim 1 ->\n",
        &[],
        1,
        "0 admit http://a.example/1 -> added   # line 1: expected `known`\n\
         0 queue a.example -> state=inactive pending=1 leased=0 done=0 disregarded=0 dead=0 budget=none spent=0 \
         balance=0 latest_cost=0 precedence=3   # line 2: expected `pending=2`\n\
         0 claim 1 -> http://a.example/1   # line 3: expected ``\n",
        "-: 3 lines of 3 compared differed\n",
    );
}

#[test]
fn what_a_replay_prints_holds_when_it_is_replayed() {
    let first = replay(b"0 admit http://a.example/1 -> known\n0 claim 5 ->\n61s claim 1 -> x\n", &[]);
    assert_eq!(first.status.code(), Some(1));
    let second = replay(&first.stdout, &[]);
    assert_eq!(second.status.code(), Some(0), "{}", String::from_utf8_lossy(&second.stderr));
}

#[test]
fn trouble_is_named_and_ends_with_2() {
    let check = |script: &[u8], arguments: &[&str], message: &str| {
        let output = replay(script, arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(error, format!("trapline frontier replay: {message}\n"));
        assert_eq!(output.status.code(), Some(2));
    };
    check(
        b"0 clam 1\n",
        &[],
        "-: line 1: expected a verb (admit, claim, settle, steer, crawl, dead, forget, url, page, queue, restart or crash), found `clam`",
    );
    check(b"0 claim 1\n\xff\xfe\n", &[], "-: line 2: expected text in UTF-8");
    check(
        b"0 claim 1\n5s restart\n",
        &[],
        "-: line 2: this store keeps nothing, so a script with `restart` cannot run on it",
    );
    check(
        b"",
        &["--store", "redis:x"],
        "stores of the kind `redis:` are not built yet: write `memory:`, `disk:PATH`, `postgres://USER@HOST/DATABASE` or `grpc://HOST:PORT`",
    );
}

#[test]
fn a_missing_file_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(["frontier", "replay", "/no/such/file"])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.starts_with("trapline frontier replay: cannot read /no/such/file: No such file"),
        "{error}"
    );
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_script_may_restart_and_crash_a_disk_store_and_leaves_it_as_it_was() {
    let folder = Folder::new("replay-restart");
    let script = "set delay 0\n\
                  0 admit http://a.example/1 -> added\n\
                  0 restart -> ok\n\
                  0 claim 1 -> http://a.example/1\n\
                  1s crash -> ok\n\
                  1s admit http://a.example/1 -> known\n\
                  1s settle http://a.example/1 done -> done\n\
                  2s crash -> ok\n\
                  2s settle http://a.example/1 done -> stale\n";
    for _ in 0..2 {
        check(
            script,
            &["--store", &folder.url()],
            0,
            script,
            "-: 8 lines played, 8 compared, all as expected\n",
        );
    }
}

#[test]
fn a_folder_that_is_no_store_is_refused() {
    let folder = Folder::new("replay-stranger");
    std::fs::create_dir(&folder.path).unwrap();
    std::fs::write(folder.path.join("thesis.txt"), "precious").unwrap();
    let error = format!(
        "trapline frontier replay: disk store: cannot open `{}`: it is no store, but has `thesis.txt` in it; choose an empty \
         folder or a new one\n",
        folder.path.display()
    );
    check("", &["--store", &folder.url()], 2, "", &error);
}
