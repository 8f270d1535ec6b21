//! The integration tests of the frontier, in one binary.
mod smoke;
