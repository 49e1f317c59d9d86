//! The page of the user's own tools: pending versions with their code and permissions; approve, disable, remove; import
//! from a file and export to one.

use super::approvals::risk_text;
use super::markdown_view;
use crate::panel_action::PanelAction;
use agent::tool_file;
use agent::tool_job::ToolPackages;
use agent::tool_spec::{ToolRisk, ToolSpec};
use anyhow::{Context, anyhow};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Sense, Ui, vec2};
use engine::commands::CommandId;
use engine::{Command, Session};
use host::note_packages::describe_packages;
use host::python_setup::follow_setup;
use host::tools::tool_environment::tool_setup;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use store::{RegisteredTool, ToolGrants, UserTool};
use text::untrusted_text;
use ui::empty_state;
use ui::theme::{self, CARD_CORNER, ThemeColors, space};
use ui::widgets::{set_accessible_name, text_button};

/// Maximum size of a tool file in bytes.
const MAX_TOOLS_FILE_BYTES: u64 = 16 << 20;
/// Maximum number of listed versions of a tool, beside the newest.
const MAX_LISTED_VERSIONS: usize = 8;
/// Maximum height of a tool's code without scrolling.
const MAX_TOOL_CODE_HEIGHT: f32 = 320.0;

/// Result of importing a file.
enum ToolFileResult {
    Read(anyhow::Result<Vec<UserTool>>),
    Written(anyhow::Result<PathBuf>),
    Installed(anyhow::Result<String>),
}

/// A tool: its name, its risk, and whether it asks.
type ListedTool = (String, ToolRisk, bool);

/// The page that lists the user's own tools.
pub struct ToolsPage {
    /// The workspace's folder, which keeps the lock files of tools' packages.
    workspace: PathBuf,
    asked: bool,
    file: String,
    waits: Option<Receiver<ToolFileResult>>,
    said: Option<anyhow::Result<String>>,
    /// The version that's compared with the newest one: the tool's name and the number.
    compared: Option<(String, u64)>,
    /// Name of the tool whose removal needs another click.
    removing: Option<String>,
    /// All tools that agents may use, each with its risk and whether it asks, and the state of agents that they were
    /// listed for.
    listed: Option<(u64, Vec<ListedTool>)>,
}

impl ToolsPage {
    /// Returns the page for the workspace in this folder.
    pub fn new(workspace: PathBuf) -> ToolsPage {
        ToolsPage {
            workspace,
            asked: false,
            file: String::new(),
            waits: None,
            said: None,
            compared: None,
            removing: None,
            listed: None,
        }
    }

    /// Draws the page, and requests the tools the first time.
    pub fn show(&mut self, ui: &mut Ui, session: &Session, actions: &mut Vec<PanelAction>) {
        if !std::mem::replace(&mut self.asked, true) {
            actions.push(PanelAction::Do(Command::ReadSetup));
            let home = std::env::home_dir().unwrap_or_default();
            self.file = home.join("tools.json").display().to_string();
        }
        self.receive(actions);
        let Some(tools) = session.user_tools() else {
            empty_state::show_message(ui, "Reading the tools…", None, "");
            return;
        };
        let width = theme::size::NOTE_COLUMN_WIDTH.min(ui.available_width() - 2.0 * space::XL);
        let margin = ((ui.available_width() - width) / 2.0).max(space::L);
        egui::ScrollArea::vertical().id_salt("tools").auto_shrink(false).show(ui, |ui| {
            #[allow(clippy::cast_possible_truncation, reason = "points of a window")]
            let around = egui::Margin { left: margin as i8, right: 0, top: 16, bottom: 24 };
            egui::Frame::NONE.inner_margin(around).show(ui, |ui| {
                ui.set_width(width);
                ui.spacing_mut().item_spacing = vec2(space::S, space::S);
                self.files(ui, tools);
                if text_button(ui, "Find tools in packages", false).clicked() {
                    actions.push(PanelAction::Run(CommandId::ViewPackages));
                }
                if tools.is_empty() {
                    let none = "No tools of your own yet. Import a tool file, or let an agent propose one.";
                    words(ui, none, &theme::small(), ThemeColors::of(ui).muted, Role::Label);
                }
                // Tools with a pending version come first.
                let mut wanted = None;
                for waits in [true, false] {
                    for tool in tools.iter().filter(|tool| tool.has_pending_version() == waits) {
                        card(ui, tool, (&mut self.compared, &mut self.removing), actions);
                        let clicked = packages(ui, tool);
                        wanted = wanted.or(clicked);
                    }
                }
                if let Some(needed) = wanted.filter(|_| self.waits.is_none()) {
                    let volumes = session.volumes().filter_map(|volume| volume.root.clone()).collect();
                    let (workspace, name) = (self.workspace.clone(), needed.tool.clone());
                    self.begin(ui, move || ToolFileResult::Installed(install(&workspace, needed, volumes)));
                    self.said = Some(Ok(format!("Installing the packages of {name}…")));
                }
                self.list_all(ui, session);
            });
        });
    }

