//! `cmd_tools`: lists the tools that agents may use; reads, compares, approves, exports and imports the user's own.

use super::super::{CliError, CommandContext, EXIT_DONE};
use super::{DOCUMENT_READ_TIMEOUT, sessions, tool_packages};
use crate::arguments::ToolsArguments;
use agent::policy;
use agent::tool_file::{self, permission_names, tool_to_json, version_state};
use agent::tool_spec::ToolSpec;
use engine::{Command, Session};
use serde_json::{Value, json};
use store::{RegisteredTool, ToolLanguage, UserTool};
use text::untrusted_text;

/// A tool that agents may use, and whether its calls are asked about.
type ListedTool = (ToolSpec, bool);

pub(crate) fn cmd_tools(scene: &mut CommandContext<'_>, args: &ToolsArguments) -> Result<u8, CliError> {
    scene.handle.run_command(Command::ReadSetup)?;
    let ready = |session: &Session| {
        let agents = session.agents();
        let setup = agents.setup().filter(|_| !agents.is_reading())?;
        let own = session.user_tools()?;
        let listed = session.agent_tools().into_iter().map(|tool| {
            let asks = session.tool_requires_approval(&tool);
            (tool, asks)
        });
        let tools: Vec<ListedTool> = listed.collect();
        Some((tools, own.to_vec(), setup.problems.clone()))
    };
    let found = scene.handle.wait(Some(DOCUMENT_READ_TIMEOUT), ready)?;
    let found = found.ok_or_else(|| CliError::workspace("the tools could not be read in a minute"))?;
    let (tools, own, problems) = found;
    for problem in problems {
        writeln!(scene.errors, "tracebook: {}", untrusted_text::escape_line(&problem))?;
    }
    if let Some(file) = args.import.clone() {
        let text = sessions::read_input_file(scene, &file)?;
        let read = tool_file::parse_tool_file(&text)
            .map_err(|error| CliError::usage(format!("{file}: not a tool file: {error}")))?;
        for tool in read {
            scene.handle.run_command(Command::ProposeTool { tool: Box::new(tool) })?;
        }
        export::open_note::wait_until_saved(scene.handle)?;
        return Ok(EXIT_DONE);
    }
    let Some(word) = args.tool.as_deref() else {
        let changes = args.approve || args.install || args.disable || args.remove || args.rollback;
        if changes || args.versions || args.compare.is_some() {
            return Err(CliError::usage("say which tool; `tracebook tools` lists them"));
        }
        return if args.export { export_tools(scene, &own, None) } else { list_tools(scene, &tools, &own) };
    };
    // `NAME@VERSION` says which version is meant.
    let (name, version) = match word.rsplit_once('@') {
        Some((name, version)) => (name, Some(parse_version(version)?)),
        None => (word, None),
    };
    let Some(tool) = own.iter().find(|tool| tool.newest_version().is_some_and(|newest| newest.name == name)) else {
        return show_other_tool(scene, &tools, name, args);
    };
    let Some(newest) = tool.newest_version() else { return Ok(EXIT_DONE) };
    let chosen = match version {
        Some(version) => find_version(tool, name, version)?,
        None => newest,
    };
    let name = name.to_owned();
    if args.export {
        return export_tools(scene, &own, Some(chosen));
    } else if args.versions {
        return list_versions(scene, tool);
    } else if let Some(other) = &args.compare {
        return compare_versions(scene, find_version(tool, &name, parse_version(other)?)?, chosen);
    } else if args.rollback {
        let Some(before) = tool_file::version_before(tool) else {
            return Err(CliError::usage(format!("{name} has no version before the one that agents use")));
        };
        scene.handle.run_command(Command::ApproveTool { name: name.clone(), version: Some(before) })?;
        let line = format!("Agents use version {before} of {name} again.");
        scene.print_result(&json!({"name": name, "version": before}), line)?;
    } else if args.approve {
        // Versions newer than the last approved one haven't been reviewed.
        let unread = tool.versions.iter().filter(|one| tool.approved.is_none_or(|known| one.version > known));
        if let (None, 2..) = (version, unread.count()) {
            let newest = newest.version;
            return Err(CliError::usage(format!(
                "{name} has several versions that you have not approved: read the newest with `tracebook tools \
                 {name}`, then `tracebook tools {name}@{newest} --approve`"
            )));
        }
        scene.handle.run_command(Command::ApproveTool { name, version: Some(chosen.version) })?;
    } else if args.install {
        let used = tool.usable_version().filter(|_| version.is_none());
        return tool_packages::install_packages(scene, tool, used.unwrap_or(chosen));
    } else if args.disable {
        scene.handle.run_command(Command::ApproveTool { name, version: None })?;
    } else if args.remove {
        scene.handle.run_command(Command::RemoveTool { name })?;
    } else {
        return show_own_tool(scene, tool, chosen);
    }
    export::open_note::wait_until_saved(scene.handle)?;
    Ok(EXIT_DONE)
}

fn parse_version(word: &str) -> Result<u64, CliError> {
    word.parse().map_err(|_| CliError::usage(format!("a version is a number, not “{word}”")))
}

fn find_version<'a>(tool: &'a RegisteredTool, name: &str, version: u64) -> Result<&'a UserTool, CliError> {
    tool.versions.iter().find(|one| one.version == version).ok_or_else(|| {
        CliError::usage(format!("{name} has no version {version}; `tracebook tools {name} --versions` lists them"))
    })
}

