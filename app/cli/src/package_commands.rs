//! `cmd_packages`: searches, adds, updates, removes, lists and publishes packages. Nothing of a package is installed
//! before the user has approved it by its hash.

use super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED, resolve, volumes, yes_no_question};
use crate::arguments::PackagesArguments;
use host::Handle;
use host::fs::copy;
use host::sync::devices::load_or_create_device_key;
use packages::{
    InstallTargets, InstalledPackage, OpenPackages, PackageContent, PackageError, PackagePermissions,
    PackageSigningKey, PackageSource,
};
use serde_json::{Value, json};
use std::io::{BufRead, Read, Write};
use std::path::Path;
use text::untrusted_text;

/// Number of characters of a hash that are shown; a beginning of this length approves.
const SHORT_HASH_CHARS: usize = 16;
/// Maximum size of a key's file in bytes.
const MAX_KEY_FILE_BYTES: u64 = 4096;

impl From<PackageError> for CliError {
    fn from(error: PackageError) -> Self {
        match error {
            PackageError::Unreachable { .. } => CliError { code: EXIT_FAILED, why: error.to_string() },
            PackageError::Lock(_)
            | PackageError::Disk(_)
            | PackageError::Gone(_)
            | PackageError::Save(_)
            | PackageError::Unsaved(_)
            | PackageError::Slow(_) => CliError::workspace(error),
            PackageError::Malformed(_)
            | PackageError::TooLarge(_)
            | PackageError::Archive(_)
            | PackageError::Signature(_)
            | PackageError::Index(_)
            | PackageError::Conflict(_)
            | PackageError::NotInstalled(_)
            | PackageError::Address(_)
            | PackageError::Git(_)
            | PackageError::Configuration(_)
            | PackageError::Command(_) => CliError::usage(error),
        }
    }
}

/// Runs the actions that need no open workspace. Returns `None` for the others.
pub(super) fn run_without_workspace(
    workspace: &Path,
    here: &Path,
    args: &PackagesArguments,
    json: bool,
    out: &mut dyn Write,
    errors: &mut dyn Write,
) -> Option<Result<u8, CliError>> {
    match args.action.as_deref() {
        Some("search") => Some(search_indexes(workspace, args, json, out, errors)),
        Some("publish") => Some(publish(here, args, json, out)),
        _ => None,
    }
}

/// Runs `packages`.
pub(super) fn cmd_packages(scene: &mut CommandContext<'_>, args: &PackagesArguments) -> Result<u8, CliError> {
    let (workspace, here) = (scene.handle.workspace_folder().to_owned(), scene.folder.to_owned());
    if let Some(done) = run_without_workspace(&workspace, &here, args, scene.json, scene.out, scene.errors) {
        return done;
    }
    let packages = OpenPackages::new(scene.handle.clone());
    let _only = packages.begin()?;
    let needed = |what: &str| {
        let why = format!("say which package: tracebook packages {what}");
        args.package.as_deref().ok_or_else(|| CliError::usage(why))
    };
    match args.action.as_deref().unwrap_or("list") {
        "list" => list_packages(scene, &packages),
        "add" => add_package(scene, &packages, needed("add NAME, FOLDER, ARCHIVE or ADDRESS")?, args),
        "update" => update_packages(scene, &packages, args),
        "remove" => remove_package(scene, &packages, needed("remove NAME")?),
        other => Err(CliError::usage(format!(
            "packages does search, add, remove, update, list or publish, not “{}”",
            untrusted_text::escape_line(other)
        ))),
    }
}

/// Finishes a change of packages that a crash has interrupted, before any other command looks at the workspace.
pub(super) fn finish_interrupted(handle: &Handle) -> Result<(), CliError> {
    let packages = OpenPackages::new(handle.clone());
    if packages.store().has_interrupted_change() {
        let _only = packages.begin()?;
    }
    Ok(())
}

