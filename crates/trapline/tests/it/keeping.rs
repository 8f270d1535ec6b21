//! Keeping a store on disk: verifying, repairing, checkpoints, and a disk that is nearly full.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::folder::Folder;
use crate::operate::{Ran, ask, check_trouble, run};
use crate::sharing::hold;

fn segment(folder: &Folder) -> PathBuf {
    folder.path.join("segments/0000000001.segment")
}

/// Admits URLs, each by a process of its own, so that each is in a record of its own.
fn admit_each(folder: &Folder, urls: &[&str]) {
    for url in urls {
        assert_eq!(ask(folder, &["admit"], &format!("{url}\n"), 0)[0]["added"], 1);
    }
}

/// Turns a bit of the first byte of a text in the log.
fn damage(folder: &Folder, text: &str) {
    let path = segment(folder);
    let bytes = fs::read(&path).expect("the segment is there");
    let at = bytes.windows(text.len()).position(|window| window == text.as_bytes()).expect("it is there");
    let file = OpenOptions::new().write(true).open(path).expect("the segment is there");
    file.write_all_at(&[bytes[at] ^ 4], at as u64).expect("the segment is there");
}

/// What is exported of a store, but for the time of the export.
fn exported(folder: &Folder) -> Vec<String> {
    let ran = run(folder, &["export"], b"");
    assert_eq!(ran.code, Some(0), "{}", ran.error);
    ran.out.lines().skip(1).map(str::to_owned).collect()
}

fn restore(to: &Folder, from: &Path) -> Ran {
    run(to, &["restore", &from.display().to_string()], b"")
}

fn urls(folder: &Folder) -> Vec<Value> {
    let mut urls: Vec<_> = ask(folder, &["urls"], "", 0).iter().map(|row| row["url"].clone()).collect();
    urls.sort_by_key(ToString::to_string);
    urls
}

#[test]
fn a_healthy_store_is_whole_and_stays_as_it_is() {
    let folder = Folder::new("whole");
    admit_each(&folder, &["http://a.example/", "http://b.example/"]);
    let before = fs::read(segment(&folder)).unwrap();
    let told = &ask(&folder, &["verify"], "", 0)[0];
    assert_eq!((&told["segments"], &told["crawls"], &told["urls"]), (&json!(1), &json!(1), &json!(2)));
    assert_eq!((&told["damages"], &told["leftovers"]), (&json!([]), &json!([])));
    let ran = run(&folder, &["verify"], b"");
    assert!(ran.out.ends_with("All is whole.\n") && ran.error.is_empty(), "{}{}", ran.out, ran.error);

    let spare = Folder::new("whole-spare");
    let ran = run(&folder, &["verify", "--repair", &spare.path.display().to_string()], b"");
    assert!(ran.out.ends_with("there is nothing to repair, and nothing was written.\n"), "{}", ran.out);
    assert_eq!((ran.code, spare.path.exists()), (Some(0), false));
    assert!(before == fs::read(segment(&folder)).unwrap());
}

