//! The program `tracebook`: its window and its command line, two callers of the same commands.

/// The whole program.
pub fn main() -> std::process::ExitCode {
    cli::main(cli::ProgramHooks { window: |driver, first_frame| window::run(driver, first_frame), bench: None })
}
