//! The program `tracebook-bench`. All of it is in the library, so that the tests' program is the same.

fn main() -> std::process::ExitCode {
    bench::main()
}