fn search_indexes(
    workspace: &Path,
    args: &PackagesArguments,
    json: bool,
    out: &mut dyn Write,
    errors: &mut dyn Write,
) -> Result<u8, CliError> {
    let words = args.package.as_deref().unwrap_or_default();
    let (mut rows, mut failed) = (Vec::new(), false);
    for location in packages::configured_indexes(workspace)? {
        let found = match packages::search_index(&location, words) {
            Ok(found) => found,
            Err(error) => {
                // Other indexes may have it.
                writeln!(errors, "tracebook: {}", untrusted_text::escape_line(&error.to_string()))?;
                failed = true;
                continue;
            }
        };
        for entry in found {
            let one = &entry.manifest;
            rows.push(json!({
                "name": one.name, "version": one.version, "description": one.description, "license": one.license,
                "permissions": one.permissions, "signer": entry.signer, "hash": entry.hash,
                "index": location.display_text(),
            }));
        }
    }
    if json {
        writeln!(out, "{}", Value::from(rows))?;
    } else {
        for row in rows {
            let text = |key: &str| untrusted_text::escape_line(row[key].as_str().unwrap_or_default()).into_owned();
            writeln!(out, "{:24} {:10} {}", text("name"), text("version"), text("description"))?;
        }
    }
    Ok(if failed { EXIT_FAILED } else { EXIT_DONE })
}

/// Reads the key that signs: a file of minisign, or this device's key.
fn signing_key(here: &Path, args: &PackagesArguments) -> Result<PackageSigningKey, CliError> {
    let Some(file) = &args.key else {
        let key =
            load_or_create_device_key().map_err(|error| CliError { code: EXIT_FAILED, why: error.to_string() })?;
        return Ok(PackageSigningKey::from_device(&key.0)?);
    };
    let text = copy::read(&copy::absolute_path(here, file), MAX_KEY_FILE_BYTES)
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| CliError::usage(format!("there is no readable key {file}; `minisign -G` makes one")))?;
    let password = || {
        if crate::terminal::is_terminal() {
            eprint!("Password of the key, which is not shown: ");
        }
        let read = crate::terminal::read_without_echo(|| {
            let mut line = String::new();
            std::io::stdin().lock().take(MAX_KEY_FILE_BYTES).read_line(&mut line).map(|_| line)
        });
        let line = read?;
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    };
    Ok(PackageSigningKey::from_minisign(&text, password)?)
}

fn publish(here: &Path, args: &PackagesArguments, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    let folder = args.package.as_deref().ok_or_else(|| {
        CliError::usage("say which folder: tracebook packages publish FOLDER --to INDEX_FOLDER --key FILE")
    })?;
    let existing = |word: &str| {
        let folder = copy::absolute_path(here, word);
        match copy::is_folder(&folder) {
            true => Ok(folder),
            false => Err(CliError::usage(format!("there is no folder {word}"))),
        }
    };
    let folder = existing(folder)?;
    // The folder of an index is made by the first package in it.
    let index_at = |word: &str| {
        let folder = copy::absolute_path(here, word);
        if folder.parent().is_some_and(copy::is_folder) {
            copy::create_folder(&folder).map_err(CliError::workspace)?;
        }
        existing(word)
    };
    let index = args.to.as_deref().map(index_at).transpose()?;
    let key = signing_key(here, args)?;
    let Some(index) = index else {
        let content = packages::sign_folder(&folder, &key)?;
        let (name, version) = (&content.manifest.name, &content.manifest.version);
        match json {
            true => writeln!(
                out,
                "{}",
                json!({"name": name, "version": version, "hash": content.hash, "signer": key.public_key()})
            )?,
            false => writeln!(out, "Signed {name} {version} in its folder. The public key is {}", key.public_key())?,
        }
        return Ok(EXIT_DONE);
    };
    let published = packages::publish_package(&folder, &index, &key)?;
    let (entry, archive) = (&published.entry, published.archive.display());
    if json {
        let mut value = serde_json::to_value(entry).unwrap_or_default();
        value["archive"] = json!(archive.to_string());
        writeln!(out, "{value}")?;
    } else {
        writeln!(out, "Published {} {}: {archive}", entry.manifest.name, entry.manifest.version)?;
        writeln!(out, "The public key is {}", key.public_key())?;
    }
    Ok(EXIT_DONE)
}

/// Returns the permissions as JSON and in words.
fn permission_lines(permissions: &PackagePermissions) -> String {
    match permissions.is_empty() {
        true => "it needs no permissions".to_owned(),
        false => permissions.describe().join("; "),
    }
}