#[test]
fn damage_is_named_and_what_is_readable_goes_on_in_a_new_folder() {
    let folder = Folder::new("damaged");
    admit_each(&folder, &["http://a.example/", "http://lost.example/", "http://c.example/"]);
    damage(&folder, "http://lost.example/");
    let path = segment(&folder).display().to_string();
    let told = &ask(&folder, &["verify"], "", 1)[0];
    let damages = told["damages"].as_array().unwrap();
    assert_eq!(damages.len(), 1, "{told}");
    let place = (damages[0]["from"].as_u64().unwrap(), damages[0]["to"].as_u64().unwrap());
    // Which number the record has depends on how often time passed between.
    let what = damages[0]["what"].as_str().unwrap();
    let number =
        what.strip_prefix("record ").and_then(|what| what.strip_suffix(" is damaged, and lost")).unwrap();
    assert_eq!(damages[0], json!({"file": path, "from": place.0, "to": place.1, "what": what}));
    let ran = run(&folder, &["verify"], b"");
    let line = format!("damages    {path}, bytes {} to {}: {what}\n", place.0, place.1);
    assert!(ran.out.contains(&line), "{}", ran.out);
    assert!(ran.out.ends_with("verify --repair NEWFOLDER` saves what is readable.\n"), "{}", ran.out);
    check_trouble(
        &folder,
        &["stats"],
        &format!(
            "stats: disk store: cannot open: {path} is damaged at byte {}: record {number} was on disk and is not whole any more; nothing \
             was changed: see what `verify` says, which can save the rest into a new folder, or restore a checkpoint \
             (docs/manual/disk.md says more)",
            place.0
        ),
    );
    // A copy would leave out what stands behind the damage.
    let ran = run(&folder, &["checkpoint", "late"], b"");
    assert!(ran.error.contains("is damaged at byte") && ran.code == Some(2), "{}", ran.error);
    assert_eq!(ask(&folder, &["checkpoints"], "", 0), [] as [Value; 0]);

    let saved = Folder::new("saved");
    let to = saved.path.display().to_string();
    let told = &ask(&folder, &["verify", "--repair", &saved.url()], "", 1)[0];
    assert_eq!((&told["repaired"], &told["urls"]), (&json!(saved.url()), &json!(2)));
    assert_eq!(told["damages"][0], damages[0]);
    // The snapshot that the last command left knows of it, but its request was in the log.
    let lost = told["lost_urls"].as_array().unwrap();
    assert!(lost.len() == 1 && lost[0].as_str().unwrap().contains(" of queue lost.example "), "{lost:?}");
    assert_eq!(urls(&saved), ["http://a.example/", "http://c.example/"]);
    let stats = &ask(&saved, &["stats"], "", 0)[0];
    let found = &stats["recovered"];
    assert_eq!((&found["pending"], &found["snapshot"].is_null()), (&json!(2), &false), "{found}");
    assert_eq!(ask(&saved, &["claim", "-n", "5"], "", 0).len(), 2);
    admit_each(&saved, &["http://lost.example/"]);
    assert_eq!(ask(&saved, &["verify"], "", 0)[0]["damages"], json!([]));

    let ran = run(&folder, &["verify", "--repair", &to], b"");
    let message = format!(
        "trapline frontier verify: cannot repair into `{to}`: it is not empty; name a folder that is not there yet\n"
    );
    assert_eq!((ran.error, ran.code), (message, Some(2)));
}

#[test]
fn requests_behind_a_damaged_header_are_saved() {
    let folder = Folder::new("headless");
    let many: String = (0..300).map(|n| format!("http://a.example/{n}/{}\n", "x".repeat(6000))).collect();
    assert_eq!(ask(&folder, &["admit"], &many, 0)[0]["added"], 300);
    admit_each(&folder, &["http://b.example/"]);
    let path = folder.path.join("segments/0000000002.segment");
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&[0xff; 8], 20).unwrap();
    let saved = Folder::new("headless-saved");
    let told = &ask(&folder, &["verify", "--repair", &saved.url()], "", 1)[0];
    assert_eq!((&told["urls"], &told["damages"][0]["what"]), (&json!(301), &json!("its header is damaged")));
    assert_eq!(ask(&saved, &["verify"], "", 0)[0]["urls"], 301);
    assert_eq!(urls(&saved).len(), 301);

    // One that was made ahead of time does not hide that the one before it is missing.
    fs::remove_file(&path).unwrap();
    fs::write(folder.path.join("segments/0000000003.segment"), [0; 4096]).unwrap();
    let told = &ask(&folder, &["verify"], "", 1)[0];
    assert_eq!(told["damages"][0]["what"], "the segment is missing, and all records in it");
}

