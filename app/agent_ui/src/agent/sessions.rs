//! The list of sessions to choose from: newest first, searchable by title.

use eframe::egui;
use egui::accesskit::Role;
use egui::{Sense, Ui, vec2};
use engine::RunsState;
use store::DocId;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, space};
use ui::widgets::{paint_clipped_text, paint_focus_ring};

const SESSION_ROW_HEIGHT: f32 = 48.0;

/// The list as it was last built.
#[derive(Default)]
pub(super) struct SessionList {
    pub(super) open: bool,
    query: String,
    made: Option<(u64, String)>,
    lines: Vec<(DocId, String, String)>,
}

impl SessionList {
    fn refresh(&mut self, agents: &RunsState) {
        let key = (agents.revision(), self.query.trim().to_lowercase());
        if self.made.as_ref() == Some(&key) {
            return;
        }
        let fits = |title: &str| title.to_lowercase().contains(&key.1);
        let mut all: Vec<_> = agents.sessions().filter(|(_, line)| !line.closed && fits(&line.title)).collect();
        all.sort_by_key(|(_, line)| std::cmp::Reverse(line.updated));
        let about = |line: &engine::SessionSummary| {
            let branches = if line.branches > 1 { format!("  ·  {} branches", line.branches) } else { String::new() };
            let when = ui::time::when(line.updated / 1_000);
            format!("{when}  ·  {} messages{branches}", line.messages)
        };
        self.lines = all.into_iter().map(|(id, line)| (id, line.title.clone(), about(line))).collect();
        self.made = Some(key);
    }

    /// Draws the list. Returns the chosen session.
    pub(super) fn show(&mut self, ui: &mut Ui, agents: &RunsState, current: Option<DocId>) -> Option<DocId> {
        let colours = ThemeColors::of(ui);
        let mut chosen = None;
        ui.add_space(space::XS);
        ui.horizontal(|ui| {
            ui.add_space(space::M);
            let hint = egui::RichText::new("Find a session").font(theme::small().font).color(colours.muted);
            let field = egui::TextEdit::singleline(&mut self.query)
                .id_salt("find a session")
                .font(theme::small().font)
                .hint_text(hint)
                .margin(egui::Margin::symmetric(8, 6))
                .desired_width((ui.available_width() - space::XL).max(80.0));
            ui.add(field).accessible_name("Find a session");
        });
        self.refresh(agents);
        if self.lines.is_empty() {
            ui::empty_state::show_message(ui, "No matching sessions", None, "");
            return None;
        }
        ui.spacing_mut().item_spacing.y = 0.0;
        egui::ScrollArea::vertical().id_salt("sessions").auto_shrink(false).show_rows(
            ui,
            SESSION_ROW_HEIGHT,
            self.lines.len(),
            |ui, rows| {
                for (id, title, about) in self.lines.get(rows).unwrap_or_default() {
                    let (rect, response) =
                        ui.allocate_exact_size(vec2(ui.available_width(), SESSION_ROW_HEIGHT), Sense::click());
                    let rect = rect.shrink2(vec2(space::S, 1.0));
                    let is = current == Some(*id);
                    if is {
                        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.accent_ground);
                    } else if response.hovered() {
                        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.paper));
                    }
                    paint_focus_ring(ui, &response, CONTROL_CORNER);
                    let room = rect.width() - space::L;
                    paint_clipped_text(
                        ui,
                        rect.left_top() + vec2(space::S, 4.0),
                        room,
                        title,
                        &theme::small(),
                        colours.ink,
                    );
                    paint_clipped_text(
                        ui,
                        rect.left_top() + vec2(space::S, 25.0),
                        room,
                        about,
                        &theme::caption(),
                        colours.muted,
                    );
                    let title = text::untrusted_text::escape_line(title);
                    response.widget_info(|| {
                        egui::WidgetInfo::selected(Role::ListBoxOption, true, is, format!("Session: {title}"))
                    });
                    if response.clicked() {
                        chosen = Some(*id);
                    }
                }
            },
        );
        chosen
    }
}
