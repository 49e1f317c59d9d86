//! The page of spending: what is left of each budget, and the spending by task, session, project or month. Also the
//! warning when little is left.

use super::MemoryAction;
use super::widgets;
use crate::agent::connection::is_configured;
use crate::agent::model_picker::current_endpoint;
use crate::config_writer::{ConfigWriter, config_value};
use crate::panel_action::PanelAction;
use agent::dollar_amount::parse_dollar_amount;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Rect, Sense, Stroke, Ui, pos2, vec2};
use engine::commands::CommandId;
use engine::{BudgetScope, BudgetStatus, Command, ScopeSpending, Session, UnixMillis};
use serde_json::Value;
use std::path::PathBuf;
use store::DocId;
use text::task::CalendarDay;
use ui::empty_state;
use ui::icons;
use ui::setting_rows;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{paint_clipped_text, paint_focus_ring, set_accessible_name, text_button};

/// Height of a spending row.
const SPENDING_ROW_HEIGHT: f32 = 48.0;
/// Height of a budget's balance.
const BALANCE_ROW_HEIGHT: f32 = 56.0;

const SPENDING_GROUPS: [&str; 4] = ["Task", "Session", "Project", "Month"];
const GROUP_PURSES: [BudgetScope; 4] =
    [BudgetScope::Task, BudgetScope::Session, BudgetScope::Project, BudgetScope::Month];

/// The page that shows spending on models, and what is left.
#[derive(Default)]
pub struct BudgetPage {
    group: usize,
    /// What the rows were built for.
    made: Option<(u64, usize, CalendarDay)>,
    rows: Vec<ScopeSpending>,
    balances: Vec<BudgetStatus>,
    /// The workspace's folder, whose configuration holds the limits.
    workspace: PathBuf,
    writer: ConfigWriter,
}

/// Returns the current time of the system clock.
fn now() -> UnixMillis {
    UnixMillis(jiff::Timestamp::now().as_millisecond())
}

fn day(at: i64) -> CalendarDay {
    CalendarDay(at.div_euclid(86_400_000))
}

/// Low-budget warning, shown where the user asks an agent.
#[derive(Default)]
pub struct LowBudgetWarning {
    /// What the rows were computed for.
    made: Option<(u64, Option<DocId>, CalendarDay)>,
    words: Option<String>,
}

impl LowBudgetWarning {
    /// Updates the warning. Returns it if the budget is low.
    pub(crate) fn refresh_warning(&mut self, session: &Session, volume: Option<DocId>) -> Option<&str> {
        let now = now();
        let key = (session.agents().revision(), volume, day(now.0));
        if self.made != Some(key) {
            self.made = Some(key);
            self.words = session.low_budget_warning(now, volume);
        }
        self.words.as_deref()
    }
}

/// The agent's model and this month's cost, for the status bar.
#[derive(Default)]
pub struct ModelCostStatus {
    /// What the text was made from.
    made: Option<(u64, bool, CalendarDay)>,
    text: String,
    name: String,
}

impl ModelCostStatus {
    /// Returns the text and its accessible name. Both are empty if no model is connected and nothing was spent.
    pub fn refresh(&mut self, session: &Session) -> (&str, &str) {
        let (now, agents) = (now(), session.agents());
        let key = (agents.revision(), agents.setup().is_some(), day(now.0));
        if self.made != Some(key) {
            self.made = Some(key);
            let spent = session.budget_statuses(now).first().map_or(0.0, |month| month.spent);
            let setup = agents.setup().filter(|setup| setup.trouble.is_none() && is_configured(&setup.config));
            let model = setup.and_then(|setup| current_endpoint(&setup.config, Some(setup))).map(|known| known.model);
            let cost = money(spent);
            (self.text, self.name) = match model {
                Some(model) => (format!("{model} · {cost}"), format!("Model: {model}, {cost} spent this month")),
                None if spent > 0.0 => (cost.clone(), format!("{cost} spent this month")),
                None => (String::new(), String::new()),
            };
        }
        (&self.text, &self.name)
    }
}

impl BudgetPage {
    /// Creates the page of a workspace, by its folder.
    pub fn of_workspace(workspace: PathBuf) -> BudgetPage {
        BudgetPage { workspace, ..BudgetPage::default() }
    }