    /// Lists all tools that agents may use, with their risk.
    fn list_all(&mut self, ui: &mut Ui, session: &Session) {
        let state = session.agents().revision();
        if self.listed.as_ref().is_none_or(|(listed_for, _)| *listed_for != state) {
            let one = |tool: ToolSpec| (tool.title(), tool.risk, session.tool_requires_approval(&tool));
            self.listed = Some((state, session.agent_tools().into_iter().map(one).collect()));
        }
        let strong = theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 15.0), line: 24.0 };
        ui.add_space(space::S);
        words(ui, "All tools", &strong, ThemeColors::of(ui).ink, Role::Heading);
        for (title, risk, asks) in self.listed.iter().flat_map(|(_, tools)| tools) {
            let (label, colour) = risk_text(ui, *risk);
            let asks = if *asks { ". Asks first." } else { "." };
            words(ui, &format!("{title}. {label}{asks}"), &theme::caption(), colour, Role::Label);
        }
    }

    fn files(&mut self, ui: &mut Ui, tools: &[RegisteredTool]) {
        let colours = ThemeColors::of(ui);
        ui.horizontal_wrapped(|ui| {
            let field = egui::TextEdit::singleline(&mut self.file)
                .id_salt("file of tools")
                .font(theme::small().font)
                .margin(egui::Margin::symmetric(8, 6))
                .desired_width(320.0);
            ui.add(field).accessible_name("File of tools");
            let path = PathBuf::from(self.file.trim());
            let free = self.waits.is_none() && !self.file.trim().is_empty();
            if text_button(ui, "Import", false).clicked() && free {
                let path = path.clone();
                self.begin(ui, move || ToolFileResult::Read(read(&path)));
            }
            if text_button(ui, "Export", false).clicked() && free {
                let newest = tools.iter().filter_map(RegisteredTool::newest_version);
                let all: Vec<serde_json::Value> = newest.map(tool_file::tool_to_json).collect();
                self.begin(ui, move || {
                    let json = serde_json::to_vec_pretty(&all).unwrap_or_default();
                    ToolFileResult::Written(host::fs::copy::write_new(&path, &json).map(|()| path))
                });
            }
        });
        match &self.said {
            Some(Ok(said)) => words(ui, said, &theme::caption(), colours.ok, Role::Status),
            Some(Err(why)) => words(ui, &why.to_string(), &theme::caption(), colours.bad, Role::Status),
            None => {}
        }
    }

    /// Reads or writes a file on a separate thread.
    fn begin(&mut self, ui: &Ui, work: impl FnOnce() -> ToolFileResult + Send + 'static) {
        let (tell, told) = channel();
        let wake = ui.ctx().clone();
        std::thread::spawn(move || {
            let _ = tell.send(work()); // the page may be closed
            wake.request_repaint();
        });
        (self.waits, self.said) = (Some(told), None);
    }

    fn receive(&mut self, actions: &mut Vec<PanelAction>) {
        let Some(waits) = &self.waits else { return };
        let done = match waits.try_recv() {
            Ok(done) => done,
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => ToolFileResult::Read(Err(anyhow!("Can't read the file."))),
        };
        self.waits = None;
        self.said = Some(match done {
            ToolFileResult::Read(Ok(tools)) => {
                let said = match tools.len() {
                    1 => "1 tool imported. Approve it to use it.".to_owned(),
                    many => format!("{many} tools imported. Approve them to use them."),
                };
                let propose = |tool| PanelAction::Do(Command::ProposeTool { tool: Box::new(tool) });
                actions.extend(tools.into_iter().map(propose));
                Ok(said)
            }
            ToolFileResult::Written(Ok(path)) => Ok(format!("Saved as {}", path.display())),
            ToolFileResult::Installed(Ok(said)) => Ok(said),
            ToolFileResult::Read(Err(why))
            | ToolFileResult::Written(Err(why))
            | ToolFileResult::Installed(Err(why)) => Err(anyhow!(ui::text::sentence(&why.to_string()))),
        });
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<UserTool>> {
    let bytes = host::fs::copy::read(path, MAX_TOOLS_FILE_BYTES).context("the file cannot be read, or is too large")?;
    let text = String::from_utf8(bytes).context("the file isn't UTF-8 text")?;
    tool_file::parse_tool_file(&text).map_err(|error| anyhow!("it isn't a tool file: {error}"))
}

/// Installs a tool's packages. Returns what is installed.
fn install(workspace: &Path, needed: ToolPackages, volumes: Vec<PathBuf>) -> anyhow::Result<String> {
    let name = needed.tool.clone();
    let setup = tool_setup(workspace, needed, volumes)?;
    follow_setup(&setup.start(|| ()), |_| Ok(())).map_err(|error| anyhow!("{error}"))?;
    Ok(format!("The packages of {name} are installed."))
}

/// Draws the packages of the version that agents use. Returns them if the user wants them installed.
fn packages(ui: &mut Ui, tool: &RegisteredTool) -> Option<ToolPackages> {
    let needed = ToolPackages::of(tool.usable_version()?).ok()??;
    let list = describe_packages(&needed.packages);
    let said = format!("{} needs packages: {list}. Installing them uses the network.", needed.tool);
    words(ui, &said, &theme::caption(), ThemeColors::of(ui).muted, Role::Label);
    text_button(ui, &format!("Install packages of {}", needed.tool), false).clicked().then_some(needed)
}

/// Draws a tool's card: its name, permissions, code, versions, and actions.
fn card(
    ui: &mut Ui,
    tool: &RegisteredTool,
    (compared, removing): (&mut Option<(String, u64)>, &mut Option<String>),
    actions: &mut Vec<PanelAction>,
) {
    let Some(newest) = tool.newest_version() else { return };
    let colours = ThemeColors::of(ui);
    let frame = egui::Frame::NONE
        .stroke(egui::Stroke::new(1.0, if tool.has_pending_version() { colours.warn } else { colours.line }))
        .corner_radius(CARD_CORNER)
        .inner_margin(egui::Margin::same(12));
    let shown = frame.show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing = vec2(space::XS, space::XS);
        let state = match (tool.has_pending_version(), tool.approved) {
            (true, Some(version)) => format!("waiting for approval; agents still use version {version}"),
            (true, None) => "waiting for approval".to_owned(),
            (false, Some(version)) if version != newest.version => format!("not in use; agents use version {version}"),
            (false, _) => "approved".to_owned(),
        };
        let strong = theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 15.0), line: 24.0 };
        let title = format!("{} version {}: {state}", newest.name, newest.version);
        words(ui, &title, &strong, colours.ink, Role::Heading);
        words(ui, &newest.description, &theme::small(), colours.ink, Role::Label);
        let network = if newest.network { "It may use the network." } else { "It has no network." };
        let author = if newest.author.is_empty() { "an unknown author" } else { newest.author.as_str() };
        let ToolGrants { fs, ui: shows, process } = newest.grants;
        let files = if fs { "sees the project" } else { "doesn't see the project's files" };
        let runs = if process { " It may run shell commands." } else { "" };
        let hidden = if shows { "" } else { " It shows no pictures." };
        let may = format!("{network} It runs in the sandbox and {files}.{runs}{hidden} Written by {author}.");
        words(ui, &may, &theme::caption(), colours.muted, Role::Label);
        // The user approves exactly the code that is shown.
        show_code(ui, ("code", &newest.name), &newest.code);
        show_versions(ui, tool, newest, compared, actions);
        let is_removing = removing.as_deref() == Some(newest.name.as_str());
        if is_removing {
            let warning = "This deletes the tool's code and all its versions. There's no undo; an export keeps it.";
            words(ui, warning, &theme::caption(), colours.warn, Role::Label);
        }
        ui.horizontal_wrapped(|ui| {
            let name = newest.name.clone();
            let approve = |version| Command::ApproveTool { name: name.clone(), version };
            if tool.has_pending_version() && text_button(ui, &format!("Approve {name}"), true).clicked() {
                actions.push(PanelAction::Do(approve(Some(newest.version))));
            }
            if tool.approved.is_some() && text_button(ui, &format!("Switch off {name}"), false).clicked() {
                actions.push(PanelAction::Do(approve(None)));
            }
            let refuses = tool.has_pending_version() && tool.approved.is_none();
            let word = if refuses { format!("Refuse {name}") } else { format!("Remove {name}") };
            if !is_removing {
                if text_button(ui, &word, false).clicked() {
                    *removing = Some(name.clone());
                }
                return;
            }
            if text_button(ui, &format!("{word} permanently"), true).clicked() {
                actions.push(PanelAction::Do(Command::RemoveTool { name: name.clone() }));
                *removing = None;
            }
            if text_button(ui, &format!("Keep {name}"), false).clicked() {
                *removing = None;
            }
        });
    });
    set_accessible_name(&shown.response, Role::Group, &format!("Tool: {}", newest.name));
}