#[test]
fn a_segment_that_was_made_ahead_of_time_is_used_by_whoever_comes_next() {
    let folder = Folder::new("ahead");
    admit_each(&folder, &["http://a.example/"]);
    let path = folder.path.join("segments/0000000002.segment");
    fs::write(&path, vec![0; 4 << 20]).unwrap();
    // Held open, lest another file get its number.
    let held = fs::File::open(&path).unwrap();
    let made = held.metadata().unwrap().ino();
    assert_eq!(ask(&folder, &["verify"], "", 0)[0]["segments"], 1);
    ask(&folder, &["stats"], "", 0);
    let many: String = (0..300).map(|n| format!("http://b.example/{n}/{}\n", "x".repeat(6000))).collect();
    assert_eq!(ask(&folder, &["admit"], &many, 0)[0]["added"], 300);
    assert_eq!(fs::metadata(&path).unwrap().ino(), made);
    let told = &ask(&folder, &["verify"], "", 0)[0];
    assert_eq!((&told["segments"], &told["urls"]), (&json!(2), &json!(301)));
}

#[test]
fn a_crawl_of_which_nothing_is_left_is_named() {
    let folder = Folder::new("no-origin");
    admit_each(&folder, &["http://a.example/", "http://b.example/"]);
    ask(&folder, &["--crawl", "second", "admit"], "http://a.example/\n", 0);
    let file = OpenOptions::new().write(true).open(segment(&folder)).unwrap();
    file.write_all_at(&[0xff; 8], 80).unwrap();
    // A snapshot would have saved it.
    for entry in fs::read_dir(folder.path.join("segments")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "snapshot") {
            fs::remove_file(path).unwrap();
        }
    }
    let saved = Folder::new("no-origin-saved");
    let told = &ask(&folder, &["verify", "--repair", &saved.url()], "", 1)[0];
    assert_eq!(
        (&told["urls"], &told["lost_crawls"]),
        (&json!(1), &json!([{"crawl": "default", "commands": 2}]))
    );
    assert_eq!(ask(&saved, &["--crawl", "second", "urls"], "", 0).len(), 1);
}

/// Whoever opens the store is told: when it is closed, another one takes its place.
#[test]
fn a_damaged_snapshot_is_told_by_whoever_opens_the_store() {
    let folder = Folder::new("snapshots");
    admit_each(&folder, &["http://a.example/", "http://b.example/"]);
    let mut damaged = 0;
    for entry in fs::read_dir(folder.path.join("segments")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "snapshot") {
            let file = OpenOptions::new().write(true).open(path).unwrap();
            file.write_all_at(&[0xff; 8], 80).unwrap();
            damaged += 1;
        }
    }
    assert_eq!(damaged, 2);
    let ran = run(&folder, &["claim"], b"");
    assert_eq!(ran.code, Some(0), "{}", ran.error);
    assert!(ran.out.contains("http://a.example/"), "{}", ran.out);
    assert_eq!(
        ran.error.trim_end(),
        format!(
            "disk store in {}: 2 snapshots are damaged or could not be read. Nothing is lost: it was opened without them, which takes \
             longer. Unless the power has just gone, look after the disk: others of its files may be damaged too, which `verify` tells",
            folder.path.display()
        )
    );
    let ran = run(&folder, &["stats"], b"");
    assert_eq!((ran.error.as_str(), ran.code), ("", Some(0)), "there are others now");
}

#[test]
fn a_torn_end_is_no_damage_and_is_told_when_it_is_cut() {
    let folder = Folder::new("torn");
    admit_each(&folder, &["http://a.example/"]);
    let bytes = fs::read(segment(&folder)).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1;
    let file = OpenOptions::new().write(true).open(segment(&folder)).unwrap();
    file.write_all_at(&[7; 30], end).unwrap();
    let told = &ask(&folder, &["verify"], "", 0)[0];
    let leftover = told["leftovers"][0].as_str().unwrap();
    assert!(leftover.ends_with("was never answered; the next opening cuts it off"), "{leftover}");
    let stats = &ask(&folder, &["stats"], "", 0)[0];
    let cut = stats["recovered"]["bytes_cut"].as_u64().unwrap();
    assert!((30..40).contains(&cut), "{cut}");
    assert_eq!((&stats["urls"]["pending"], &stats["recovered"]["log_position"]), (&json!(1), &json!(2)));
    assert_eq!(ask(&folder, &["verify"], "", 0)[0]["leftovers"], json!([]));
}

