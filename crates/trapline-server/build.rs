//! Turns the `.proto` files into Rust, without protoc.

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = ["trapline/v1/frontier.proto", "trapline/v1/crawler.proto", "urlfrontier/urlfrontier.proto"];
    let descriptors = protox::compile(files, ["proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    // For the reflection service, and for who reads messages.
    fs::write(out.join("descriptors.bin"), prost::Message::encode_to_vec(&descriptors))?;
    let mut config = prost_build::Config::new();
    // By which messages find their descriptors.
    config.enable_type_names();
    tonic_prost_build::configure()
        // The readers of these files are people with other languages.
        .disable_comments(["."])
        .codec_path("crate::codec::Codec")
        .compile_fds_with_config(descriptors, config)?;
    Ok(())
}
