//! The `tracebook` binary. All code is in the library, so that the test binary can be the same program.

fn main() -> std::process::ExitCode {
    tracebook::main()
}
