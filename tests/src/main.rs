//! The program under test: the same library behind a binary of this package, whose path tests can know.

fn main() -> std::process::ExitCode {
    bench::main()
}
