//! The part of the agents page about MCP servers: what each offers, a switch, signing in, and adding one.

use agent::config::McpServerConfig;
use agent::web_address::WebAddress;
use agent_ui::config_writer::{ConfigWriter, config_value};
use anyhow::{Context as _, anyhow};
use eframe::egui;
use engine::{AgentSetup, Command};
use host::agents::mcp_servers::{SecretTokens, find_mcp_server};
use host::maintenance::configuration;
use host::maintenance::secrets::UserSecrets;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use ui::setting_rows::{SettingsRows, text, toggle_switch};
use ui::text::{counted, sentence};
use ui::widgets::text_button;

/// Programs that start other programs; their names say nothing about a server.
const LAUNCHERS: [&str; 9] = ["npx", "uvx", "node", "deno", "python", "python3", "docker", "podman", "env"];
/// Maximum length of a server's name made from its command or address.
const MAX_SERVER_NAME_CHARS: usize = 40;

/// A step of signing in to a server.
enum SignInStep {
    /// The page that the user opens in a browser.
    Page(String),
    /// The end of the sign-in.
    Ended(anyhow::Result<()>),
}

/// A running sign-in, or its result.
enum SignInState {
    Waits(Receiver<SignInStep>),
    Ended(anyhow::Result<()>),
}

/// State of the MCP servers beyond the session.
pub(crate) struct McpServerSettings {
    workspace: PathBuf,
    writer: ConfigWriter,
    sign_ins: BTreeMap<String, SignInState>,
}

impl McpServerSettings {
    /// Creates the state for a workspace, by its folder.
    pub(crate) fn of_workspace(workspace: &Path) -> McpServerSettings {
        let (writer, sign_ins) = (ConfigWriter::default(), BTreeMap::new());
        McpServerSettings { workspace: workspace.to_owned(), writer, sign_ins }
    }

    /// Draws a row for each server, and the field that adds one.
    pub(crate) fn show(&mut self, lines: &mut SettingsRows<'_>, setup: &AgentSetup, wishes: &mut Vec<Command>) {
        if self.writer.receive() {
            wishes.push(Command::ReadSetup);
        }
        let servers = &setup.config.mcp.servers;
        for (name, server) in servers {
            self.server(lines, setup, (name.as_str(), server), wishes);
        }
        let about = match self.writer.trouble() {
            Some(why) => why.to_owned(),
            None => "A program with its arguments, or an address. Each call of its tools asks first.".to_owned(),
        };
        let mut typed = None;
        lines.show_matching_row("Add an MCP server", &about, |ui| {
            typed = text(ui, "Command or address of an MCP server", "", "npx … or https://…");
        });
        let Some(typed) = typed.filter(|typed| !typed.trim().is_empty()) else { return };
        match new_server(&typed, |name| servers.contains_key(name)) {
            Ok((name, value)) => {
                self.writer.set_trouble(None);
                let change = config_value(&["mcp", "servers", &name], value);
                self.writer.change(lines.ui.ctx(), &self.workspace, vec![change]);
            }
            Err(why) => self.writer.set_trouble(Some(sentence(&why.to_string()))),
        }
    }

    fn server(
        &mut self,
        lines: &mut SettingsRows<'_>,
        setup: &AgentSetup,
        (name, server): (&str, &McpServerConfig),
        wishes: &mut Vec<Command>,
    ) {
        let is_on = server.enabled.unwrap_or(true);
        let about = match self.sign_in_state(lines.ui.ctx(), name, wishes) {
            Some(said) => said,
            None if !is_on => "Off.".to_owned(),
            None => server_state(setup, name, server),
        };
        let (mut switched, mut wants_sign_in) = (false, false);
        lines.show_matching_row(&format!("MCP server {name}"), &about, |ui| {
            switched = toggle_switch(ui, &format!("Use {name}"), is_on);
            if is_on && server.url.is_some() {
                wants_sign_in = text_button(ui, &format!("Sign in to {name}"), false).clicked();
            }
        });
        if switched {
            let change = config_value(&["mcp", "servers", name, "enabled"], (!is_on).into());
            self.writer.change(lines.ui.ctx(), &self.workspace, vec![change]);
        }
        if wants_sign_in && !matches!(self.sign_ins.get(name), Some(SignInState::Waits(_))) {
            let steps = sign_in(lines.ui.ctx(), &self.workspace, name);
            self.sign_ins.insert(name.to_owned(), SignInState::Waits(steps));
        }
    }

    /// Follows a sign-in, and returns what to say about it.
    fn sign_in_state(&mut self, ctx: &egui::Context, name: &str, wishes: &mut Vec<Command>) -> Option<String> {
        let state = self.sign_ins.get_mut(name)?;
        if let SignInState::Waits(steps) = state {
            let ended = match steps.try_recv() {
                Ok(SignInStep::Page(address)) => {
                    ctx.open_url(egui::OpenUrl::new_tab(address));
                    None
                }
                Ok(SignInStep::Ended(result)) => Some(result),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => Some(Err(anyhow!("Signing in stopped. Try again."))),
            };
            if let Some(result) = ended {
                wishes.push(Command::ReadSetup);
                *state = SignInState::Ended(result);
            }
        }
        match state {
            SignInState::Waits(_) => Some("Sign in in your browser, then come back here.".to_owned()),
            SignInState::Ended(Ok(())) => {
                self.sign_ins.remove(name);
                None
            }
            SignInState::Ended(Err(why)) => Some(sentence(&why.to_string())),
        }
    }
}

