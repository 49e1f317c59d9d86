//! `cmd_kernels`, `cmd_grant`: the kernels that a note may use, its current kernel, and the permissions of its cells.

use super::parse::needed;
use super::{
    CliError, CommandContext, EXIT_DONE, EXIT_FAILED, kernel_environments, kernel_packs, kernel_states, resolve,
};
use crate::arguments::{GrantArguments, KernelsArguments};
use engine::{
    Command, EMBEDDED_KERNEL, ENVIRONMENT_KERNEL, INSTANT_KERNEL, KernelGrant, KernelKind, KernelSpec, SCIENCE_KERNEL,
    Session,
};
use host::python_setup::{PythonSetup, SetupError, follow_setup, shell_line};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;
use store::DocId;
use text::untrusted_text;

/// Length of the displayed fingerprint prefix, which is enough to approve it.
const PRINT_PREFIX_CHARS: usize = 16;

pub(super) fn cmd_grant(scene: &mut CommandContext<'_>, args: &GrantArguments) -> Result<u8, CliError> {
    let note = resolve::resolve_note(scene, args.note.as_str())?;
    let _held = export::open_note::hold_note(scene.handle, note)?;
    let paths = |given: &[String]| -> Vec<PathBuf> { given.iter().map(|path| scene.folder.join(path)).collect() };
    let (read, write, network) = (paths(&args.read), paths(&args.write), args.network);
    let nothing = args.none;
    if nothing && (network || !read.is_empty() || !write.is_empty()) {
        return Err(CliError::usage("--none revokes all permissions, and takes no other option".to_owned()));
    }
    if let Some(path) = read.iter().chain(&write).find(|path| !path.exists()) {
        return Err(CliError::usage(format!("{}: no such file or folder; grant one that exists", path.display())));
    }
    let mut granted = scene.handle.read(move |session| session.kernel_grant(note))?;
    if nothing || network || !read.is_empty() || !write.is_empty() {
        export::open_note::read_loaded_note(scene.handle, note, |_| ())?;
        let known = |old: Vec<PathBuf>, new: Vec<PathBuf>| {
            let mut all = old;
            all.extend(new.into_iter().map(|path| path.canonicalize().unwrap_or(path)));
            all.sort();
            all.dedup();
            all
        };
        // The interpreter is a choice of its own.
        let interpreter = granted.interpreter;
        granted = if nothing {
            KernelGrant { interpreter, ..KernelGrant::default() }
        } else {
            KernelGrant {
                network: network || granted.network,
                read: known(granted.read, read),
                write: known(granted.write, write),
                interpreter,
            }
        };
        scene.handle.run_command(Command::Grant { note, grant: granted.clone() })?;
        export::open_note::wait_until_saved(scene.handle)?;
    }
    if scene.json {
        let said = json!({"network": granted.network, "read": granted.read, "write": granted.write});
        writeln!(scene.out, "{said}")?;
    } else {
        writeln!(scene.out, "the note's cells reach {}", granted.describe())?;
    }
    Ok(EXIT_DONE)
}

/// Searches for the kernels that a note may use.
pub(super) fn find_kernels(scene: &CommandContext<'_>, note: DocId) -> Result<Vec<KernelSpec>, CliError> {
    let before = scene.handle.read(Session::kernel_searches)?;
    scene.handle.run_command(Command::FindKernels { note })?;
    let found = move |session: &Session| (session.kernel_searches() > before).then(|| session.kernels().to_vec());
    Ok(scene.handle.wait(Some(Duration::from_secs(30)), found)?.unwrap_or_default())
}

/// Refuses a kernel that is neither one of our own nor among the Jupyter kernels found, and lists all there are.
pub(super) fn check_kernel(name: &str, found: &[KernelSpec]) -> Result<(), CliError> {
    if KernelKind::of(Some(name)).is_confined() || found.iter().any(|spec| spec.name == name) {
        return Ok(());
    }
    let own = [INSTANT_KERNEL, SCIENCE_KERNEL, ENVIRONMENT_KERNEL].into_iter();
    let known: Vec<&str> = own.chain(found.iter().map(|spec| spec.name.as_str())).collect();
    Err(CliError::usage(format!(
        "there is no Jupyter kernel {name} here; choose one of: {} (`tracebook kernels` describes them)",
        known.join(", ")
    )))
}