fn export_tools(
    scene: &mut CommandContext<'_>,
    own: &[RegisteredTool],
    one: Option<&UserTool>,
) -> Result<u8, CliError> {
    let all: Vec<Value> = match one {
        Some(one) => vec![tool_to_json(one)],
        None => own.iter().filter_map(RegisteredTool::newest_version).map(tool_to_json).collect(),
    };
    writeln!(scene.out, "{}", serde_json::to_string_pretty(&all).unwrap_or_default())?;
    Ok(EXIT_DONE)
}

/// Prints a tool that isn't the user's own, or says that there's none.
fn show_other_tool(
    scene: &mut CommandContext<'_>,
    tools: &[ListedTool],
    name: &str,
    args: &ToolsArguments,
) -> Result<u8, CliError> {
    let Some((tool, asks)) = tools.iter().find(|(tool, _)| tool.name == name) else {
        return Err(CliError::usage(format!("there is no tool {name}; `tracebook tools` lists them")));
    };
    let changes = args.approve || args.install || args.disable || args.remove || args.rollback;
    if changes || args.versions || args.export || args.compare.is_some() {
        return Err(CliError::usage(format!(
            "{name} isn't a tool of your own, so it has no versions to approve; rules for it are in `approval` of \
             config.yaml"
        )));
    }
    let value = listed_json(tool, *asks);
    writeln!(scene.out, "{}", serde_json::to_string_pretty(&value).unwrap_or_default())?;
    Ok(EXIT_DONE)
}

/// Returns a tool as JSON: what models see, and what the user knows about it.
fn listed_json(tool: &ToolSpec, asks: bool) -> Value {
    let mut value = serde_json::to_value(tool).unwrap_or_default();
    let step = tool.step_tool();
    value["type"] = json!(tool.kind_label());
    value["id"] = json!(step.id);
    value["version"] = json!(step.version);
    value["hash"] = json!(step.hash);
    value["requires_approval"] = json!(asks);
    value
}

fn show_own_tool(scene: &mut CommandContext<'_>, tool: &RegisteredTool, one: &UserTool) -> Result<u8, CliError> {
    if scene.json {
        let mut value = tool_to_json(one);
        value["approved"] = json!(tool.approved);
        value["hash"] = json!(one.content_hash().to_string());
        writeln!(scene.out, "{value}")?;
        return Ok(EXIT_DONE);
    }
    let may = match permission_names(one).join(", ") {
        none if none.is_empty() => "no permissions".to_owned(),
        names => format!("may use {names}"),
    };
    let language = match one.language {
        ToolLanguage::Python => "Python",
        ToolLanguage::JavaScript => "JavaScript",
    };
    writeln!(scene.out, "{} version {}, {language}, {may}, {}", one.name, one.version, version_state(tool, one))?;
    writeln!(scene.out, "id {}, content {}", untrusted_text::escape_line(&one.tool_id()), one.content_hash())?;
    if let Some(line) = tool_packages::describe(scene, one) {
        writeln!(scene.out, "{}", untrusted_text::escape_line(&line))?;
    }
    let (description, code) = (untrusted_text::escape_block(&one.description), untrusted_text::escape_block(&one.code));
    writeln!(scene.out, "{description}\n\n{code}")?;
    Ok(EXIT_DONE)
}

fn list_versions(scene: &mut CommandContext<'_>, tool: &RegisteredTool) -> Result<u8, CliError> {
    for one in tool.versions.iter().rev() {
        let (hash, created) = (one.content_hash().to_string(), tool_file::format_iso_time(one.created));
        let state = version_state(tool, one);
        if scene.json {
            let mut value = tool_to_json(one);
            value["hash"] = json!(hash);
            value["state"] = json!(state);
            writeln!(scene.out, "{value}")?;
        } else {
            let author = untrusted_text::escape_line(&one.author);
            writeln!(
                scene.out,
                "{:4}  {state:20}  {created}  {}  {author}",
                one.version,
                hash.get(..12).unwrap_or_default()
            )?;
        }
    }
    Ok(EXIT_DONE)
}

/// Prints what differs between two versions, as a unified diff.
fn compare_versions(scene: &mut CommandContext<'_>, old: &UserTool, new: &UserTool) -> Result<u8, CliError> {
    let diff = tool_file::version_diff(old, new);
    if scene.json {
        let (from, to) = (tool_to_json(old), tool_to_json(new));
        writeln!(scene.out, "{}", json!({"from": from, "to": to, "diff": diff.unwrap_or_default()}))?;
    } else if let Some(diff) = diff {
        writeln!(scene.out, "{}", untrusted_text::escape_block(&diff))?;
    } else {
        writeln!(scene.out, "Version {} and version {} are the same.", old.version, new.version)?;
    }
    Ok(EXIT_DONE)
}

fn list_tools(scene: &mut CommandContext<'_>, tools: &[ListedTool], own: &[RegisteredTool]) -> Result<u8, CliError> {
    for (tool, asks) in tools {
        if scene.json {
            writeln!(scene.out, "{}", listed_json(tool, *asks))?;
        } else {
            let title = if tool.title() == tool.name { String::new() } else { format!(" ({})", tool.title()) };
            let (name, risk) = (untrusted_text::escape_line(&tool.name), policy::risk_label(tool.risk));
            let asks = if *asks { "asks" } else { "" };
            writeln!(
                scene.out,
                "{name:14} {risk:8} {asks:4} {}{}",
                untrusted_text::escape_line(&tool.description),
                untrusted_text::escape_line(&title)
            )?;
        }
    }
    for tool in own.iter().filter(|tool| tool.has_pending_version()).filter_map(RegisteredTool::newest_version) {
        let line = format!("{} (version {}) waits: tracebook tools {} --approve", tool.name, tool.version, tool.name);
        if !scene.json {
            writeln!(scene.out, "{line}")?;
        }
    }
    Ok(EXIT_DONE)
}