fn content_json(content: &PackageContent, source: &PackageSource) -> Value {
    let files: Vec<Value> = content
        .files()
        .iter()
        .map(|(path, bytes)| json!({"path": path, "bytes": bytes.len(), "hash": store::BlobHash::of(bytes)}))
        .collect();
    let one = &content.manifest;
    json!({
        "name": one.name, "version": one.version, "description": one.description, "license": one.license,
        "permissions": one.permissions, "hash": content.hash, "signer": content.signer,
        "source": source.display_text(), "files": files, "tools": content.tools.keys().collect::<Vec<_>>(),
    })
}

/// Prints what is in a package, and what it may do.
fn show_content(
    scene: &mut CommandContext<'_>,
    content: &PackageContent,
    source: &PackageSource,
    whole: bool,
) -> Result<(), CliError> {
    let one = &content.manifest;
    let line = format!("{} {}: {} ({})", one.name, one.version, one.description, one.license);
    writeln!(scene.out, "{}", untrusted_text::escape_line(&line))?;
    let from = format!("from {}", source.display_text());
    writeln!(scene.out, "{}", untrusted_text::escape_line(&from))?;
    match &content.signer {
        Some(key) => writeln!(scene.out, "signed by {}", untrusted_text::escape_line(key))?,
        None => writeln!(scene.out, "not signed")?,
    }
    writeln!(scene.out, "hash {}", content.hash)?;
    writeln!(scene.out, "{}", untrusted_text::escape_line(&permission_lines(&one.permissions)))?;
    for (part, name, bytes) in content.parts() {
        let path = format!("{}/{name}", part.folder());
        writeln!(scene.out, "  {:>8} bytes  {}", bytes.len(), untrusted_text::escape_line(&path))?;
        if whole {
            writeln!(scene.out, "{}\n", untrusted_text::escape_block(&String::from_utf8_lossy(bytes)))?;
        }
    }
    Ok(())
}

fn short_hash(content: &PackageContent) -> String {
    content.hash.to_string().chars().take(SHORT_HASH_CHARS).collect()
}

/// Asks the person at the terminal, if there is one, whether they approve what was shown.
fn approves_shown(scene: &mut CommandContext<'_>, question: &str) -> Result<bool, CliError> {
    Ok(scene.own && yes_no_question::can_ask() && yes_no_question::is_agreed(question, scene.input, scene.out)?)
}

/// Checks an approval: the hash, or its beginning.
fn is_approved(content: &PackageContent, approved: Option<&str>) -> Result<bool, CliError> {
    let Some(word) = approved else { return Ok(false) };
    let hash = content.hash.to_string();
    if word.len() < SHORT_HASH_CHARS {
        return Err(CliError::usage(format!("--approve wants at least {SHORT_HASH_CHARS} characters of the hash")));
    }
    match hash.starts_with(&word.to_ascii_lowercase()) {
        true => Ok(true),
        false => Err(CliError::usage(format!(
            "{} isn't what you approved: its hash is {hash}. Look at it again without --approve",
            content.manifest.name
        ))),
    }
}

/// Returns where the files of a package go.
fn install_targets(
    scene: &mut CommandContext<'_>,
    packages: &OpenPackages,
    content: &PackageContent,
    (old, named): (Option<&InstalledPackage>, Option<&str>),
) -> Result<InstallTargets, CliError> {
    if !content.has_notes() || old.is_some_and(|old| old.volume.is_some()) {
        return Ok(packages.targets(content, old, None)?);
    }
    if named.is_none() {
        let names = scene.handle.read(|session| {
            let with_folder = session.volumes().filter(|volume| volume.root.is_some());
            with_folder.map(|volume| volume.name.clone()).collect::<Vec<_>>()
        })?;
        if names.len() > 1 {
            return Err(CliError::usage(format!(
                "the package has notes; say which volume gets them: --volume NAME, one of {}",
                names.join(", ")
            )));
        }
    }
    let (id, _) = volumes::volume_or_new(scene, named, true)?;
    Ok(packages.targets(content, old, Some(id))?)
}

