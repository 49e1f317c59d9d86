//! The history page: versions on the left, and on the right the changes since one of them, or the authors.
//!
//! Texts are computed elsewhere. The page requests and draws them, and returns edits that restore parts.

mod authors;
mod side_by_side;
mod version_list;

use authors::AuthorsView;
use eframe::egui;
use egui::accesskit::{Role, Toggled};
use egui::{Align, Align2, Key, Layout, Modifiers, Sense, Stroke, Ui, UiBuilder, pos2, vec2};
use engine::Session;
use host::Driver;
use host::history::{ComparisonSide, HistoryAnswer, HistoryQuestion, HistoryThread, TextComparison, VersionText};
pub(crate) use side_by_side::SideBySide;
use std::sync::Arc;
use store::DocId;
use text::history::{ChangeAuthor, NoteHistory, NoteVersion};
use text::text_edit::{self, TextEdit};
use ui::empty_state;
use ui::icons;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{chip_button, icon_button, paint_clipped_text, paint_focus_ring, set_accessible_name, text_button};
use version_list::VersionList;
pub(crate) use version_list::short_date_label;

/// Width of the version list, in points.
const VERSION_LIST_WIDTH: f32 = 264.0;
/// Minimum page width for the list beside the comparison. Below it, the list is on top.
const MIN_TWO_COLUMN_PAGE_WIDTH: f32 = 620.0;
/// Minimum width for the toolbar in one line.
const MIN_SINGLE_LINE_TOOLBAR_WIDTH: f32 = 620.0;
/// Height of the header, in points.
const HISTORY_HEADER_HEIGHT: f32 = 44.0;

/// What a version is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompareBase {
    /// The current note.
    Now,
    /// The version before it.
    Before,
}

/// An action outside the page.
pub(crate) enum HistoryAction {
    /// Edits of the note if it has this text, and the message shown afterwards.
    Edit(Vec<TextEdit>, Arc<str>, &'static str),
}

/// The last request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum HistoryRequest {
    /// The version, the base of the comparison, and the note's revision if that is the current note.
    Compare(usize, CompareBase, u64),
    Written(usize),
}

pub(crate) struct HistoryPage {
    pub(crate) note: DocId,
    look: HistoryThread,
    /// The history; the outer `None` means that no answer has arrived.
    story: Option<Option<Arc<NoteHistory>>>,
    trouble: Option<String>,
    list: VersionList,
    /// The selected version.
    chosen: usize,
    against: CompareBase,
    /// Whether authors are shown instead of changes.
    authors: bool,
    asked: Option<HistoryRequest>,
    /// Time at which the pending request started.
    since: f64,
    waits: bool,
    sides: SideBySide,
    writers: AuthorsView,
    /// Revision of the note for which the history was last read.
    seen: u64,
    wishes: Vec<HistoryAction>,
}

impl HistoryPage {
    pub(crate) fn new(driver: &Driver, note: DocId, authors: bool) -> HistoryPage {
        let seen = driver.session().note(note).map_or(0, engine::Note::revision);
        HistoryPage {
            note,
            look: driver.open_history(note),
            story: None,
            trouble: None,
            list: VersionList::default(),
            chosen: 0,
            against: CompareBase::Now,
            authors,
            asked: None,
            since: 0.0,
            waits: false,
            sides: SideBySide::default(),
            writers: AuthorsView::default(),
            seen,
            wishes: Vec::new(),
        }
    }