/// Creates an environment in the folder of the note's volume, installs a kernel and packages, and selects the kernel.
/// Prints each command as it starts.
fn set_up_python(scene: &mut CommandContext<'_>, note: DocId, packages: &[String]) -> Result<(), CliError> {
    let workspace = scene.handle.workspace_folder().to_owned();
    let look = move |session: &Session| {
        let (volume, _) = session.locate_file(note)?;
        let folder = session.volume(volume)?.root.clone()?;
        Some((folder, session.volumes().filter_map(|volume| volume.root.clone()).collect::<Vec<_>>()))
    };
    let Some((folder, mut shared)) = scene.handle.read(look)? else {
        return Err(CliError::usage("the note's volume has no folder on this device"));
    };
    shared.push(workspace);
    let setup = PythonSetup { folder, packages: packages.to_vec(), shared, variables: Vec::new() };
    let failed = |error: SetupError| CliError { code: EXIT_FAILED, why: error.to_string() };
    let plan = setup.plan().map_err(failed)?;
    if plan.is_existing {
        let lines: Vec<String> = plan.commands.iter().map(|words| shell_line(words)).collect();
        return Err(CliError::usage(format!(
            "{} is there already, and cells and agents could have changed it. If it's yours, install into it yourself: \
             {}; then choose the kernel with --use",
            plan.environment.display(),
            lines.join(" && ")
        )));
    }
    let environment = plan.environment.clone();
    let (json, out) = (scene.json, &mut *scene.out);
    let running = plan.start(|| ());
    let told = |line: &str| if json { Ok(()) } else { writeln!(out, "{}", untrusted_text::escape_line(line)) };
    follow_setup(&running, told).map_err(failed)?;
    let found = find_kernels(scene, note)?;
    let Some(spec) = found.into_iter().find(|spec| spec.path.starts_with(&environment)) else {
        return Err(CliError { code: EXIT_FAILED, why: format!("there's no kernel in {}", environment.display()) });
    };
    export::open_note::read_loaded_note(scene.handle, note, |_| ())?;
    scene.handle.run_command(Command::UseKernel {
        note,
        kernel: Some(spec.name),
        keep: true,
        seen: Some(spec.print),
    })?;
    export::open_note::wait_until_saved(scene.handle)?;
    Ok(())
}

/// Sets the kernel of notes that name none.
fn set_default_kernel(scene: &mut CommandContext<'_>, name: &str) -> Result<u8, CliError> {
    let kind = KernelKind::of(Some(name));
    if !kind.is_confined() {
        return Err(CliError::usage(format!(
            "{name} has all your rights, so it's chosen for each note: tracebook kernels NOTE --use {name}"
        )));
    }
    let mut settings = scene.handle.read(|session| session.settings().clone())?;
    settings.default_kernel = (kind != KernelKind::BuiltIn).then(|| name.to_owned());
    scene.handle.run_command(Command::Set { settings: Box::new(settings) })?;
    export::open_note::wait_until_saved(scene.handle)?;
    match scene.json {
        true => writeln!(scene.out, "{}", json!({"default": name}))?,
        false => writeln!(scene.out, "Notes that name no kernel run in {name} from now on.")?,
    }
    Ok(EXIT_DONE)
}

