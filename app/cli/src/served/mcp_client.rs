//! `mcp tools`, `mcp call`, `mcp prompts`, `mcp resources`, `mcp login`, `mcp logout`: what a person does with the MCP
//! servers of the configuration. What agents do with them needs approval; a person who types a command has decided.

use super::mcp_offers::{OfferKind, list_offers, print_material};
use crate::arguments::McpArguments;
use crate::form_prompt::read_form;
use crate::parse::needed;
use crate::web_browser::{open_browser, open_page};
use crate::{CliError, EXIT_DONE, EXIT_FAILED};
use host::agents::mcp_servers::{SecretTokens, find_mcp_server};
use host::maintenance::configuration;
use host::maintenance::secrets::UserSecrets;
use host::mcp::{
    FormAnswer, FormUser, McpError, McpServer, McpServerPool, McpToolResult, PendingMcpResponse, SIGN_IN_TIMEOUT,
    SignInError, TokenVault, UserForm, UserFormField,
};
use serde_json::{Map, Value, json};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use text::untrusted_text;

/// Limit for a call, if the user doesn't say.
const DEFAULT_CALL_SECONDS: u64 = 300;
const MAX_CALL_SECONDS: u64 = 86_400;
/// Limit for the list of tools, with the start of the server.
const LIST_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum size of the arguments of a call in bytes.
const MAX_ARGUMENTS_BYTES: u64 = 8 << 20;

impl From<McpError> for CliError {
    fn from(error: McpError) -> Self {
        match error {
            McpError::UnknownServer(_)
            | McpError::SignInNeeded { .. }
            | McpError::ClientRefused { .. }
            | McpError::PageNeeded { .. }
            | McpError::Refused { .. }
            | McpError::NotText { .. } => CliError::usage(error),
            McpError::Start { .. }
            | McpError::ExitedTwice { .. }
            | McpError::Exited { .. }
            | McpError::TimedOut { .. }
            | McpError::ResultTooLarge(_)
            | McpError::Closing => CliError { code: EXIT_FAILED, why: error.to_string() },
        }
    }
}

impl From<SignInError> for CliError {
    fn from(error: SignInError) -> Self {
        match error {
            SignInError::Server(error) => error.into(),
            SignInError::NotRemote(_)
            | SignInError::NotByUser(_)
            | SignInError::NotAsked(_)
            | SignInError::Refused(_) => CliError::usage(error),
            SignInError::Port(_) | SignInError::TimedOut | SignInError::Vault(_) => {
                CliError { code: EXIT_FAILED, why: error.to_string() }
            }
        }
    }
}

/// The person at the terminal.
struct TerminalUser {
    /// Whether forms are filled with their defaults.
    takes_defaults: bool,
}

impl FormUser for TerminalUser {
    fn fill_in(&self, form: &UserForm) -> FormAnswer {
        if self.takes_defaults {
            let can_be_left = |field: &UserFormField| field.default.is_some() || !field.is_needed;
            return if form.page.is_none() && form.fields.iter().all(can_be_left) {
                FormAnswer::Filled(Map::new())
            } else {
                FormAnswer::Closed
            };
        }
        if !std::io::stdin().is_terminal() {
            return FormAnswer::Closed;
        }
        let mut errors = std::io::stderr();
        let answer = read_form(form, &mut std::io::stdin(), &mut errors).and_then(|answer| {
            if matches!(answer, FormAnswer::Filled(_)) {
                open_page(form, true, &mut errors)?;
            }
            Ok(answer)
        });
        // A terminal that fails shows no form, so nobody answers.
        answer.unwrap_or(FormAnswer::Closed)
    }
}

pub(super) fn waited<T>(pending: &PendingMcpResponse<T>, limit: Duration) -> Result<T, CliError> {
    let late = || CliError { code: EXIT_FAILED, why: format!("no answer within {} s", limit.as_secs()) };
    Ok(pending.wait(limit).ok_or_else(late)??)
}

fn list_tools(pool: &McpServerPool, server: &McpServer, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    let listed = waited(&pool.list_tools(&server.name), LIST_TIMEOUT)?;
    for why in &listed.left_out {
        eprintln!("tracebook: {}", untrusted_text::escape_line(why));
    }
    for tool in &listed.tools {
        if json {
            let (name, about) = (&tool.name, &tool.description);
            writeln!(out, "{}", json!({"name": name, "description": about, "schema": tool.schema}))?;
            continue;
        }
        let first = tool.description.lines().next().unwrap_or_default();
        writeln!(out, "{}", untrusted_text::escape_line(&format!("{:<28} {first}", tool.name)))?;
    }
    if listed.tools.is_empty() && !json {
        writeln!(out, "{} has no tools", untrusted_text::escape_line(&server.name))?;
    }
    Ok(EXIT_DONE)
}

/// Reads the arguments of a call: JSON, or `-` for standard input.
fn call_arguments(text: Option<&str>) -> Result<Map<String, Value>, CliError> {
    let text = match text {
        None => return Ok(Map::new()),
        Some("-") => crate::parse::read_text_input(&mut std::io::stdin(), MAX_ARGUMENTS_BYTES)?,
        Some(text) => text.to_owned(),
    };
    let wrong = |why: String| CliError::usage(format!("--arguments wants a JSON object: {why}"));
    match serde_json::from_str(&text) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err(wrong("this is another value".to_owned())),
        Err(error) => Err(wrong(error.to_string())),
    }
}