/// Draws code in full, in an area that scrolls.
fn show_code(ui: &mut Ui, id: (&str, &str), code: &str) {
    let code = untrusted_text::escape_block(code);
    let width = ui.available_width();
    let height = markdown_view::height_in_full(ui, width, &code) + 2.0 * space::XS;
    let area = ui.available_rect_before_wrap();
    let ground = egui::Rect::from_min_size(area.min, vec2(width, height.min(MAX_TOOL_CODE_HEIGHT)));
    ui.painter().rect_filled(ground, theme::CONTROL_CORNER, ThemeColors::of(ui).sunken);
    egui::ScrollArea::vertical().id_salt(id).max_height(MAX_TOOL_CODE_HEIGHT).show(ui, |ui| {
        let (rect, response) = ui.allocate_exact_size(vec2(width, height), Sense::hover());
        markdown_view::paint_mono_in_full(ui, rect.min + vec2(0.0, space::XS), width, &code);
        set_accessible_name(&response, Role::Label, &code);
    });
}

/// Draws the other versions of a tool. A version can be used once it was compared with the newest one.
fn show_versions(
    ui: &mut Ui,
    tool: &RegisteredTool,
    newest: &UserTool,
    compared: &mut Option<(String, u64)>,
    actions: &mut Vec<PanelAction>,
) {
    let colours = ThemeColors::of(ui);
    let name = &newest.name;
    let others: Vec<&UserTool> =
        tool.versions.iter().rev().filter(|one| one.version != newest.version).take(MAX_LISTED_VERSIONS).collect();
    for one in &others {
        let (made, state) = (tool_file::format_iso_time(one.created), tool_file::version_state(tool, one));
        let text = format!("{name} version {}: {state}, made {made}", one.version);
        words(ui, &text, &theme::caption(), colours.muted, Role::Label);
    }
    let shown = compared.as_ref().filter(|(tool, _)| tool == name).map(|(_, version)| *version);
    if let Some(one) = others.iter().find(|one| Some(one.version) == shown) {
        let same = || format!("Version {} and version {} are the same.", one.version, newest.version);
        show_code(ui, ("comparison", name), &tool_file::version_diff(one, newest).unwrap_or_else(same));
    }
    ui.horizontal_wrapped(|ui| {
        let use_version =
            |version| PanelAction::Do(Command::ApproveTool { name: name.clone(), version: Some(version) });
        for one in &others {
            let version = one.version;
            if Some(version) != shown {
                if text_button(ui, &format!("Compare {name} version {version}"), false).clicked() {
                    *compared = Some((name.clone(), version));
                }
                continue;
            }
            let is_used = tool.approved == Some(version);
            if !is_used && text_button(ui, &format!("Use {name} version {version}"), false).clicked() {
                actions.push(use_version(version));
            }
            if text_button(ui, "Hide the comparison", false).clicked() {
                *compared = None;
            }
        }
        if let Some(before) = tool_file::version_before(tool)
            && text_button(ui, &format!("Roll {name} back to version {before}"), false).clicked()
        {
            actions.push(use_version(before));
        }
    });
}

/// Draws wrapped text.
fn words(ui: &mut Ui, text: &str, style: &theme::TypeStyle, colour: egui::Color32, role: Role) {
    let text = &untrusted_text::escape_block(text);
    let mut job = egui::text::LayoutJob::default();
    job.wrap.max_width = ui.available_width();
    job.append(text, 0.0, ui::widgets::format(style.font.clone(), style.line, colour));
    let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), galley.size().y), Sense::hover());
    ui.painter().galley(rect.min, galley, colour);
    set_accessible_name(&response, role, text);
}