/// Prints what follows from an installation.
fn print_installed(
    scene: &mut CommandContext<'_>,
    packages: &OpenPackages,
    content: &PackageContent,
    source: &PackageSource,
    (verb, kept): (&str, &[String]),
) -> Result<(), CliError> {
    if scene.json {
        let mut value = content_json(content, source);
        value["installed"] = json!(true);
        value["kept"] = json!(kept);
        writeln!(scene.out, "{value}")?;
        return Ok(());
    }
    writeln!(scene.out, "{verb} {} {}.", content.manifest.name, content.manifest.version)?;
    print_kept(scene, kept)?;
    if !content.tools.is_empty() {
        let known = packages.read_tools()?;
        let waits = known.iter().filter(|tool| tool.has_pending_version()).cloned().collect::<Vec<_>>();
        for name in packages::tool_names(&waits).filter(|name| content.tools.contains_key(*name)) {
            writeln!(scene.out, "Its tool {name} waits: tracebook tools {name} --approve")?;
        }
    }
    Ok(())
}

fn print_kept(scene: &mut CommandContext<'_>, kept: &[String]) -> Result<(), CliError> {
    for path in kept {
        let path = untrusted_text::escape_line(path);
        writeln!(scene.out, "Kept as it is, since it isn't what the package installed: {path}")?;
    }
    Ok(())
}

fn add_package(
    scene: &mut CommandContext<'_>,
    packages: &OpenPackages,
    word: &str,
    args: &PackagesArguments,
) -> Result<u8, CliError> {
    let (content, source) = packages.fetch(word, scene.folder)?;
    let name = content.manifest.name.clone();
    if let Some(old) = packages.store().lock()?.packages.get(&name) {
        return Err(CliError::usage(format!(
            "{name} {} is installed already; `tracebook packages update {name}` looks for a newer version",
            old.version
        )));
    }
    packages.check_names(&content, None)?;
    if !is_approved(&content, args.approve.as_deref())? {
        if scene.json {
            let mut value = content_json(&content, &source);
            value["installed"] = json!(false);
            writeln!(scene.out, "{value}")?;
            return Ok(EXIT_FAILED);
        }
        show_content(scene, &content, &source, args.contents)?;
        writeln!(scene.out)?;
        if !approves_shown(scene, "Install exactly this?")? {
            let volume = args.volume.as_ref().map(|volume| format!(" --volume {volume:?}")).unwrap_or_default();
            let hash = short_hash(&content);
            let line = format!(
                "Nothing is installed yet. To install exactly this: tracebook packages add {word}{volume} --approve \
                 {hash}"
            );
            writeln!(scene.out, "{}", untrusted_text::escape_block(&line))?;
            return Ok(EXIT_FAILED);
        }
    }
    let targets = install_targets(scene, packages, &content, (None, args.volume.as_deref()))?;
    let settled = packages.install(&content, &source, &targets)?;
    print_installed(scene, packages, &content, &source, ("Installed", &settled.kept))?;
    Ok(EXIT_DONE)
}

fn update_packages(
    scene: &mut CommandContext<'_>,
    packages: &OpenPackages,
    args: &PackagesArguments,
) -> Result<u8, CliError> {
    let lock = packages.store().lock()?;
    let chosen: Vec<InstalledPackage> = match args.package.as_deref() {
        Some(name) => vec![lock.package(name)?.clone()],
        None if args.approve.is_some() => {
            return Err(CliError::usage(
                "say which package is approved: tracebook packages update NAME --approve HASH",
            ));
        }
        None => lock.packages.values().cloned().collect(),
    };
    let mut code = EXIT_DONE;
    for old in chosen {
        match update_package(scene, packages, &old, args) {
            Ok(EXIT_DONE) => {}
            Ok(other) => code = other,
            Err(error) if args.package.is_some() => return Err(error),
            // One that can't be updated doesn't stop the others.
            Err(error) => {
                writeln!(scene.errors, "tracebook: {}: {}", old.name, untrusted_text::escape_line(&error.why))?;
                code = EXIT_FAILED;
            }
        }
    }
    Ok(code)
}