/// Describes what a server that's switched on offers, or why it offers nothing.
fn server_state(setup: &AgentSetup, name: &str, server: &McpServerConfig) -> String {
    let tools = setup.servers.iter().filter(|(of, ..)| of == name).count();
    let place = server.url.as_deref().or(server.command.as_deref()).unwrap_or_default();
    match setup.problems.iter().find(|problem| is_about_server(problem, name)) {
        Some(problem) if tools == 0 => format!("{}.", sentence(problem).trim_end_matches('.')),
        _ if tools == 0 => format!("Offers no tools. {place}"),
        _ => format!("{}. {place}", counted(tools, "tool")),
    }
}

/// Returns whether a problem of the setup names this server.
fn is_about_server(problem: &str, name: &str) -> bool {
    problem.split_once("MCP server ").is_some_and(|(_, rest)| {
        rest.strip_prefix(name).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || "-_".contains(c)))
    })
}

/// Returns name and configuration of a server from its command or address. `is_taken`: whether another one has a name.
fn new_server(typed: &str, is_taken: impl Fn(&str) -> bool) -> anyhow::Result<(String, Value)> {
    let typed = typed.trim();
    let (source, value) = if typed.starts_with("http://") || typed.starts_with("https://") {
        let address = WebAddress::read(typed)?;
        let host = address.site.host.trim_start_matches("www.").trim_start_matches("mcp.").to_owned();
        // An IP address makes no name.
        let label = host.split('.').next().unwrap_or_default().to_owned();
        (if address.ip.is_some() { String::new() } else { label }, json!({"url": typed}))
    } else {
        let words = split_command(typed)?;
        let (command, args) = words.split_first().context("type a command or an address")?;
        let is_name = |word: &&String| !word.starts_with('-') && !LAUNCHERS.contains(&file_name(word));
        let source = words.iter().find(is_name).map_or(command.as_str(), String::as_str);
        (file_name(source).to_owned(), json!({"command": command, "args": args}))
    };
    let plain = source.trim_start_matches("mcp-server-").trim_start_matches("server-").trim_start_matches("mcp-");
    let stem = plain.rsplit_once('.').map_or(plain, |(stem, _)| stem);
    let letters = stem.chars().filter(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'));
    let name: String = letters.take(MAX_SERVER_NAME_CHARS).collect();
    let name = if name.is_empty() { "server".to_owned() } else { name };
    let numbered = (1_u32..).map(|number| if number == 1 { name.clone() } else { format!("{name}-{number}") });
    let free = numbered.into_iter().find(|name| !is_taken(name)).context("there are too many servers")?;
    Ok((free, value))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Splits a command line into words; quotes keep spaces.
fn split_command(typed: &str) -> anyhow::Result<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in typed.chars() {
        match quote {
            Some(open) if letter == open => quote = None,
            None if matches!(letter, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            None if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    match quote {
        Some(open) => Err(anyhow!("A quotation mark ({open}) isn't closed.")),
        None => Ok(words),
    }
}

/// Signs in to a server on a thread of its own.
fn sign_in(ctx: &egui::Context, workspace: &Path, name: &str) -> Receiver<SignInStep> {
    let (tell, steps) = channel();
    let (wake, workspace, name) = (ctx.clone(), workspace.to_owned(), name.to_owned());
    std::thread::spawn(move || {
        let result = sign_in_now(&workspace, &name, &tell, &wake);
        let _ = tell.send(SignInStep::Ended(result)); // the settings may be closed
        wake.request_repaint();
    });
    steps
}

fn sign_in_now(workspace: &Path, name: &str, tell: &Sender<SignInStep>, wake: &egui::Context) -> anyhow::Result<()> {
    let folder = configuration::user_config_folder().context("There's no home folder to keep the sign-in in.")?;
    let secrets = Arc::new(UserSecrets::new(&folder));
    let server = find_mcp_server(workspace, name, &secrets)?;
    let show_page = |address: &str| {
        let _ = tell.send(SignInStep::Page(address.to_owned())); // the settings may be closed
        wake.request_repaint();
    };
    Ok(host::mcp::sign_in(&server, Arc::new(SecretTokens::new(secrets)), show_page)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(typed: &str) -> (String, Value) {
        new_server(typed, |name| name == "git").expect("a server")
    }

    #[test]
    fn a_server_is_named_after_its_command_or_address() {
        let filesystem = "npx -y @modelcontextprotocol/server-filesystem '/home/me/My notes'";
        let args = ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/My notes"];
        assert_eq!(named(filesystem), ("filesystem".to_owned(), json!({"command": "npx", "args": args})));
        assert_eq!(named("/opt/tools/run.py").0, "run");
        assert_eq!(named("uvx mcp-server-git").0, "git-2");
        let (name, value) = named("https://mcp.example.org/mcp");
        assert_eq!((name.as_str(), value), ("example", json!({"url": "https://mcp.example.org/mcp"})));
        assert_eq!(named("http://127.0.0.1:8000/mcp").0, "server");
        assert!(new_server("npx 'open", |_| false).is_err());
    }

    #[test]
    fn a_problem_belongs_to_the_server_that_it_names() {
        let problem = "the MCP server git could not be started (no such file)";
        assert!(is_about_server(problem, "git"));
        assert!(!is_about_server(problem, "gi") && !is_about_server("the MCP server git-2 refused", "git"));
    }
}
