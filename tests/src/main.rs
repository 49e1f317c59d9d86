//! The program under test: the same library behind a binary of this package, whose path tests can know.

fn main() -> std::process::ExitCode {
    // A test that starts it under the program's own name wants it without the benchmarks.
    let program = std::env::current_exe().unwrap_or_default();
    if program.file_stem().is_some_and(|name| name == "tracebook") {
        return bench::main_without_benchmarks();
    }
    bench::main()
}
