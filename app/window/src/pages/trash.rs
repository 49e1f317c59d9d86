//! The trash page: deleted files with their time and original location, to restore or to delete permanently.

use eframe::egui;
use egui::accesskit::Role;
use egui::{Align, Align2, Layout, Rect, Sense, Stroke, Ui, UiBuilder, pos2, vec2};
use engine::commands::CommandId;
use engine::{Command, Session};
use notebook::actions::{PageAction, TreeAction};
use store::{DocId, FileKind};
use ui::empty_state;
use ui::icons;
use ui::text::shown_name;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{icon_button, paint_clipped_text, set_accessible_name, text_button};

const TRASH_ROW_HEIGHT: f32 = 52.0;

/// A row of the list of deleted files.
struct TrashRow {
    file: DocId,
    name: String,
    place: String,
    when: String,
    pub(crate) note: bool,
}

#[derive(Default)]
pub(crate) struct TrashPage {
    rows: Vec<TrashRow>,
    /// The number of files in the trash and the last deletion time that the rows were made from.
    made: Option<(usize, i64)>,
    query: String,
}

impl TrashPage {
    fn refresh(&mut self, session: &Session) {
        let state = session.trash().fold((0, 0), |(count, last), (_, one)| (count + 1, one.at.max(last)));
        if self.made == Some(state) {
            return;
        }
        self.made = Some(state);
        let mut all: Vec<(i64, TrashRow)> = session
            .trash()
            .map(|(file, trashed)| {
                let (folder, name) = trashed.row.path.rsplit_once('/').unwrap_or(("", &trashed.row.path));
                let volume = session.volume(trashed.row.volume);
                let volume = volume.map_or("a volume that is closed", |volume| volume.name.as_str());
                let place = if folder.is_empty() { volume.to_owned() } else { format!("{volume} / {folder}") };
                let note = trashed.row.kind == FileKind::Note;
                let name = if note { shown_name(name) } else { name }.to_owned();
                let when = ui::time::when(trashed.at / 1_000);
                (
                    trashed.at,
                    TrashRow { file, name, place: place.replace('/', " / ").replace("  /  ", " / "), when, note },
                )
            })
            .collect();
        all.sort_by(|(one, row), (other, next)| other.cmp(one).then_with(|| row.name.cmp(&next.name)));
        self.rows = all.into_iter().map(|(_, row)| row).collect();
    }

    pub(crate) fn show(&mut self, ui: &mut Ui, session: &Session, actions: &mut Vec<PageAction>) {
        self.refresh(session);
        if self.rows.is_empty() {
            empty_state::show_message(
                ui,
                "The trash is empty.",
                None,
                "Deleted files stay here until you empty the trash.",
            );
            return;
        }
        let colours = ThemeColors::of(ui);
        let width = size::NOTE_COLUMN_WIDTH.min(ui.available_width() - 2.0 * space::XL);
        let margin = (ui.available_width() - width) / 2.0;
        let words = ("Filter the trash", "Filter by name or folder");
        if ui::layout::filter(ui, &mut self.query, words, "Empty trash…") {
            actions.push(PageAction::Run(CommandId::TrashEmpty));
        }
        let wanted = self.query.trim().to_lowercase();
        let fits =
            |row: &&TrashRow| row.name.to_lowercase().contains(&wanted) || row.place.to_lowercase().contains(&wanted);
        let rows: Vec<&TrashRow> = self.rows.iter().filter(fits).collect();
        if rows.is_empty() {
            let at = pos2(ui.max_rect().left() + margin, ui.cursor().top());
            let words = "No matching files in the trash";
            ui.painter().text(at, Align2::LEFT_TOP, words, theme::small().font, colours.muted);
            return;
        }
        ui.spacing_mut().item_spacing.y = 0.0;
        egui::ScrollArea::vertical().id_salt("trash").auto_shrink(false).show_rows(
            ui,
            TRASH_ROW_HEIGHT,
            rows.len(),
            |ui, range| {
                for row in rows.iter().skip(range.start).take(range.len()) {
                    let (rect, _) =
                        ui.allocate_exact_size(vec2(ui.available_width(), TRASH_ROW_HEIGHT), Sense::hover());
                    let rect =
                        Rect::from_x_y_ranges(rect.left() + margin..=rect.left() + margin + width, rect.y_range());
                    line(ui, rect, row, actions);
                }
            },
        );
    }
}

fn line(ui: &mut Ui, rect: Rect, row: &TrashRow, actions: &mut Vec<PageAction>) {
    let colours = ThemeColors::of(ui);
    let response = ui.interact(rect, ui.scope_id().with(("trashed", row.file)), Sense::hover());
    set_accessible_name(&response, Role::ListItem, &format!("{}, from {}, deleted {}", row.name, row.place, row.when));
    if ui.rect_contains_pointer(rect) {
        ui.painter().rect_filled(rect.expand2(vec2(space::S, 0.0)), CONTROL_CORNER, colours.hover_color(colours.paper));
    }
    ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, colours.line));
    let mut tools =
        ui.new_child(UiBuilder::new().max_rect(rect).id_salt(row.file).layout(Layout::right_to_left(Align::Center)));
    tools.spacing_mut().item_spacing.x = space::S;
    if icon_button(&mut tools, icons::TRASH, &format!("Delete {} permanently", row.name), None).clicked() {
        actions.push(PageAction::Tree(TreeAction::Discard(vec![row.file])));
    }
    let restore = text_button(&mut tools, "Restore", false);
    set_accessible_name(&restore, Role::Button, &format!("Restore {}", row.name));
    if restore.clicked() {
        actions.push(PageAction::Do(Command::RestoreFile { file: row.file, path: None }));
    }
    let mut right = tools.min_rect().left() - space::L;
    let when = ui.painter().layout_no_wrap(row.when.clone(), theme::caption().font, colours.muted);
    right -= when.size().x;
    ui.painter().galley(pos2(right, rect.center().y - when.size().y / 2.0), when, colours.muted);
    let icon = if row.note { icons::NOTE } else { icons::PAPERCLIP };
    let at = pos2(rect.left() + 8.0, rect.center().y);
    ui.painter().text(at, Align2::CENTER_CENTER, icon, theme::icon_font(size::ICON_SIZE), colours.muted);
    let left = rect.left() + 28.0;
    let room = right - left - space::L;
    paint_clipped_text(ui, pos2(left, rect.top() + 7.0), room, &row.name, &theme::small(), colours.ink);
    paint_clipped_text(ui, pos2(left, rect.top() + 27.0), room, &row.place, &theme::caption(), colours.muted);
}