    /// Processes answers, and requests what is visible. Returns the user's actions.
    pub(crate) fn step(&mut self, session: &Session, now: f64) -> Vec<HistoryAction> {
        while let Some(told) = self.look.try_answer() {
            match told {
                HistoryAnswer::History(story) => self.take(story),
                HistoryAnswer::Compared(compared) => {
                    (self.waits, self.trouble) = (false, None);
                    self.sides.set_comparison(compared);
                }
                HistoryAnswer::Authorship(authored) => {
                    (self.waits, self.trouble) = (false, None);
                    let versions = self.versions();
                    self.writers.set_authors(authored, versions.as_deref());
                }
                HistoryAnswer::Failed(why) => (self.waits, self.trouble) = (false, Some(why)),
            }
        }
        let Some(note) = session.note(self.note) else { return std::mem::take(&mut self.wishes) };
        if self.seen != note.revision() && note.is_committed() && self.story.is_some() {
            self.seen = note.revision();
            self.look.ask(HistoryQuestion::Refresh);
        }
        let Some(story) = self.versions() else { return std::mem::take(&mut self.wishes) };
        let Some(version) = story.versions.get(self.chosen) else { return std::mem::take(&mut self.wishes) };
        let wanted = match (self.authors, self.against) {
            (true, _) => HistoryRequest::Written(version.changes.end),
            (false, CompareBase::Now) => HistoryRequest::Compare(self.chosen, CompareBase::Now, note.revision()),
            (false, CompareBase::Before) => HistoryRequest::Compare(self.chosen, CompareBase::Before, 0),
        };
        if self.asked.as_ref() != Some(&wanted) {
            if !self.waits {
                (self.waits, self.since) = (true, now);
            }
            self.look.ask(match &wanted {
                HistoryRequest::Written(count) => HistoryQuestion::Authorship(*count),
                HistoryRequest::Compare(_, CompareBase::Now, _) => HistoryQuestion::Compare {
                    then: version_text(version),
                    with: ComparisonSide::Current(Arc::from(note.text())),
                },
                HistoryRequest::Compare(at, CompareBase::Before, _) => {
                    let older = at.checked_sub(1).and_then(|at| story.versions.get(at));
                    let then = match (version.is_only_in_git, older) {
                        (false, _) => VersionText::Change(version.changes.start),
                        (true, Some(older)) => version_text(older),
                        (true, None) => VersionText::Change(0),
                    };
                    HistoryQuestion::Compare { then, with: ComparisonSide::Version(version_text(version)) }
                }
            });
            self.asked = Some(wanted);
        }
        std::mem::take(&mut self.wishes)
    }

    fn versions(&self) -> Option<Arc<NoteHistory>> {
        self.story.clone().flatten()
    }

    /// Takes a new history and keeps the selection.
    pub(crate) fn take(&mut self, story: Option<Arc<NoteHistory>>) {
        let first = self.story.is_none();
        let before = self.versions();
        let start = before.and_then(|story| story.versions.get(self.chosen).map(|version| version.changes.start));
        if let Some(story) = &story {
            let last = story.versions.len().saturating_sub(1);
            self.chosen = match start.filter(|_| !first) {
                Some(start) => story.versions.partition_point(|version| version.changes.end <= start).min(last),
                // A newly opened history shows what the last version changed.
                None if self.authors => last,
                None => last.saturating_sub(1),
            };
            self.list.set_history(story, self.chosen);
        }
        (self.story, self.asked) = (Some(story), None);
    }

    /// Restores a part of the comparison to its old text.
    fn bring_back(&mut self, part: usize) {
        let Some(compared) = self.sides.compared() else { return };
        let TextComparison { old, new, comparison } = &*compared;
        let edits = comparison.parts.get(part).map_or_else(Vec::new, |part| text::diff::revert_part(part, old, new));
        if !edits.is_empty() {
            self.wishes.push(HistoryAction::Edit(edits, new.clone(), "Restored that part."));
        }
    }

    /// Restores the whole note to the selected version.
    fn restore(&mut self) {
        let Some(compared) = self.sides.compared() else { return };
        let edits = text_edit::compute_edits(&compared.new, &compared.old);
        if !edits.is_empty() {
            self.wishes.push(HistoryAction::Edit(edits, compared.new.clone(), "Restored this version of the note."));
        }
    }