    /// Draws the monthly limits, which can be changed.
    fn show_limits(&mut self, ui: &mut Ui, session: &Session, actions: &mut Vec<PanelAction>) {
        if self.writer.receive() {
            actions.push(PanelAction::Do(Command::ReadSetup));
        }
        let Some(setup) = session.agents().setup() else { return };
        let budget = &setup.config.budget;
        let limits = [
            ("month", "Monthly limit", "For all runs, in US dollars. Leave empty for no limit.", budget.month),
            ("project", "Monthly limit of a project", "For the runs in one folder, in US dollars.", budget.project),
        ];
        for (key, name, about, limit) in limits {
            let shown = limit.map(|limit| limit.to_string()).unwrap_or_default();
            let mut typed = None;
            setting_rows::show_row(ui, name, about, |ui| typed = setting_rows::text(ui, name, &shown, "no limit"));
            let Some(typed) = typed else { continue };
            let names = ["budget", key];
            match parse_limit(&typed) {
                Some(limit) => {
                    self.writer.set_trouble(None);
                    self.writer.change(ui.ctx(), &self.workspace, vec![config_value(&names, limit)]);
                }
                None => {
                    let why = format!("“{}” isn't an amount. Type US dollars, such as 5 or 2.50.", typed.trim());
                    self.writer.set_trouble(Some(why));
                }
            }
        }
        if let Some(why) = self.writer.trouble() {
            let response = ui.label(egui::RichText::new(why).font(theme::small().font).color(ThemeColors::of(ui).bad));
            set_accessible_name(&response, Role::Label, why);
        }
    }

    fn refresh(&mut self, session: &Session) {
        let now = now();
        let key = (session.agents().revision(), self.group, day(now.0));
        if self.made == Some(key) {
            return;
        }
        self.made = Some(key);
        self.balances = session.budget_statuses(now);
        let by = GROUP_PURSES.get(self.group).copied().unwrap_or(BudgetScope::Task);
        self.rows = session.spending_by_scope(by);
    }

    /// Draws the page.
    pub fn show(&mut self, ui: &mut Ui, session: &Session, actions: &mut Vec<PanelAction>) {
        if session.agents().setup().is_none() {
            empty_state::show_message(ui, "Reading what was spent…", None, "");
            return;
        }
        self.refresh(session);
        ui.add_space(space::XL);
        ui.spacing_mut().item_spacing.y = 0.0;
        let (margin, width) = widgets::page_column(ui);
        let colours = ThemeColors::of(ui);
        egui::ScrollArea::vertical().id_salt("budget").auto_shrink(false).show_viewport(ui, |ui, viewport| {
            let page = ui.max_rect();
            let left = page.left() + margin;
            for balance in &self.balances {
                let (line, _) = ui.allocate_exact_size(vec2(ui.available_width(), BALANCE_ROW_HEIGHT), Sense::hover());
                draw_balance(ui, Rect::from_min_size(pos2(left, line.top()), vec2(width, BALANCE_ROW_HEIGHT)), balance);
            }
            let column = Rect::from_min_size(pos2(left, ui.cursor().top()), vec2(width, f32::INFINITY));
            let mut child = ui.new_child(egui::UiBuilder::new().max_rect(column).id_salt("limits"));
            self.show_limits(&mut child, session, actions);
            let used = child.min_rect().height();
            ui.allocate_exact_size(vec2(ui.available_width(), used), Sense::hover());
            ui.add_space(space::L);
            widgets::row(ui, |ui| {
                self.group = widgets::filter_chips(ui, "Spent by", &SPENDING_GROUPS, self.group).unwrap_or(self.group);
            });
            ui.add_space(space::S);
            if self.rows.is_empty() {
                widgets::row(ui, |ui| said(ui, "No spending yet. It's listed here after an agent has answered."));
                let is_ready = session.agents().setup().is_some_and(|setup| is_configured(&setup.config));
                let (button, command) = match is_ready {
                    true => ("Ask the agent", CommandId::AgentNew),
                    false => ("Connect a model", CommandId::AgentConnect),
                };
                if widgets::row(ui, |ui| text_button(ui, button, false).clicked()) {
                    actions.push(PanelAction::Run(command));
                }
                return;
            }
            let top = ui.cursor().top();
            ui.allocate_space(vec2(ui.available_width(), self.rows.len() as f32 * SPENDING_ROW_HEIGHT + space::XL));
            for (place, row) in self.rows.iter().enumerate() {
                let y = top + place as f32 * SPENDING_ROW_HEIGHT;
                if y + SPENDING_ROW_HEIGHT < page.top() + viewport.top() || y > page.top() + viewport.bottom() {
                    continue;
                }
                let rect = Rect::from_min_size(pos2(left, y), vec2(width, SPENDING_ROW_HEIGHT));
                if draw_row(ui, rect, place, row, colours)
                    && let Some(doc) = row.doc
                {
                    actions.push(PanelAction::Memory(Box::new(MemoryAction::ShowRun(doc, String::new()))));
                }
            }
        });
    }
}

/// Returns the value of a limit as it was typed; null for no limit, and `None` if it isn't an amount.
fn parse_limit(typed: &str) -> Option<Value> {
    if typed.trim().trim_start_matches('$').is_empty() {
        return Some(Value::Null);
    }
    let dollars = parse_dollar_amount(typed)?;
    // A whole amount is written without a fraction.
    Some(dollars.to_string().parse::<u64>().map_or_else(|_| Value::from(dollars), Value::from))
}

/// Draws a line of muted text.
fn said(ui: &mut Ui, text: &str) {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 24.0), Sense::hover());
    paint_clipped_text(
        ui,
        rect.left_top() + vec2(0.0, 2.0),
        rect.width(),
        text,
        &theme::small(),
        ThemeColors::of(ui).muted,
    );
    set_accessible_name(&response, Role::Label, text);
}

