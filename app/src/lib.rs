//! The program `tracebook`: its window and its command line, which run the same commands.

/// Runs the program with the process's arguments.
pub fn main() -> std::process::ExitCode {
    cli::main(cli::ProgramHooks {
        window: |driver, path, first_frame| window::run(driver, path, first_frame),
        bench: None,
    })
}
