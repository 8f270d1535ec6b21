//! The binary: configuration, wiring, commands. It alone knows which adapters exist.

fn main() {}
