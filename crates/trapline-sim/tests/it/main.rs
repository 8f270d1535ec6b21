//! The integration tests of the simulation, in one binary.
mod cheats;
mod crawl;
mod kept;
mod planted;
mod simulation;