fn update_package(
    scene: &mut CommandContext<'_>,
    packages: &OpenPackages,
    old: &InstalledPackage,
    args: &PackagesArguments,
) -> Result<u8, CliError> {
    let content = packages::fetch_update(old)?;
    let approved = is_approved(&content, args.approve.as_deref())?;
    let name = &old.name;
    if content.hash == old.hash {
        match scene.json {
            true => {
                writeln!(scene.out, "{}", json!({"name": name, "version": old.version, "installed": true, "kept": []}))?
            }
            false => writeln!(scene.out, "{name} {} is up to date.", old.version)?,
        }
        return Ok(EXIT_DONE);
    }
    packages.check_names(&content, Some(old))?;
    let more = content.manifest.permissions.beyond(&old.permissions);
    if !more.is_empty() && !approved {
        if scene.json {
            let mut value = content_json(&content, &old.source);
            value["installed"] = json!(false);
            value["more"] = json!(more);
            writeln!(scene.out, "{value}")?;
            return Ok(EXIT_FAILED);
        }
        show_content(scene, &content, &old.source, args.contents)?;
        let (new, before) = (&content.manifest.version, &old.version);
        let more = permission_lines(&more);
        let line = format!("\n{name} {new} wants more than you have approved for {before}: {more}.");
        writeln!(scene.out, "{}", untrusted_text::escape_block(&line))?;
        if !approves_shown(scene, "Update to exactly this?")? {
            let hash = short_hash(&content);
            let line = format!(
                "Nothing is changed yet. To approve exactly this: tracebook packages update {name} --approve {hash}"
            );
            writeln!(scene.out, "{}", untrusted_text::escape_block(&line))?;
            return Ok(EXIT_FAILED);
        }
    }
    let targets = install_targets(scene, packages, &content, (Some(old), args.volume.as_deref()))?;
    let settled = packages.install(&content, &old.source, &targets)?;
    print_installed(scene, packages, &content, &old.source, ("Updated to", &settled.kept))?;
    Ok(EXIT_DONE)
}

fn remove_package(scene: &mut CommandContext<'_>, packages: &OpenPackages, name: &str) -> Result<u8, CliError> {
    let version = packages.store().lock()?.package(name)?.version.clone();
    resolve::wait_for_volumes(scene, false)?;
    let settled = packages.remove(name)?;
    if scene.json {
        writeln!(scene.out, "{}", json!({"name": name, "installed": false, "kept": settled.kept}))?;
    } else {
        writeln!(scene.out, "Removed {name} {version}.")?;
        print_kept(scene, &settled.kept)?;
    }
    Ok(EXIT_DONE)
}

fn list_packages(scene: &mut CommandContext<'_>, packages: &OpenPackages) -> Result<u8, CliError> {
    resolve::wait_for_volumes(scene, false)?;
    let mut rows = Vec::new();
    for package in packages.store().lock()?.packages.values() {
        let root = packages.installed_root(package)?;
        let (changed, gone) = packages.store().changed_files(package, root.as_deref());
        let files: Vec<Value> =
            package.files.iter().map(|file| json!({"part": file.part, "path": file.path, "hash": file.hash})).collect();
        rows.push(json!({
            "name": package.name, "version": package.version, "source": package.source.display_text(),
            "hash": package.hash, "signer": package.signer, "permissions": package.permissions,
            "volume": package.volume.as_ref().map(|volume| &volume.name), "files": files,
            "tools": package.tools.keys().collect::<Vec<_>>(),
            "changed": changed, "gone": gone,
        }));
        if scene.json {
            continue;
        }
        let source = package.source.display_text();
        let signed = if package.signer.is_some() { "signed" } else { "not signed" };
        let line = format!("{:24} {:10} {signed}, from {source}", package.name, package.version);
        writeln!(scene.out, "{}", untrusted_text::escape_line(&line))?;
        for (paths, state) in [(&changed, "changed"), (&gone, "gone")] {
            for path in paths {
                writeln!(scene.out, "  {state}: {}", untrusted_text::escape_line(path))?;
            }
        }
    }
    scene.explain_empty_list(
        rows.is_empty(),
        "No packages are installed. `tracebook packages add NAME` installs one.",
    )?;
    if scene.json {
        writeln!(scene.out, "{}", Value::from(rows))?;
    }
    Ok(EXIT_DONE)
}
