//! The read-only system volume, embedded in the program: what every workspace has without having to hold it.
//!
//! So far that is the sample with its guides; agents, prompts, tools and the default configuration join it. This crate
//! imports nothing, does no IO, and does not change at run time.

/// A file of the system volume: its path, `/` between the parts, and its bytes.
pub type Embedded = (&'static str, &'static [u8]);

macro_rules! sample {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_bytes!(concat!("../../assets/sample/", $path)).as_slice())),*]
    };
}

/// The sample volume that a first start brings along.
pub const SAMPLE: &[Embedded] = sample![
    "Welcome.md",
    "Guide/Command line.md",
    "Guide/Keys and commands.md",
    "Guide/Writing.md",
    "Guide/Your files.md",
    "Python/First cells.md",
    "Python/Rainfall.md",
    "Python/When something goes wrong.md",
    "Python/data/rainfall.csv",
];
