//! The program `tracebook`: its window and its command line, which run the same commands.

/// Runs the program with the process's arguments.
pub fn main() -> std::process::ExitCode {
    cli::main(cli::ProgramHooks {
        window: |driver, start, first_frame| {
            window::run(driver, start.path, start.is_safe, start.requests, first_frame)
        },
        bench: None,
    })
}
