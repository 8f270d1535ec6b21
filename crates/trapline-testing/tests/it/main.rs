//! What servers for tests leave behind: nothing.

mod servers;
