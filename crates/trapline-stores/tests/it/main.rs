//! The stores from outside: the suite, the simulation, faults, and processes that are killed.

mod disk;
mod faults;
mod folder;
mod formats;
mod kill;
mod lazy;
mod notes;
mod opening;
mod overlapping;
mod pages;
mod planted;
mod reading;
mod reading_ahead;
mod rewriting;
mod sharing;
mod sim_files;
mod simulation;
mod snapshots;
mod socket;
mod swapping;
mod verifying;
