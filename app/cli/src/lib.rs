//! The command line: the same commands as the window, built from one command table.
//!
//! A command runs in the process that owns the workspace. If that's another process (the window), this one only passes
//! arguments, input and output through the local socket, so both ways behave the same.

mod agents;
pub mod arguments;
mod attachments;
mod capture;
mod cells;
mod collection_view;
mod command_context;
mod components;
mod consolidation;
mod devices;
mod events;
mod file_ops;
mod fork_commands;
mod form_prompt;
mod git_commands;
mod git_conflicts;
mod git_hunks;
mod git_merge_driver;
mod git_outputs;
mod git_paths;
mod git_read_only;
mod git_revisions;
mod github_folder;
mod guest_runs;
mod help;
mod history;
#[cfg(feature = "hub")]
mod hub;
mod kernel_environments;
mod kernel_packs;
mod kernel_states;
mod kernels;
mod links;
mod maintenance;
mod memory;
mod models;
mod new_fork;
pub mod notebooks;
pub(crate) mod notes;
mod output_files;
mod package_commands;
pub mod parse;
mod platform_values;
mod plurals;
mod providers;
mod recall_options;
mod resolve;
mod retried_commands;
mod run_cells;
mod sample_workspace;
mod saved_outputs;
mod schedules;
mod search;
mod served;
mod sync;
mod system_files;
mod tasks;
mod terminal;
mod terminal_writer;
mod update;
mod volume_settings;
pub(crate) mod volume_trust;
mod volumes;
mod web_browser;
pub mod window_start;
mod worker;
mod yes_no_question;

use arguments::typed;
use clap::ArgMatches;
use command_context::CommandContext;
use export::error::ExportError;
use host::socket::{self, SocketError, SocketRequest};
use host::{Handle, OpenError, WorkspaceOptions};
use sent_runs::carry_out_error::CarryOutError;
use sent_runs::send_errors::SentRunError;
use sent_runs::task_courier::TaskCourier;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use store::disk::io_reason;
use terminal_writer::{ScreenForm, TerminalWriter};
use text::untrusted_text;

pub use parse::build_grammar;
pub(crate) use sample_workspace::make_sample;

/// Exit code for success.
pub const EXIT_DONE: u8 = 0;
/// Exit code if a cell or a check failed.
pub const EXIT_FAILED: u8 = 1;
/// Exit code for wrong use: arguments, names or input that don't fit.
const EXIT_USAGE: u8 = 2;
/// Exit code if the workspace is damaged, locked, or can't be written.
const EXIT_WORKSPACE: u8 = 3;

/// Read-only commands, which work on read-only media. If such a command is asked to change something there, it's
/// rejected.
const READING_COMMANDS: &[&str] = &[
    "approvals",
    "attachments",
    "backup",
    "base",
    "budget",
    "cat",
    "cells",
    "components",
    "events",
    "export",
    "history",
    "index",
    "kernels",
    "links",
    "ls",
    "memory",
    "outputs",
    "related",
    "runs",
    "schedule",
    "search",
    "searches",
    "sessions",
    "steps",
    "sync",
    "tasks",
    "todos",
    "tools",
    "traces",
    "trash",
    "volumes",
];

/// Error of a command: the exit code, and a sentence with what to do.
#[derive(Debug)]
pub struct CliError {
    /// The exit code.
    pub code: u8,
    /// The error as a sentence.
    pub why: String,
}

impl CliError {
    /// Creates a usage error, with exit code 2.
    pub fn usage(why: impl std::fmt::Display) -> CliError {
        CliError { code: EXIT_USAGE, why: why.to_string() }
    }

    pub(crate) fn workspace(why: impl std::fmt::Display) -> CliError {
        CliError { code: EXIT_WORKSPACE, why: why.to_string() }
    }
}

impl From<engine::CommandError> for CliError {
    fn from(reject: engine::CommandError) -> Self {
        CliError::usage(reject.0)
    }
}

impl From<ExportError> for CliError {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Usage(why) => CliError::usage(why),
            ExportError::Workspace(why) => CliError::workspace(why),
        }
    }
}

