//! Playing.