fn print_result(result: &McpToolResult, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    if json {
        let attached = |(mime, bytes): &(String, Vec<u8>)| json!({"mime": mime, "bytes": bytes.len()});
        let attached: Vec<Value> = result.attached.iter().map(attached).collect();
        writeln!(out, "{}", json!({"text": result.text, "failed": result.failed, "attached": attached}))?;
    } else {
        writeln!(out, "{}", untrusted_text::escape_block(&result.text))?;
    }
    Ok(if result.failed { EXIT_FAILED } else { EXIT_DONE })
}

fn sign_in(server: &McpServer, vault: Arc<dyn TokenVault>, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    let show = |address: &str| {
        let is_open = open_browser(address);
        let words = if is_open { "Sign in in your browser. If no page opens, open" } else { "Open in your browser" };
        eprintln!("{words}:\n{}", untrusted_text::escape_line(address));
        eprintln!("Waiting for at most {} minutes; Ctrl+C ends it.", SIGN_IN_TIMEOUT.as_secs() / 60);
    };
    host::mcp::sign_in(server, vault, show)?;
    match json {
        true => writeln!(out, "{}", json!({"server": server.name, "signed_in": true}))?,
        false => writeln!(out, "Signed in at {}", untrusted_text::escape_line(&server.name))?,
    }
    Ok(EXIT_DONE)
}

fn sign_out(server: &McpServer, vault: &dyn TokenVault, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    let was_there = host::mcp::sign_out(server, vault)?;
    let name = untrusted_text::escape_line(&server.name);
    match (json, was_there) {
        (true, _) => writeln!(out, "{}", json!({"server": server.name, "signed_out": was_there}))?,
        (false, true) => writeln!(out, "Signed out of {name}")?,
        (false, false) => writeln!(out, "Nobody was signed in at {name}")?,
    }
    Ok(EXIT_DONE)
}

/// Returns the servers that `args` name: one, or for lists all that the configuration has switched on.
fn named_servers(
    folder: &Path,
    args: &McpArguments,
    lists: bool,
    secrets: &UserSecrets,
) -> Result<Vec<McpServer>, CliError> {
    let find = |name: &str| find_mcp_server(folder, name, secrets).map_err(|error| CliError::usage(error.to_string()));
    if args.name.is_some() || !lists {
        return Ok(vec![find(needed(args.name.as_deref(), "NAME")?)?]);
    }
    let config = configuration::load_config(folder).map_err(|error| CliError::usage(error.to_string()))?;
    let enabled = config.mcp.servers.iter().filter(|(_, server)| server.enabled.unwrap_or(true));
    enabled.map(|(name, _)| find(name)).collect()
}

/// Runs `mcp tools`, `mcp call`, `mcp prompts`, `mcp resources`, `mcp login` or `mcp logout` for the server that `args`
/// name.
pub(super) fn use_server(
    folder: &Path,
    what: &str,
    args: &McpArguments,
    json: bool,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    let kind = OfferKind::from_word(what);
    let secrets = configuration::user_config_folder().map(|folder| Arc::new(UserSecrets::new(&folder)));
    let secrets = secrets.ok_or_else(|| CliError::usage("there is no home folder; set XDG_CONFIG_HOME"))?;
    let servers = named_servers(folder, args, kind.is_some(), &secrets)?;
    let vault: Arc<dyn TokenVault> = Arc::new(SecretTokens::new(secrets));
    if args.tool.is_some() && what != "call" && kind.is_none() {
        return Err(CliError::usage(format!("mcp {what} takes the name of a server only")));
    }
    match (what, servers.as_slice()) {
        ("login", [server]) => return sign_in(server, vault, json, out),
        ("logout", [server]) => return sign_out(server, &*vault, json, out),
        _ => {}
    }
    let forms: Arc<dyn FormUser> = Arc::new(TerminalUser { takes_defaults: args.yes });
    let pool = McpServerPool::new(Some(vault), Some(forms));
    pool.configure(servers.clone());
    let server = match (kind, servers.as_slice()) {
        (None, [server]) => server,
        (Some(kind), [server]) if args.tool.is_some() => {
            let (name, arguments) = (args.tool.as_deref().unwrap_or_default(), args.arguments.as_deref());
            let arguments = call_arguments(arguments)?;
            return print_material(&pool, &server.name, (kind, name), &arguments, (json, out));
        }
        (kind, servers) => return list_offers(&pool, servers, kind.unwrap_or(OfferKind::Prompts), json, out),
    };
    if what == "tools" {
        return list_tools(&pool, server, json, out);
    }
    let name = &server.name;
    let tool = needed(args.tool.as_deref(), "TOOL")?;
    let arguments = call_arguments(args.arguments.as_deref())?;
    let seconds = crate::parse::number_option("timeout", args.timeout.as_deref())?.unwrap_or(DEFAULT_CALL_SECONDS);
    let limit = Duration::from_secs(seconds.clamp(1, MAX_CALL_SECONDS));
    // A server may ask with a form as soon as it's called, on a stream that is open after this answer.
    let listed = waited(&pool.list_tools(&server.name), LIST_TIMEOUT)?;
    if listed.tools.iter().all(|known| known.name != tool) {
        let names: Vec<&str> = listed.tools.iter().map(|known| known.name.as_str()).collect();
        return Err(CliError::usage(untrusted_text::escape_line(&format!(
            "{name} has no tool {tool}; there are {}",
            names.join(", ")
        ))));
    }
    let pending = pool.call_tool(&server.name, tool, arguments, limit);
    print_result(&waited(&pending, limit + host::mcp::SERVER_START_TIMEOUT)?, json, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_an_object() {
        assert!(call_arguments(Some("[1]")).is_err() && call_arguments(Some("{")).is_err());
    }
}