#[test]
fn a_checkpoint_is_made_beside_the_owner_and_restored_any_number_of_times() {
    let folder = Folder::new("checkpoint");
    let (holder, _) = hold(&folder, "");
    ask(&folder, &["admit"], "http://a.example/1\nhttp://a.example/2\nhttp://b.example/\n", 0);
    ask(&folder, &["steer", "queue", "a.example", "delay=1h"], "", 0);
    let made = &ask(&folder, &["checkpoint", "monday.1"], "", 0)[0];
    let copy = folder.path.join("checkpoints/monday.1");
    assert_eq!((&made["checkpoint"], &made["folder"]), (&json!("monday.1"), &json!(copy)));
    assert_eq!(ask(&folder, &["verify"], "", 0)[0]["damages"], json!([]));
    let then = exported(&folder);
    ask(&folder, &["admit"], "http://c.example/\n", 0);
    let ran = run(&folder, &["checkpoint", "monday.1"], b"");
    assert!(
        ran.error.contains("is there already; choose another name") && ran.code == Some(2),
        "{}",
        ran.error
    );
    ask(&folder, &["checkpoint", "tuesday"], "", 0);
    let listed = ask(&folder, &["checkpoints"], "", 0);
    let names: Vec<_> = listed.iter().map(|row| &row["checkpoint"]).collect();
    assert_eq!(names, ["monday.1", "tuesday"]);
    assert!(listed[0]["made"].as_str().unwrap().ends_with('Z') && listed[0]["folder"] == json!(copy));

    let (one, other) = (Folder::new("restored-1"), Folder::new("restored-2"));
    for restored in [&one, &other] {
        let ran = restore(restored, &copy);
        assert_eq!((ran.error.as_str(), ran.code), ("", Some(0)));
        assert!(exported(restored) == then);
        ask(restored, &["admit"], "http://d.example/\n", 0);
    }
    let third = Folder::new("restored-3");
    // Written as a store, and with a slash at its end.
    let slash = format!("{}/", third.url());
    let output = Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(["frontier", "--store", &slash, "restore", &format!("disk:{}", copy.display())])
        .output()
        .expect("the binary runs");
    assert_eq!((String::from_utf8_lossy(&output.stderr).as_ref(), output.status.code()), ("", Some(0)));
    assert!(exported(&third) == then);
    let fourth = Folder::new("restored-4");
    // What is called as an unfinished copy would be, and is none, is nobody's to remove.
    let part = Folder { path: fourth.path.with_extension("part") };
    fs::create_dir(&part.path).unwrap();
    fs::write(part.path.join("thesis"), "").unwrap();
    let ran = restore(&fourth, &copy);
    assert!(
        ran.error.contains("is in the way, and is no unfinished copy") && ran.code == Some(2),
        "{}",
        ran.error
    );
    assert!(part.path.join("thesis").exists() && !fourth.path.exists());
    fs::remove_file(part.path.join("thesis")).unwrap();
    fs::create_dir(part.path.join("segments")).unwrap();
    fs::write(part.path.join("segments/0000000009.segment"), "left").unwrap();
    assert_eq!(restore(&fourth, &copy).code, Some(0));
    assert!(exported(&fourth) == then && !part.path.exists());
    let ran = restore(&third, &copy);
    assert!(ran.error.contains("is there already") && ran.code == Some(2), "{}", ran.error);
    drop(holder);
    assert_eq!(urls(&folder).len(), 4);
}

