//! Does nothing: cargo reads a manifest's build dependencies only if there is a build script (Cargo.toml says what they
//! are for).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
