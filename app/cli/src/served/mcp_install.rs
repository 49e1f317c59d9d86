//! `mcp install`: shows the configuration that makes a program start the MCP server, and writes it.

use crate::arguments::McpArguments;
use crate::{CliError, EXIT_DONE, program_path, yes_no_question};
use host::fs::{copy, user_file};
use serde_json::json;
use serve::WritePermission;
use serve::mcp_install::{ConfigFolders, McpClientProgram};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Maximum size of a configuration in bytes.
const MAX_CONFIG_BYTES: u64 = 64 << 20;

/// Returns the programs that can be named.
pub(super) fn program_names() -> String {
    McpClientProgram::ALL.map(McpClientProgram::name).join(", ")
}

fn config_folders() -> Result<ConfigFolders, CliError> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = folder("HOME").or_else(|| folder("USERPROFILE"));
    let home = home.ok_or_else(|| CliError::usage("there is no home folder, so no configuration"))?;
    let config = match std::env::consts::OS {
        "macos" => home.join("Library").join("Application Support"),
        "windows" => folder("APPDATA").unwrap_or_else(|| home.clone()),
        _ => folder("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
    };
    Ok(ConfigFolders { home, config })
}

/// Shows the change of a program's configuration, and writes it after a yes.
pub(super) fn install(
    folder: &Path,
    program: &str,
    args: &McpArguments,
    json: bool,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    let unknown = || CliError::usage(format!("{program} is not known; there are {}", program_names()));
    let client = McpClientProgram::from_name(program).ok_or_else(unknown)?;
    let path = client.config_path(&config_folders()?);
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let mut arguments = vec!["--workspace".to_owned()];
    arguments.push(copy::absolute_path(&here, &folder.to_string_lossy()).display().to_string());
    arguments.push("mcp".to_owned());
    // What changes notes asks, unless the user says otherwise.
    match super::write_permission(args.allow_write.as_deref().unwrap_or("ask"))? {
        WritePermission::Yes => arguments.push("--allow-write".to_owned()),
        WritePermission::AfterApproval => arguments.push("--allow-write=ask".to_owned()),
        WritePermission::No => {}
    }
    let options =
        [(args.allow_run, "--allow-run"), (args.allow_agent, "--allow-agent"), (args.allow_approve, "--allow-approve")];
    arguments.extend(options.into_iter().filter(|(set, _)| *set).map(|(_, option)| option.to_owned()));
    let old = user_file::read_user_file(&path, MAX_CONFIG_BYTES).map_err(CliError::usage)?;
    let text = String::from_utf8(old.clone().unwrap_or_default())
        .map_err(|_| CliError::usage(format!("{} isn't UTF-8 text; add the entry by hand", path.display())))?;
    let new = client.with_entry(&text, &program_path()?, &arguments).map_err(|error| {
        CliError::usage(format!("{} can't be changed: {error}. Correct it, and try again", path.display()))
    })?;
    if new == text {
        match json {
            true => writeln!(out, "{}", json!({"path": path, "written": false}))?,
            false => writeln!(out, "{} has it already", path.display())?,
        }
        return Ok(EXIT_DONE);
    }
    if !json {
        yes_no_question::show_change(&path, old.is_some().then_some(text.as_str()), &new, out)?;
    }
    if !args.yes && !yes_no_question::is_write_agreed(json, out)? {
        return Ok(EXIT_DONE);
    }
    user_file::replace_user_file(&path, old.as_deref(), new.as_bytes()).map_err(CliError::usage)?;
    match json {
        true => writeln!(out, "{}", json!({"path": path, "written": true}))?,
        false => writeln!(out, "Written. Restart {program} to use it")?,
    }
    Ok(EXIT_DONE)
}