#[test]
fn what_cannot_be_kept_is_told() {
    let folder = Folder::new("no-store");
    let path = folder.path.display();
    check_trouble(
        &folder,
        &["verify"],
        &format!("verify: disk store: cannot verify `{path}`: there is no store in that folder"),
    );
    check_trouble(
        &folder,
        &["checkpoint", "x"],
        &format!(
            "checkpoint: disk store: cannot make checkpoint `x` of `{path}`: there is no store in `{path}`"
        ),
    );
    check_trouble(
        &folder,
        &["checkpoints"],
        &format!(
            "checkpoints: disk store: cannot list the checkpoints of `{path}`: there is no store in that folder"
        ),
    );
    check_trouble(
        &folder,
        &["restore", "no/where"],
        &format!(
            "restore: disk store: cannot restore `{path}` from `no/where`: there is no store in `no/where`\n  Name a checkpoint's folder, such \
             as crawl/checkpoints/monday; `checkpoints` lists them."
        ),
    );
    assert!(!folder.path.exists());
    admit_each(&folder, &["http://a.example/"]);
    for name in ["", ".", "..", "../x", "a/b", "-x", "x.part", "é", " ", &"x".repeat(101)] {
        let ran = run(&folder, &["checkpoint", "--", name], b"");
        let told = "a name has letters, digits, `.`, `-` and `_`";
        assert!(ran.error.contains(told) && ran.code == Some(2), "{name}: {}", ran.error);
    }
    assert!(!folder.path.join("checkpoints").exists());
    for command in [&["verify"][..], &["checkpoint", "x"], &["checkpoints"], &["restore", "x"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_trapline"))
            .args(["frontier", "--store", "memory:"])
            .args(command)
            .output()
            .expect("the binary runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            error.contains(": a store in memory keeps nothing from one command to the next; name one"),
            "{error}"
        );
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn a_store_in_use_is_not_repaired() {
    let folder = Folder::new("repair-in-use");
    admit_each(&folder, &["http://a.example/", "http://lost.example/", "http://c.example/"]);
    let (holder, told) = hold(&folder, "");
    damage(&folder, "http://lost.example/");
    let saved = Folder::new("repaired-in-use");
    let ran = run(&folder, &["verify", "--repair", &saved.path.display().to_string()], b"");
    let message = format!("process {} holds it; stop that one first\n", told["process"]);
    assert!(ran.error.ends_with(&message) && ran.code == Some(2), "{}", ran.error);
    drop(holder);
}

#[test]
fn on_a_disk_that_is_nearly_full_work_goes_on_and_admissions_wait() {
    let folder = Folder::new("min-free");
    ask(&folder, &["admit"], "http://a.example/1\nhttp://b.example/1\n", 0);
    let (holder, _) = hold(&folder, "?min_free_disk=1000000TiB");
    let ran = run(&folder, &["admit"], b"http://c.example/\n");
    assert!(ran.error.contains("cannot admit: the disk has ") && ran.code == Some(2), "{}", ran.error);
    assert!(
        ran.error.contains("are to be left alone (min_free_disk); nothing was done and nothing is lost"),
        "{}",
        ran.error
    );
    let leases = ask(&folder, &["claim", "-n", "2", "--lease", "1h"], "", 0);
    assert_eq!(leases.len(), 2);
    // More than the first segment has room for: another is made for it, in which nothing is admitted either.
    let links: Vec<_> = (0..200).map(|n| format!("http://d.example/{n}/{}", "x".repeat(6000))).collect();
    let settlement = json!({"id": leases[0]["id"], "outcome": "done", "links": links});
    assert_eq!(ask(&folder, &["settle"], &settlement.to_string(), 0)[0]["answer"], "done");
    assert!(folder.path.join("segments/0000000002.segment").exists());
    let ran = run(&folder, &["admit"], b"http://c.example/\n");
    assert!(ran.error.contains("(min_free_disk)") && ran.code == Some(2), "{}", ran.error);
    assert_eq!(ask(&folder, &["settle", &leases[1]["id"].to_string(), "done"], "", 0)[0]["answer"], "done");
    assert_eq!(ask(&folder, &["stats"], "", 0)[0]["urls"]["pending"], 200);
    drop(holder);
    assert_eq!(ask(&folder, &["admit"], "http://c.example/\n", 0)[0]["added"], 1);
}
