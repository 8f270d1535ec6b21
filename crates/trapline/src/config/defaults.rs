//! `trapline config --defaults`: the file that says nothing new, with every option and its meaning.

use super::file_config::FileConfig;
use super::options::{Options, keys};
use super::sections::entry_of;

const HEAD: &str = "\
# The configuration of trapline: every option, its meaning and its default.
#
# Keep what you change and leave out the rest. What is not here is as it stands below. Durations are written \"250ms\", \"30s\", \"5m\",
# \"2h\" or \"1d\"; amounts of bytes \"64KiB\", \"16MiB\" or \"10GiB\"; \"none\" stands for nothing. Each option can also come from the
# environment, pace.delay as TRAPLINE__PACE__DELAY, or from a flag, --set pace.delay=2s; flags win over the environment, the
# environment over this file. `trapline config --check FILE` finds mistakes, `trapline config --show` says where each value comes from.
";

/// The file, whole. Reading it gives the defaults.
pub(crate) fn defaults() -> String {
    let config = FileConfig::default();
    let mut file = HEAD.to_owned();
    for name in FileConfig::SECTIONS {
        let Some(section) = config.section(name) else { continue };
        file.push('\n');
        comment(&mut file, "#", section.about());
        file.push_str(&format!("[{name}]\n"));
        for item in section.items() {
            file.push('\n');
            comment(&mut file, "#", item.doc);
            file.push_str(&format!("{} = {}\n", item.key, section.get(item.key).unwrap_or_default()));
        }
    }
    for list in keys(&config.lists) {
        if let Some(entry) = entry_of(list) {
            example(&mut file, list, &*entry);
        }
    }
    file
}

/// An entry of a list, which is none by default.
fn example(file: &mut String, list: &str, entry: &dyn Options) {
    file.push('\n');
    comment(file, "##", entry.about());
    file.push_str(&format!("# [[{list}]]\n"));
    for item in entry.items() {
        file.push_str("#\n");
        comment(file, "##", item.doc);
        file.push_str(&format!("# {} = {}\n", item.key, entry.get(item.key).unwrap_or_default()));
    }
}

fn comment(file: &mut String, sign: &str, lines: &[&str]) {
    for line in lines {
        file.push_str(&format!("{sign} {}\n", line.trim()));
    }
}