    pub(crate) fn show(&mut self, ui: &mut Ui, session: &Session) {
        let now = ui.input(|input| input.time);
        if let Some(why) = self.trouble.clone() {
            empty_state::show_banner(
                ui,
                icons::WARNING_CIRCLE,
                &format!("Can't read the history: {why}."),
                ThemeColors::of(ui).bad,
                false,
            );
        }
        let Some(story) = &self.story else {
            if self.trouble.is_none() && now - self.since > empty_state::SKELETON_DELAY_SECONDS {
                empty_state::show_skeleton(
                    ui,
                    size::NOTE_COLUMN_WIDTH.min(ui.available_width() - 2.0 * space::XL),
                    space::XL,
                );
            }
            return;
        };
        let Some(story) = story.clone().filter(|story| !story.versions.is_empty()) else {
            let hint = "Its versions are kept from your first edit on.";
            empty_state::show_message(ui, "This note has no history yet.", None, hint);
            return;
        };
        self.keys(ui);
        let area = ui.available_rect_before_wrap();
        let narrow = area.width() < MIN_TWO_COLUMN_PAGE_WIDTH + VERSION_LIST_WIDTH;
        let (list, rest) = if narrow {
            let height = (area.height() * 0.3).min(200.0);
            area.split_top_bottom_at_y(area.top() + height)
        } else {
            area.split_left_right_at_x(area.left() + VERSION_LIST_WIDTH)
        };
        let line = Stroke::new(1.0, ThemeColors::of(ui).line);
        if narrow {
            ui.painter().hline(list.x_range(), list.bottom() - 0.5, line);
        } else {
            ui.painter().vline(list.right() - 0.5, list.y_range(), line);
        }
        let chosen = self.list.show(&mut ui::layout::part(ui, "versions", list, list), &story, self.chosen);
        if let Some(chosen) = chosen {
            self.chosen = chosen;
        }
        let mut ui = ui::layout::part(ui, "compared", rest, rest);
        self.head(&mut ui, &story, session);
        let waits = self.waits && now - self.since > empty_state::SKELETON_DELAY_SECONDS;
        let area = ui.available_rect_before_wrap();
        if self.authors {
            if let Some(chosen) = self.writers.show(&mut ui) {
                self.chosen = chosen;
                self.authors = false;
                self.list.reveal(chosen);
            }
        } else if let Some(part) = self.sides.show(&mut ui, self.against == CompareBase::Now) {
            self.bring_back(part);
        }
        if waits {
            let text = "Reading…";
            let at = pos2(area.right() - space::L, area.top() + space::S);
            ui.painter().text(at, Align2::RIGHT_TOP, text, theme::caption().font, ThemeColors::of(&ui).muted);
        } else if self.waits {
            ui.ctx().request_repaint_after(std::time::Duration::from_secs_f64(empty_state::SKELETON_DELAY_SECONDS));
        }
    }

    /// Handles the keys that move to the next or previous change.
    fn keys(&mut self, ui: &Ui) {
        let pressed = |key| ui.input_mut(|input| input.consume_key(Modifiers::ALT, key));
        if pressed(Key::ArrowDown) {
            self.sides.go_to_change(false);
        }
        if pressed(Key::ArrowUp) {
            self.sides.go_to_change(true);
        }
    }

    /// Draws the actions for the selection. `back`: laid out from right to left.
    fn tools(&mut self, ui: &mut Ui, locked: bool, back: bool) {
        if !self.authors && self.against == CompareBase::Now && !locked {
            let differs = self.sides.changes() > 0;
            if differs && text_button(ui, "Restore this version", true).clicked() {
                self.restore();
            }
        }
        if toggle(ui, icons::USER, "Authors", self.authors) {
            self.authors = !self.authors;
        }
        if self.authors {
            return;
        }
        let chosen = usize::from(self.against == CompareBase::Before);
        if let Some(place) = segments(ui, &["Since then", "In this version"], chosen, back) {
            self.against = if place == 0 { CompareBase::Now } else { CompareBase::Before };
        }
        if self.sides.changes() > 1 {
            if icon_button(ui, icons::CARET_DOWN, "Next change", Some("Alt+ArrowDown")).clicked() {
                self.sides.go_to_change(false);
            }
            if icon_button(ui, icons::CARET_UP, "Previous change", Some("Alt+ArrowUp")).clicked() {
                self.sides.go_to_change(true);
            }
        }
    }

    /// Draws the title of the selection and its actions.
    fn head(&mut self, ui: &mut Ui, story: &NoteHistory, session: &Session) {
        let colours = ThemeColors::of(ui);
        let locked = session.note(self.note).is_none_or(|note| note.edit_refusal().is_some());
        if ui.available_width() < MIN_SINGLE_LINE_TOOLBAR_WIDTH {
            ui.add_space(space::S);
            let room = ui.available_rect_before_wrap().shrink2(vec2(space::S, 0.0));
            let mut tools = ui.new_child(UiBuilder::new().max_rect(room).id_salt("tools"));
            tools.spacing_mut().item_spacing = vec2(space::S, space::XS);
            tools.horizontal_wrapped(|ui| self.tools(ui, locked, false));
            ui.add_space(tools.min_rect().height() + space::S);
            let bottom = ui.cursor().top();
            ui.painter().hline(ui.max_rect().x_range(), bottom - 0.5, Stroke::new(1.0, colours.line));
            return;
        }
        let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), HISTORY_HEADER_HEIGHT), Sense::hover());
        ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, colours.line));
        let inner = rect.shrink2(vec2(space::L, 0.0));
        let mut tools = ui
            .new_child(UiBuilder::new().max_rect(inner).id_salt("tools").layout(Layout::right_to_left(Align::Center)));
        tools.spacing_mut().item_spacing.x = space::S;
        self.tools(&mut tools, locked, true);
        let right = tools.min_rect().left() - space::L;
        let Some(version) = story.versions.get(self.chosen) else { return };
        let title = ui::time::when(version.to);
        let bold = theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 13.0), line: 20.0 };
        let room = right - inner.left();
        let middle = rect.center().y;
        let width = paint_clipped_text(ui, pos2(inner.left(), middle - 10.0), room, &title, &bold, colours.ink);
        let changes = match (self.authors, self.sides.changes()) {
            (true, _) => String::new(),
            (false, 0) => "no changes".to_owned(),
            (false, 1) => "1 change".to_owned(),
            (false, many) => format!("{many} changes"),
        };
        let at = pos2(inner.left() + width + space::S, middle - 8.0);
        paint_clipped_text(ui, at, room - width - space::S, &changes, &theme::caption(), colours.muted);
        let heard = ui.interact(rect.with_max_x(right.max(rect.left())), ui.scope_id().with("title"), Sense::hover());
        set_accessible_name(&heard, Role::Heading, &format!("{title}: {changes}"));
    }
}

