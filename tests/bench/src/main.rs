//! The program `tracebook-bench`. Everything is in the library, so that the tests' program is the same.

fn main() -> std::process::ExitCode {
    bench::main()
}
