//! The program `tracebook`: its window and its command line, two callers of the same commands.

/// Runs the program with the process's arguments.
pub fn main() -> std::process::ExitCode {
    cli::main(cli::ProgramHooks { window: |driver, first_frame| window::run(driver, first_frame), bench: None })
}