impl From<SentRunError> for CliError {
    fn from(error: SentRunError) -> Self {
        match error {
            SentRunError::Queue(why) => CliError { code: EXIT_FAILED, why: why.to_string() },
            SentRunError::Identity(_)
            | SentRunError::Setup
            | SentRunError::NotSynced
            | SentRunError::Form(_)
            | SentRunError::Gone(_) => CliError::workspace(error),
            SentRunError::NotPaired { .. }
            | SentRunError::NotShared
            | SentRunError::UnknownDevice { .. }
            | SentRunError::SeveralDevices { .. }
            | SentRunError::Agent(_)
            | SentRunError::Tool(_)
            | SentRunError::MemoryAgent
            | SentRunError::Configuration(_)
            | SentRunError::NotOwner
            | SentRunError::Order(_)
            | SentRunError::Task(_)
            | SentRunError::Sign(_)
            | SentRunError::Command(_) => CliError::usage(error),
        }
    }
}

impl From<CarryOutError> for CliError {
    fn from(error: CarryOutError) -> Self {
        match error {
            CarryOutError::Setup(error) => CliError::from(*error),
            CarryOutError::Command(reject) => reject.into(),
            CarryOutError::Output(error) => error.into(),
            CarryOutError::Gone(gone) => gone.into(),
            CarryOutError::NotCarriedOut
            | CarryOutError::OtherOrder
            | CarryOutError::FollowerLost
            | CarryOutError::OtherOwner
            | CarryOutError::NothingWaits
            | CarryOutError::OtherRequest
            | CarryOutError::Unreadable { .. }
            | CarryOutError::Unread
            | CarryOutError::Closed
            | CarryOutError::Signature(_)
            | CarryOutError::Form(_) => CliError::usage(error),
        }
    }
}

impl From<host::OwnerGone> for CliError {
    fn from(gone: host::OwnerGone) -> Self {
        CliError::workspace(gone.to_string())
    }
}

impl From<host::WaitError> for CliError {
    fn from(error: host::WaitError) -> Self {
        match error {
            host::WaitError::Gone => host::OwnerGone.into(),
            host::WaitError::Refused(why) => CliError::workspace(format!("it could not be done: {why}")),
        }
    }
}

impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> Self {
        // The reader has closed the output (`tracebook man | head`): that's not an error.
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return CliError { code: EXIT_DONE, why: String::new() };
        }
        CliError { code: EXIT_FAILED, why: format!("can't write the output or read the input ({})", io_reason(&error)) }
    }
}

impl From<OpenError> for CliError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Disk(store::disk::DiskError::Missing { ref path }) => maintenance::no_workspace(path, &error),
            OpenError::Disk(_) | OpenError::Owned { .. } | OpenError::Other(_) => {
                CliError::workspace(error.to_string())
            }
        }
    }
}

/// Parts of the program outside the command line.
#[derive(Clone, Copy)]
pub struct ProgramHooks {
    /// Opens the window, and returns when it's closed and everything is saved. The function is called after the first
    /// frame.
    pub window: WindowCommand,
    /// Runs benchmarks or takes screenshots. `None` if that's in a separate program, `tracebook-bench`.
    pub bench: Option<BenchCommand>,
}

/// Opens the window on a workspace; fails with what couldn't be saved.
pub type WindowCommand = fn(host::Driver, window_start::WindowStart, Box<dyn FnOnce()>) -> anyhow::Result<()>;

/// Runs a benchmark or screenshot subcommand: its name, its arguments, and whether it prints JSON.
pub type BenchCommand = fn(&str, &ArgMatches, bool, &mut dyn Write) -> Result<u8, CliError>;