/// Returns where the text of a version is.
fn version_text(version: &NoteVersion) -> VersionText {
    match version.commits.last().filter(|_| version.is_only_in_git) {
        Some(id) => VersionText::Commit(id.clone()),
        None => VersionText::Change(version.changes.end),
    }
}

/// Returns the icon for a change's author.
fn glyph(who: &ChangeAuthor) -> &'static str {
    match who {
        ChangeAuthor::Here => icons::USER,
        ChangeAuthor::Program => icons::TERMINAL,
        ChangeAuthor::Agent => icons::ROBOT,
        ChangeAuthor::Found => icons::FILE_TEXT,
        ChangeAuthor::Repair => icons::WRENCH,
        ChangeAuthor::Commit { .. } => icons::BRANCH,
        ChangeAuthor::Device(_) => icons::HARD_DRIVES,
    }
}

/// Returns the color for a change's author. The icon or text carries the same information.
fn hue(who: &ChangeAuthor, colours: &ThemeColors) -> egui::Color32 {
    match who {
        ChangeAuthor::Here => colours.accent,
        ChangeAuthor::Program => colours.warn,
        ChangeAuthor::Agent => colours.thought,
        ChangeAuthor::Found => colours.muted,
        ChangeAuthor::Repair => colours.bad,
        ChangeAuthor::Commit { .. } => colours.ok,
        ChangeAuthor::Device(_) => colours.tool,
    }
}

/// Draws a toggle button. Returns whether it was clicked.
fn toggle(ui: &mut Ui, icon: &str, name: &str, on: bool) -> bool {
    let colours = ThemeColors::of(ui);
    let colour = if on { colours.accent } else { colours.ink };
    let galley = ui.painter().layout_no_wrap(name.to_owned(), theme::small().font, colour);
    let wanted = vec2(galley.size().x + 2.0 * space::M + 20.0, size::MIN_CLICK_HEIGHT);
    let (rect, response) = ui.allocate_exact_size(wanted, Sense::click());
    response.widget_info(|| egui::WidgetInfo::selected(Role::Button, true, on, name));
    let toggled = if on { Toggled::True } else { Toggled::False };
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_toggled(toggled));
    let fill = match (on, response.hovered()) {
        (true, _) => colours.accent_ground,
        (false, true) => colours.hover_color(colours.sunken),
        (false, false) => colours.sunken,
    };
    ui.painter().rect_filled(rect, CONTROL_CORNER, fill);
    let at = pos2(rect.left() + space::M + 6.0, rect.center().y);
    ui.painter().text(at, Align2::CENTER_CENTER, icon, theme::icon_font(14.0), colour);
    let text = pos2(rect.left() + space::M + 20.0, rect.center().y - galley.size().y / 2.0);
    ui.painter().galley(text, galley, colour);
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    response.clicked()
}

/// Draws two buttons of which one is selected. Returns the index of the clicked one.
fn segments(ui: &mut Ui, names: &[&str; 2], chosen: usize, back: bool) -> Option<usize> {
    let mut clicked = None;
    ui.spacing_mut().item_spacing.x = 0.0;
    for place in if back { [1, 0] } else { [0, 1] } {
        let name = names[place];
        if chip_button(ui, name, name, place == chosen, &theme::small()) {
            clicked = Some(place);
        }
    }
    ui.add_space(space::S);
    ui.spacing_mut().item_spacing.x = space::S;
    clicked
}
