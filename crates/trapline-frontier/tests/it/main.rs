//! The integration tests of the frontier, in one binary.

mod model;