/// Runs the command line; `hooks` opens the window.
pub fn main(hooks: ProgramHooks) -> ExitCode {
    let words: Vec<String> = match std::env::args_os().skip(1).map(std::ffi::OsString::into_string).collect() {
        Ok(words) => words,
        Err(word) => {
            let shown = word.to_string_lossy();
            let shown = untrusted_text::escape_line(&shown);
            eprintln!("tracebook: an argument is not UTF-8 text; give the file a name in UTF-8: {shown}");
            return ExitCode::from(EXIT_USAGE);
        }
    };
    if words.first().is_some_and(|word| word == "kernel") {
        return match words.get(1..) {
            Some([flag, spec, allowed @ ..]) if flag == "--jupyter" => {
                jupyter::bridge::run_bridge(std::path::Path::new(spec), allowed.first().map(String::as_str))
            }
            Some([flag, pack]) if flag == "--compile-science" => compile_science_pack(std::path::Path::new(pack)),
            Some([flag, words @ ..]) if flag == "--science" => run_science_kernel(words),
            Some([flag, words @ ..]) if flag == "--javascript" => {
                javascript::run_script_worker(python::SandboxGrants::from_args(words))
            }
            words => run_python_kernel(words.unwrap_or_default()),
        };
    }
    if words.first().is_some_and(|word| word == "sandbox") {
        return host::sandbox::run();
    }
    if words.first().is_some_and(|word| word == "renderer") {
        return export::render_jobs::serve_jobs();
    }
    if help::is_full_help(&words) {
        // A closed standard output loses nothing important.
        let _ = write!(std::io::stdout(), "{}", help::full_help());
        return ExitCode::from(EXIT_DONE);
    }
    let here = std::env::current_dir();
    let (matches, path) = match parse::parse_with_path(&words, here.as_deref().unwrap_or(Path::new(""))) {
        Ok(parsed) => parsed,
        Err(error) => {
            // Even if standard error is closed, the exit code reports the failure.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { EXIT_USAGE } else { EXIT_DONE });
        }
    };
    // In its place, another folder would be opened or written to.
    let here = here.map_err(|error| {
        CliError::usage(format!("the current folder can't be read ({}); change to another one", io_reason(&error)))
    });
    let code = match here.and_then(|here| run_command_line(&matches, &words, (here, path), hooks)) {
        Ok(code) => code,
        Err(refusal) => {
            if !refusal.why.is_empty() {
                eprintln!("tracebook: {}", untrusted_text::escape_block(&io_reason(&refusal.why)));
            }
            refusal.code
        }
    };
    host::logging::finish();
    ExitCode::from(code)
}

#[cfg(feature = "science")]
fn run_science_kernel(words: &[String]) -> ExitCode {
    science::run_science_kernel(words)
}

/// Compiles an installed science pack for this machine.
#[cfg(feature = "science")]
fn compile_science_pack(pack: &std::path::Path) -> ExitCode {
    host::science_pack::yield_to_others();
    match science::compile_installed(pack) {
        Ok(compiled) => {
            if let Some(name) = compiled.file_name().and_then(|name| name.to_str()) {
                host::science_pack::remove_other_compiled(pack, name);
            }
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(feature = "science"))]
fn compile_science_pack(_pack: &std::path::Path) -> ExitCode {
    eprintln!("{}", host::BUILT_WITHOUT_SCIENCE);
    ExitCode::FAILURE
}

#[cfg(not(feature = "science"))]
fn run_science_kernel(_words: &[String]) -> ExitCode {
    eprintln!("tracebook kernel: {}", host::BUILT_WITHOUT_SCIENCE);
    ExitCode::FAILURE
}

fn workspace_folder(matches: &ArgMatches) -> Result<PathBuf, CliError> {
    let named = matches.get_one::<String>("workspace").map(PathBuf::from);
    if named.as_ref().is_some_and(|named| named.as_os_str().is_empty()) {
        return Err(CliError::usage("--workspace is empty; name the folder of a workspace"));
    }
    if let Some(file) = named.as_ref().filter(|named| named.is_file()) {
        return Err(CliError::usage(format!("a workspace is a folder, and this is a file: {}", file.display())));
    }
    named
        .or_else(host::default_folder)
        .ok_or_else(|| CliError::usage("there is no home folder to keep a workspace in; name one with --workspace DIR"))
}

/// Runs cells: in the Python environment named in the arguments after `tracebook kernel`, else in the built-in kernel.
fn run_python_kernel(words: &[String]) -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(environment) = python::EnvironmentKernel::from_args(words) {
        return python::run_environment_kernel(&environment);
    }
    #[cfg(not(target_os = "linux"))]
    if words.iter().any(|word| word == "--environment") {
        eprintln!("tracebook kernel: environments need Linux; use the built-in Python or a Jupyter kernel");
        return ExitCode::from(EXIT_FAILED);
    }
    python::run_kernel(python::SandboxGrants::from_args(words))
}

