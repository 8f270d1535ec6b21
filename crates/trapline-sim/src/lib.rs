//! Generated webs and virtual time.