fn money(usd: f64) -> String {
    if usd == 0.0 || usd >= 0.995 { format!("${usd:.2}") } else { format!("${usd:.4}") }
}

fn count(tokens: u64) -> String {
    ui::text::format_thousands(usize::try_from(tokens).unwrap_or(usize::MAX))
}

fn draw_balance(ui: &mut Ui, rect: Rect, balance: &BudgetStatus) {
    let colours = ThemeColors::of(ui);
    let left = match (balance.limit, balance.remaining()) {
        (Some(limit), Some(left)) => format!("{} of {} left", money(left), money(limit)),
        _ => "no limit".to_owned(),
    };
    let mut about = vec![format!("{} spent", money(balance.spent)), format!("{} tokens", count(balance.tokens))];
    about.extend((balance.unknown > 0).then(|| format!("{} of unknown price", balance.unknown)));
    let about = about.join("  ·  ");
    let low = balance.low_warning();
    let (icon, colour) = match (&low, balance.remaining()) {
        (Some(_), Some(left)) if left <= 0.0 => (Some(icons::WARNING), colours.bad),
        (Some(_), _) => (Some(icons::WARNING), colours.warn),
        (None, _) => (None, colours.accent),
    };
    let bold = theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 13.0), line: 20.0 };
    let mut at = rect.left();
    if let Some(icon) = icon {
        let place = pos2(at + 8.0, rect.top() + 18.0);
        ui.painter().text(place, Align2::CENTER_CENTER, icon, theme::icon_font(size::ICON_SIZE), colour);
        at += 24.0;
    }
    let room = rect.width() - 200.0;
    paint_clipped_text(ui, pos2(at, rect.top() + 8.0), room, &ui::text::sentence(&balance.of), &bold, colours.ink);
    let style = theme::TypeStyle { font: theme::tabular_font(12.0), line: 16.0 };
    paint_clipped_text(ui, pos2(at, rect.top() + 28.0), room, &about, &style, colours.muted);
    let ink = if low.is_some() { colour } else { colours.ink };
    let place = pos2(rect.right(), rect.top() + 18.0);
    ui.painter().text(place, Align2::RIGHT_CENTER, &left, theme::tabular_font(13.0), ink);
    if let Some(limit) = balance.limit.filter(|limit| *limit > 0.0) {
        let bar = Rect::from_min_size(pos2(rect.right() - 160.0, rect.top() + 34.0), vec2(160.0, 3.0));
        widgets::paint_bar(ui, bar, balance.spent / limit, colour);
    }
    ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, colours.line));
    let response = ui.interact(rect, ui.scope_id().with(("balance", &balance.of)), Sense::hover());
    set_accessible_name(&response, Role::Label, &format!("{}: {left}, {about}", balance.of));
}

/// Draws a spending row. Returns whether it was chosen.
fn draw_row(ui: &Ui, rect: Rect, place: usize, row: &ScopeSpending, colours: &ThemeColors) -> bool {
    // Runs and sessions can be opened.
    let leads = row.doc.is_some() && !row.project.is_empty();
    let sense = if leads { Sense::click() } else { Sense::hover() };
    let response = ui.interact(rect, ui.scope_id().with(("spend", place)), sense);
    if response.hovered() && leads {
        ui.painter().rect_filled(rect.expand2(vec2(space::S, 0.0)), CONTROL_CORNER, colours.hover_color(colours.paper));
    }
    ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, colours.line));
    let spent = if row.unknown > 0 && row.spent == 0.0 { "cost unknown".to_owned() } else { money(row.spent) };
    let cost = match row.limit {
        Some(limit) => format!("{spent} of {}", money(limit)),
        None => spent,
    };
    let tokens = format!("{} tokens", count(row.tokens));
    let right = rect.right();
    let top = pos2(right, rect.top() + 16.0);
    let ink = if row.limit.is_some_and(|limit| row.spent >= limit) { colours.bad } else { colours.ink };
    ui.painter().text(top, Align2::RIGHT_CENTER, &cost, theme::tabular_font(13.0), ink);
    let below = pos2(right, rect.top() + 34.0);
    ui.painter().text(below, Align2::RIGHT_CENTER, &tokens, theme::tabular_font(12.0), colours.muted);
    let moment = host::clock::format_moment(row.at);
    let mut about = vec![row.project.as_str(), moment.get(..10).unwrap_or_default()];
    about.retain(|part| !part.is_empty());
    let about = about.join("  ·  ");
    let room = rect.width() - 180.0;
    paint_clipped_text(ui, pos2(rect.left(), rect.top() + 6.0), room, &row.title, &theme::small(), colours.ink);
    paint_clipped_text(ui, pos2(rect.left(), rect.top() + 26.0), room, &about, &theme::caption(), colours.muted);
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    let role = if leads { Role::Link } else { Role::Label };
    set_accessible_name(&response, role, &format!("Spent: {}, {cost}, {tokens}", row.title));
    response.clicked()
}
