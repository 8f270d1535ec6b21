//! The stores from outside: the suite, and what opening finds.

mod disk;
mod folder;
mod opening;
mod sim_files;
