//! `bench`: the figures of BENCHMARKS.md, measured on this machine.

use super::Refusal;
use clap::ArgMatches;

pub(super) fn bench(_args: &ArgMatches) -> Result<u8, Refusal> {
    Err(Refusal::usage("TEMP"))
}