/// Returns the path of this program, which is also the kernel and the sandbox.
///
/// # Errors
/// Returns an error if the operating system can't determine the path.
pub fn program_path() -> Result<PathBuf, CliError> {
    std::env::current_exe()
        .map_err(|error| CliError::workspace(format!("the program does not find itself ({})", io_reason(&error))))
}

/// Runs a subcommand, or opens the window. `here`: the current folder, and the path given instead of a subcommand.
fn run_command_line(
    matches: &ArgMatches,
    words: &[String],
    (here, path): (PathBuf, Option<PathBuf>),
    hooks: ProgramHooks,
) -> Result<u8, CliError> {
    let json = matches.get_flag("json");
    let folder = workspace_folder(matches)?;
    host::logging::enable(Some(folder.as_path()).filter(|folder| host::workspace_exists(folder)));
    let is_safe = matches.get_flag("safe");
    let Some((name, args)) = matches.subcommand() else {
        return window_start::start_window(&folder, path, (json, is_safe), hooks);
    };
    parse::refuse_empty_paths(args)?;
    let terminal = std::io::stdout().is_terminal();
    let mut plain = std::io::stdout();
    let mut out = TerminalWriter::new(&mut plain, ScreenForm::for_command(name, args, json, terminal));
    // Commands that need no workspace, or one that isn't open.
    match name {
        "init" => return maintenance::cmd_init(&folder, &typed(args)?, json, &mut out),
        "doctor" => return maintenance::cmd_doctor(&folder, &typed(args)?, json, &mut out),
        "kernels" => {
            let args = typed(args)?;
            if let Some(job) = kernel_packs::PackJob::from_args(&args, &here)? {
                return kernel_packs::cmd_pack(&job, &program_path()?, json, &mut out, &mut std::io::stderr());
            }
        }
        "update" => return update::cmd_update(&folder, &typed(args)?, json, &mut out),
        "packages" => {
            let (args, errors) = (typed(args)?, &mut std::io::stderr());
            if let Some(done) = package_commands::run_without_workspace(&folder, &here, &args, json, &mut out, errors) {
                return done;
            }
        }
        "restore" => return maintenance::cmd_restore(&folder, &typed(args)?, json, &mut out),
        "completions" => return parse::cmd_completions(&typed(args)?, &mut out),
        "man" => return parse::cmd_man(&mut out),
        "providers" => return providers::cmd_providers(&folder, &typed(args)?, json, &mut out),
        "secrets" => return providers::cmd_secrets(&typed(args)?, json, &mut out),
        "devices" => return devices::cmd_devices(&typed(args)?, json, &mut out),
        "pair" => return devices::cmd_pair(&typed(args)?, json, &mut out),
        #[cfg(feature = "hub")]
        "hub" => return hub::cmd_hub(&folder, &typed(args)?, json, &mut out),
        #[cfg(not(feature = "hub"))]
        "hub" => return Err(maintenance::built_without_hub()),
        "mcp" => return served::cmd_mcp(&folder, &typed(args)?, json, &mut out),
        "acp" => return served::cmd_acp(&folder),
        "serve" => return served::cmd_serve(&folder, &typed(args)?, json, &mut out),
        "tokens" => return served::tokens::cmd_tokens(&folder, &typed(args)?, json, &mut out),
        "bench" | "screenshots" => {
            return match hooks.bench {
                Some(measure) => measure(name, args, json, &mut out),
                None => run_bench_program(words),
            };
        }
        "git" => {
            let args: git_commands::GitArguments = typed(args)?;
            if args.verb == "merge-driver"
                && let Some(repository) = git_merge_driver::installed_folder(&args, &here)
            {
                git_read_only::refuse_read_only_folder(&folder, &repository)?;
                return git_merge_driver::install(&repository, &args, json, &mut out);
            }
            if args.volume.is_none() && !args.with_outputs && !(args.verb == "merge-driver" && args.install.is_some()) {
                let place = git_paths::find_in_workspace(&folder, &here, &args)?;
                git_read_only::refuse_in_read_only_volume(&folder, &place.folder, &place.args)?;
                let mut errors = std::io::stderr();
                let streams: git_commands::GitStreams<'_> = (&mut out, &mut errors, true);
                let done = git_commands::run_in_folder((&place.folder, &folder), &place.args, json, streams);
                let code = done.map_err(|error| place.explain(error))?;
                git_commands::record_heads(&folder, &place.folder, &place.args);
                let Some(cloned) = git_commands::cloned_folder(&args, &here) else { return Ok(code) };
                drop(out);
                let mut words = vec!["open".to_owned(), cloned, "--workspace".to_owned(), folder.display().to_string()];
                words.extend(json.then(|| "--json".to_owned()));
                let matches = parse::parse(&words).map_err(|error| CliError::usage(error.to_string()))?;
                return run_command_line(&matches, &words, (here, None), hooks);
            }
        }
        "fsck" => {
            if let Some(code) = maintenance::check_closed_workspace(&folder, &typed(args)?, json, &mut out)? {
                return Ok(code);
            }
        }
        _ => {}
    }
    volumes::check_paths_exist(name, args, &here)?;
    drop(out);
    let request = SocketRequest { words: words.to_vec(), folder: here, terminal };
    let create = matches!(name, "open" | "new" | "import" | "capture");
    if create {
        maintenance::refuse_notes_folder(&folder)?;
    }
    let open = if READING_COMMANDS.contains(&name) { host::open_workspace_read_only } else { host::open_workspace };
    let mut tries = 0;
    loop {
        match open(&folder, WorkspaceOptions { program: program_path()?, create }) {
            Ok(driver) => return run_as_owner(driver, &request),
            Err(OpenError::Owned { socket: Some(socket), .. }) => match socket::send_request(&socket, &request) {
                Ok(code) => return Ok(code),
                // A retry could repeat what was already done.
                Err(SocketError::Interrupted(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                    return Err(error.into());
                }
                Err(SocketError::Interrupted(error)) => {
                    return Err(CliError::workspace(format!(
                        "the program that has the workspace open ended in the middle of this ({}); look at what \
                         was done, and try again",
                        io_reason(&error)
                    )));
                }
                // The owner ended between the check of the lock and the call: the lock is free now.
                Err(SocketError::NotStarted(error)) if tries >= 20 || error.kind() == std::io::ErrorKind::TimedOut => {
                    return Err(CliError::workspace(format!(
                        "the program that has the workspace open does not answer ({}); close it and try again",
                        io_reason(&error)
                    )));
                }
                Err(SocketError::NotStarted(_)) => {}
            },
            // An owner that has just started hasn't announced its socket yet.
            Err(OpenError::Owned { socket: None, .. }) if tries < 20 => {}
            Err(error) => return Err(error.into()),
        }
        tries += 1;
        sleep(Duration::from_millis(100));
    }
}

/// Sleeps by parking the thread, without a clock of its own.
fn sleep(time: Duration) {
    std::thread::park_timeout(time);
}

/// Runs a command in this process, which owns the workspace meanwhile.
fn run_as_owner(driver: host::Driver, request: &SocketRequest) -> Result<u8, CliError> {
    // Other commands that arrive meanwhile are served through the socket; without one they wait.
    let guests = driver.serve_requests(serve_request);
    if guests.is_err() && driver.read_only_reason().is_none() {
        tracing::warn!("there is no local socket; other commands wait");
    }
    let reads_only = driver.read_only_reason().map(ToOwned::to_owned);
    if let Some(why) = &reads_only {
        eprintln!("tracebook: the workspace is only read, nothing is kept: {}", untrusted_text::escape_line(why));
    }
    for problem in driver.session().problems() {
        eprintln!("tracebook: {}", untrusted_text::escape_line(problem));
    }
    // The command for forks reports their state itself.
    if !request.words.iter().any(|word| word == "forks") {
        for interrupted in forks::ForkStore::new(driver.folder()).interruptions() {
            eprintln!("tracebook: {}", untrusted_text::escape_line(&interrupted));
        }
    }
    let handle = driver.handle();
    let session = std::thread::spawn(move || driver.run());
    if reads_only.is_none()
        && let Err(error) = package_commands::finish_interrupted(&handle)
    {
        eprintln!("tracebook: {}", untrusted_text::escape_line(&error.why));
    }
    let (mut input, mut out, mut errors) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let courier = TaskCourier::start(handle.clone());
    let code = run_request(&handle, request, &mut input, &mut out, &mut errors, true);
    drop(courier);
    guest_runs::wait_until_at_rest(&handle);
    if let Ok(guests) = guests {
        guests.drain();
    }
    guest_runs::wait_until_at_rest(&handle); // what the last guests have continued
    handle.close();
    match session.join() {
        // The usage was correct, but this workspace can't be written.
        Ok(Ok(())) if reads_only.is_some() && code == EXIT_USAGE && handle.has_refused_writes() => Ok(EXIT_WORKSPACE),
        Ok(Ok(())) => Ok(code),
        // The command has said so itself, or that nothing of the workspace can be used.
        Ok(Err(why)) if code == EXIT_WORKSPACE => {
            tracing::warn!(%why, "not everything could be saved");
            Ok(code)
        }
        Ok(Err(why)) => Err(CliError::workspace(format!("not everything could be saved: {why}"))),
        Err(_) => Err(CliError::workspace("the session failed; what was acknowledged is on disk")),
    }
}

/// Runs a command that another process received: the entry point for the local socket.
pub fn serve_request(
    handle: &Handle,
    request: &SocketRequest,
    input: &mut dyn Read,
    out: &mut dyn Write,
    errors: &mut dyn Write,
) -> u8 {
    run_request(handle, request, input, out, errors, false)
}

fn run_request(
    handle: &Handle,
    request: &SocketRequest,
    input: &mut dyn Read,
    out: &mut dyn Write,
    errors: &mut dyn Write,
    own: bool,
) -> u8 {
    if let Some(code) = window_start::answer_request(&request.words) {
        return code;
    }
    // Untrusted text is always escaped for terminals.
    let mut errors = TerminalWriter::new(errors, ScreenForm::Text);
    let errors = &mut errors;
    let mut log = None;
    let done = parse::parse(&request.words).map_err(|error| CliError::usage(error.to_string())).and_then(|matches| {
        let json = matches.get_flag("json");
        let Some((name, args)) = matches.subcommand() else {
            // A window wants the workspace. A server of other programs gives it up and works through the window.
            if served::request_release() {
                return Ok(EXIT_DONE);
            }
            return Err(CliError::workspace("the workspace is open in another window already"));
        };
        parse::refuse_empty_paths(args)?;
        log = Some(host::logging::CommandLog::begin(name, &request.words));
        let handle = &handle.for_command()?;
        let mut out = TerminalWriter::new(out, ScreenForm::for_command(name, args, json, request.terminal));
        let out: &mut dyn Write = &mut out;
        let (folder, terminal) = (request.folder.as_path(), request.terminal);
        let mut scene = CommandContext { handle, folder, json, terminal, input, out, errors: &mut *errors, own };
        let code = run_subcommand(&mut scene, name, args)?;
        scene.out.flush()?;
        Ok(code)
    });
    let code = done.unwrap_or_else(|refusal| {
        if !refusal.why.is_empty() {
            // Even if standard error is closed, the exit code reports the failure.
            let _ = writeln!(errors, "tracebook: {}", io_reason(&refusal.why));
        }
        refusal.code
    });
    if let Some(log) = log {
        log.end(code);
    }
    code
}

fn run_subcommand(scene: &mut CommandContext<'_>, name: &str, args: &ArgMatches) -> Result<u8, CliError> {
    match name {
        "open" => volumes::cmd_open(scene, &typed(args)?),
        "new" => volumes::cmd_new(scene, &typed(args)?),
        "capture" => capture::cmd_capture(scene, &typed(args)?),
        "import" => volumes::cmd_import(scene, &typed(args)?),
        "export" => volumes::cmd_export(scene, &typed(args)?),
        "ls" => volumes::cmd_ls(scene, &typed(args)?),
        "volumes" => volume_trust::cmd_volumes(scene, &typed(args)?),
        "attachments" => attachments::cmd_attachments(scene, &typed(args)?),
        "components" => components::cmd_components(scene, &typed(args)?),
        "packages" => package_commands::cmd_packages(scene, &typed(args)?),
        "providers" => {
            let folder = scene.handle.workspace_folder().to_owned();
            providers::cmd_providers(&folder, &typed(args)?, scene.json, scene.out)
        }
        "cat" => notes::cmd_cat(scene, &typed(args)?),
        "edit" => notes::cmd_edit(scene, &typed(args)?),
        "history" => history::cmd_history(scene, &typed(args)?),
        "outputs" => notes::cmd_outputs(scene, &typed(args)?),
        "cells" => cells::cmd_cells(scene, &typed(args)?),
        "kernels" => kernels::cmd_kernels(scene, &typed(args)?),
        "grant" => kernels::cmd_grant(scene, &typed(args)?),
        "base" => collection_view::cmd_base(scene, &typed(args)?),
        "links" => links::cmd_links(scene, &typed(args)?),
        "todos" => links::cmd_todos(scene, &typed(args)?),
        "mv" => file_ops::cmd_mv(scene, &typed(args)?),
        "cp" => system_files::cmd_cp(scene, &typed(args)?),
        "git" => git_commands::cmd_git(scene, &typed(args)?),
        "forks" => fork_commands::cmd_forks(scene, &typed(args)?),
        "rm" => file_ops::cmd_rm(scene, &typed(args)?),
        "trash" => file_ops::cmd_trash(scene, &typed(args)?),
        "restore-note" => file_ops::cmd_restore_note(scene, &typed(args)?),
        "undo" => file_ops::cmd_undo(scene),
        "follow" => file_ops::cmd_follow(scene),
        "run" => run_cells::cmd_run(scene, &typed(args)?),
        "ask" => {
            let args: arguments::AskArguments = typed(args)?;
            match &args.on {
                Some(on) => worker::cmd_ask_on(scene, on, &args),
                None => agents::cmd_ask(scene, &args),
            }
        }
        "runs" => agents::cmd_runs(scene, &typed(args)?),
        "steps" => agents::cmd_steps(scene, &typed(args)?),
        "sessions" => agents::cmd_sessions(scene, &typed(args)?),
        "approvals" => agents::cmd_approvals(scene, &typed(args)?),
        "tools" => agents::cmd_tools(scene, &typed(args)?),
        "traces" => memory::cmd_traces(scene, &typed(args)?),
        "memory" => memory::cmd_memory(scene, &typed(args)?),
        "budget" => memory::cmd_budget(scene, &typed(args)?),
        "tasks" => tasks::cmd_tasks(scene, &typed(args)?),
        "schedule" => schedules::cmd_schedule(scene, &typed(args)?),
        "events" => events::cmd_events(scene, &typed(args)?),
        "related" => search::cmd_related(scene, &typed(args)?),
        "search" => search::cmd_search(scene, &typed(args)?),
        "searches" => search::cmd_searches(scene, &typed(args)?),
        "index" => search::cmd_index(scene, &typed(args)?),
        "sync" => sync::cmd_sync(scene, &typed(args)?),
        "worker" => worker::cmd_worker(scene, &typed(args)?),
        "fsck" => maintenance::check_open_workspace(scene),
        "backup" => maintenance::cmd_backup(scene, &typed(args)?),
        other => Err(CliError::usage(format!("`{other}` is not for this place; see `tracebook --help`"))),
    }
}

/// Runs the benchmark program with the same arguments. It's separate to keep this program small.
fn run_bench_program(words: &[String]) -> Result<u8, CliError> {
    let bench = program_path()?.with_file_name(format!("tracebook-bench{}", std::env::consts::EXE_SUFFIX));
    match std::process::Command::new(&bench).args(words).status() {
        Ok(status) => Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(EXIT_FAILED)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(CliError::usage(format!(
            "there is no {}: benchmarks and screenshots are in a program of their own; in Tracebook's source, `cargo \
             bench-app` builds and runs it",
            bench.display()
        ))),
        Err(error) => Err(CliError::workspace(format!("{} does not start ({})", bench.display(), io_reason(&error)))),
    }
}
