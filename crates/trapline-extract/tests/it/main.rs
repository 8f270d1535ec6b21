//! Extraction seen from outside: bytes in, what was found out.

mod robots;