pub(super) fn cmd_kernels(scene: &mut CommandContext<'_>, args: &KernelsArguments) -> Result<u8, CliError> {
    let is_environment = KernelKind::of(args.use_kernel.as_deref()) == KernelKind::Environment;
    if args.interpreter.is_some() && (args.note.is_none() || !is_environment) {
        return Err(CliError::usage(
            "--interpreter needs a note and --use env: tracebook kernels NOTE --use env --interpreter PATH",
        ));
    }
    if let (None, Some(name)) = (&args.note, &args.use_kernel) {
        return set_default_kernel(scene, name);
    }
    let named = needed(args.note.as_deref(), "NOTE")?;
    if let (kernel_environments::ACTION, Some(note)) = (named, &args.name) {
        return kernel_environments::cmd_environment(scene, note, args);
    }
    if args.python.is_some() || args.sync || !args.add.is_empty() || !args.remove.is_empty() {
        return Err(CliError::usage("--python, --add, --remove and --sync need env: tracebook kernels env NOTE"));
    }
    if let Some(note) = &args.name {
        return kernel_states::cmd_kernel_states(scene, named, note, args);
    }
    if args.from.is_some() {
        return Err(CliError::usage("--from needs install: tracebook kernels install science --from WHEEL"));
    }
    let note = resolve::resolve_note(scene, named)?;
    let _held = export::open_note::hold_note(scene.handle, note)?;
    if args.setup {
        if args.use_kernel.is_some() {
            return Err(CliError::usage("--setup chooses the new kernel: give no --use"));
        }
        set_up_python(scene, note, &args.package)?;
    } else if !args.package.is_empty() {
        return Err(CliError::usage("--package needs --setup"));
    }
    let found = find_kernels(scene, note)?;
    if let Some(name) = args.use_kernel.as_ref() {
        check_kernel(name, &found)?;
        if is_environment {
            kernel_environments::choose_python(scene, note, args.interpreter.as_deref())?;
        }
        export::open_note::read_loaded_note(scene.handle, note, |_| ())?;
        let seen = args.allow.clone();
        let spec = found.iter().find(|spec| spec.name == *name);
        // An approval refers to the fingerprint prefix that was shown.
        let seen = seen.map(|seen| match spec {
            Some(spec) if seen.len() >= PRINT_PREFIX_CHARS && spec.print.starts_with(&seen) => spec.print.clone(),
            _ => seen,
        });
        let chosen = Command::UseKernel { note, kernel: Some(name.clone()), keep: true, seen };
        if let Err(refusal) = scene.handle.run_command(chosen) {
            let Some(spec) = spec.filter(|spec| spec.doubt.is_some()) else { return Err(refusal.into()) };
            let print = spec.print.get(..PRINT_PREFIX_CHARS).unwrap_or(&spec.print);
            return Err(CliError::usage(format!(
                "{}. If that is what you want: tracebook kernels NOTE --use {name} --allow {print}",
                spec.approval_question()
            )));
        }
        export::open_note::wait_until_saved(scene.handle)?;
    }
    let used = scene.handle.read(move |session| session.note(note)?.kernel_name().map(ToOwned::to_owned))?;
    // A note may name it in short.
    let (python, used) = match KernelKind::of(used.as_deref()) {
        KernelKind::Environment => {
            (Some(kernel_environments::find_python(scene, note)?), ENVIRONMENT_KERNEL.to_owned())
        }
        _ => (None, used.unwrap_or_else(|| EMBEDDED_KERNEL.to_owned())),
    };
    if scene.json {
        let listed: Vec<_> = found
            .iter()
            .map(|spec| {
                json!({
                    "name": spec.name, "title": spec.title, "language": spec.language, "path": spec.path,
                    "command": spec.command, "print": spec.print, "doubt": spec.doubt,
                })
            })
            .collect();
        let kinds = kernel_packs::kinds_as_json(&kernel_packs::installed_pack()?);
        writeln!(
            scene.out,
            "{}",
            json!({"used": used, "python": python.and_then(Result::ok), "kernels": listed, "kinds": kinds})
        )?;
        return Ok(EXIT_DONE);
    }
    let mark = |name: &str| if name == used { "*" } else { " " };
    writeln!(scene.out, "{} {EMBEDDED_KERNEL}  the built-in Python, in its sandbox", mark(EMBEDDED_KERNEL))?;
    for (name, about) in kernel_packs::kinds_in_words(&kernel_packs::installed_pack()?).into_iter().skip(1) {
        writeln!(scene.out, "{} {name}  {about}", mark(name))?;
        if let Some(python) = python.as_ref().filter(|_| name == used) {
            match python {
                Ok(path) => writeln!(scene.out, "    runs {}", path.display())?,
                Err(why) => {
                    writeln!(scene.out, "    can't run yet: {}", untrusted_text::escape_line(&why.to_string()))?
                }
            }
        }
    }
    for spec in &found {
        let place = spec.path.parent().unwrap_or(&spec.path).display();
        let ask = if spec.doubt.is_some() { " (asks before it runs)" } else { "" };
        writeln!(scene.out, "{} {}  {}, with your rights: {place}{ask}", mark(&spec.name), spec.name, spec.title)?;
    }
    if !found.iter().any(|spec| spec.name == used) && !KernelKind::of(Some(&used)).is_confined() {
        writeln!(scene.out, "* {used}  is not installed here")?;
    }
    Ok(EXIT_DONE)
}
