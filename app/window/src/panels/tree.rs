//! The file tree at the left: starred and recent notes, then volumes, folders and notes.
//!
//! It's flattened into rows when something changes, and only visible rows are drawn. Rows can be dragged into folders,
//! and each has a menu.

use crate::panels::row_details::{FileBadges, describe_file, file_title, guide_title};
use crate::shell::commands::ShortcutTable;
use agent::config::VolumeKind;
use agent::system_volume;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Rect, Sense, Ui, WidgetInfo, pos2, vec2};
use engine::commands::CommandId;
use engine::{Command, ScanState, Session, Settings, TreeOrder, Volume};
use export::ExportScope;
use host::source_control::SourceControl;
use notebook::actions::ExportCommand;
use notebook::actions::{FileAction, PageAction, TreeAction};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;
use store::disk::FileRow;
use store::{DocId, FileKind};
use ui::icons;
use ui::menus::{context_menu, menu_below, menu_choice, menu_item, menu_separator};
use ui::text::shown_name;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{self, icon_button, paint_clipped_text, word_button};

const TREE_ROW_HEIGHT: f32 = size::MIN_CLICK_HEIGHT;
const TREE_INDENT: f32 = space::L;
/// Maximum number of listed recent notes.
const MAX_RECENT_NOTES: usize = 7;
/// Minimum width of the tree for its title, in points.
const MIN_TITLE_WIDTH: f32 = 232.0;
/// Minimum interval between two rebuilds of the tree during a scan, in seconds.
const TREE_REFRESH_SECONDS: f64 = 0.25;

/// The item of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TreeItem {
    /// The starred or recent notes.
    Section {
        open: bool,
    },
    Volume {
        open: bool,
    },
    Folder {
        path: String,
        open: bool,
    },
    Note(DocId),
    Attachment(DocId),
    /// The read-only volume System (with an empty path), or a folder or file of it.
    System {
        path: String,
        /// Whether it's unfolded; `None` for a file.
        open: Option<bool>,
    },
}

#[derive(Clone, Debug)]
struct TreeRow {
    volume: DocId,
    depth: u16,
    name: String,
    thing: TreeItem,
}

/// What the rows depend on: each volume's ID, revision and whether it's known; the number of fold changes and the
/// order; starred and recent notes.
type TreeStamp = (Vec<(DocId, u64, bool)>, (u64, TreeOrder), Vec<DocId>, Vec<DocId>);

/// State of the file tree: what is folded, and the rows.
#[derive(Default)]
pub(crate) struct FileTree {
    folded: HashSet<DocId>,
    open: HashSet<(DocId, String)>,
    recent_open: bool,
    /// Unfolded folders of System; the empty path is System itself.
    system_open: HashSet<String>,
    lines: Vec<TreeRow>,
    /// What the rows were made from.
    made: Option<TreeStamp>,
    made_at: f64,
    changes: u64,
    /// The note that was last marked as open.
    marked: Option<DocId>,
    reveal: bool,
    /// The volume to scroll to.
    revealed_volume: Option<DocId>,
}

impl FileTree {
    /// Creates the tree with the saved fold state.
    pub(crate) fn from_settings(settings: &Settings) -> FileTree {
        let open = settings.unfolded.iter().cloned().collect();
        let folded = settings.folded.iter().copied().collect();
        FileTree { open, folded, recent_open: settings.recent_open, ..FileTree::default() }
    }

    /// Updates the fold state from the settings.
    pub(crate) fn set(&mut self, settings: &Settings) {
        let FileTree { folded, open, recent_open, .. } = FileTree::from_settings(settings);
        if (&self.folded, &self.open, self.recent_open) != (&folded, &open, recent_open) {
            (self.folded, self.open, self.recent_open) = (folded, open, recent_open);
            self.changes += 1;
        }
    }

    /// Stores the fold state in the settings.
    pub(crate) fn store_settings(&self, settings: &mut Settings) {
        settings.recent_open = self.recent_open;
        settings.folded = self.folded.iter().copied().collect();
        settings.folded.sort_unstable();
        settings.unfolded = self.open.iter().cloned().collect();
        settings.unfolded.sort_unstable();
    }

    /// Draws the tree.
    pub(crate) fn show(
        &mut self,
        ui: &mut Ui,
        (session, source): (&Session, &SourceControl),
        shortcuts: &ShortcutTable,
        note: Option<DocId>,
        actions: &mut Vec<PageAction>,
    ) {
        let badges = FileBadges::of(session, source);
        self.head(ui, session.settings().tree_order, shortcuts, actions);
        if self.marked != note {
            self.marked = note;
            self.reveal_note(session);
        }
        self.refresh(ui, session);
        if self.lines.is_empty() {
            return;
        }
        let reveal = std::mem::take(&mut self.reveal);
        let marked = self.lines.iter().rposition(|line| note.is_some() && file_of(&line.thing) == note);
        let is_sought =
            |line: &TreeRow| line.thing == TreeItem::Volume { open: true } && Some(line.volume) == self.revealed_volume;
        let sought = marked.filter(|_| reveal).or_else(|| self.lines.iter().position(is_sought));
        self.revealed_volume = None;
        let mut toggled = None;
        egui::ScrollArea::vertical().id_salt("tree").auto_shrink(false).show_viewport(ui, |ui, viewport| {
            #[allow(clippy::cast_precision_loss, reason = "a count of lines")]
            let top_of = |line: usize| line as f32 * TREE_ROW_HEIGHT;
            ui.set_height(top_of(self.lines.len()) + space::XL);
            let page = ui.max_rect();
            if let Some(line) = sought {
                let rect =
                    Rect::from_min_size(pos2(page.left(), page.top() + top_of(line)), vec2(1.0, TREE_ROW_HEIGHT));
                ui.scroll_to_rect(rect, None);
            }
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a line in sight")]
            let (first, last) = (
                (viewport.top() / TREE_ROW_HEIGHT).max(0.0) as usize,
                (viewport.bottom() / TREE_ROW_HEIGHT).ceil().max(0.0) as usize,
            );
            for index in first..last.min(self.lines.len()) {
                let rect = Rect::from_min_size(
                    pos2(page.left(), page.top() + top_of(index)),
                    vec2(page.width(), TREE_ROW_HEIGHT),
                );
                if self.line(ui, (session, &badges), index, rect, note, actions) {
                    toggled = Some(index);
                }
            }
        });
        if let Some(line) = toggled.and_then(|index| self.lines.get(index).cloned()) {
            self.toggle(&line);
            ui.ctx().request_repaint();
        }
    }

    fn head(&self, ui: &mut Ui, order: TreeOrder, shortcuts: &ShortcutTable, actions: &mut Vec<PageAction>) {
        let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), size::TOOLBAR_HEIGHT), Sense::hover());
        let colours = ThemeColors::of(ui);
        let at = rect.left_center() + vec2(space::L, 0.0);
        let font = theme::inter_font(theme::InterCut::SemiBold, 13.0);
        // In a narrow panel, the buttons need the room.
        if rect.width() >= MIN_TITLE_WIDTH {
            ui.painter().text(at, Align2::LEFT_CENTER, "Notes", font, colours.ink);
        }
        let wide = 5.0 * size::MIN_CLICK_HEIGHT + 4.0 * space::XS + space::S;
        let buttons = Rect::from_min_max(pos2(rect.right() - wide, rect.top() + space::XS), rect.max);
        let mut child = ui
            .new_child(egui::UiBuilder::new().max_rect(buttons).layout(egui::Layout::left_to_right(egui::Align::Min)));
        child.spacing_mut().item_spacing.x = space::XS;
        for (icon, name, id) in [
            (icons::FILE_PLUS, "New note", CommandId::NoteNew),
            (icons::FOLDER_PLUS, "Open folder", CommandId::FolderOpen),
            (icons::REVEAL, "Reveal open note", CommandId::ViewReveal),
            (icons::COLLAPSE, "Collapse all folders", CommandId::ViewCollapse),
        ] {
            if icon_button(&mut child, icon, name, shortcuts.key_of(id)).clicked() {
                actions.push(PageAction::Run(id));
            }
        }
        let sort = icon_button(&mut child, icons::SORT, "Sort files", None);
        menu_below(&sort, "Sort files", |ui| {
            for (name, of, id) in [
                ("Name (A to Z)", TreeOrder::Name, CommandId::ViewSortName),
                ("Name (Z to A)", TreeOrder::NameReversed, CommandId::ViewSortNameDown),
                ("Last edited first", TreeOrder::Edited, CommandId::ViewSortEdited),
                ("Newest first", TreeOrder::Created, CommandId::ViewSortCreated),
            ] {
                if menu_choice(ui, name, order == of) {
                    actions.push(PageAction::Run(id));
                }
            }
        });
    }

    /// Rebuilds the rows if something changed.
    fn refresh(&mut self, ui: &Ui, session: &Session) {
        let state: Vec<(DocId, u64, bool)> =
            session.volumes().map(|volume| (volume.id, volume.revision, volume.known)).collect();
        let (starred, recent) = (session.settings().starred.clone(), session.settings().recent.clone());
        let stamp: TreeStamp = (state, (self.changes, session.settings().tree_order), starred, recent);
        if self.made.as_ref() == Some(&stamp) {
            return;
        }
        let now = ui.input(|input| input.time);
        let scans = session.volumes().any(|volume| matches!(volume.scanning, ScanState::Running { .. }));
        let only_files =
            self.made.as_ref().is_some_and(|made| (made.1, &made.2, &made.3) == (stamp.1, &stamp.2, &stamp.3));
        if scans && only_files && now - self.made_at < TREE_REFRESH_SECONDS {
            ui.ctx().request_repaint_after(std::time::Duration::from_secs_f64(TREE_REFRESH_SECONDS));
            return;
        }
        let (starred, recent) = (stamp.2.clone(), stamp.3.clone());
        self.made = Some(stamp);
        self.made_at = now;
        self.lines.clear();
        self.section(session, "Starred", true, &starred);
        if recent.len() > 1 {
            let recent: Vec<DocId> = recent.into_iter().take(MAX_RECENT_NOTES).collect();
            self.section(session, "Recent", self.recent_open, &recent);
        }
        let mut volumes: Vec<&Volume> = session.volumes().collect();
        volumes.sort_by_key(|volume| volume.name.to_lowercase());
        for volume in volumes {
            let open = !self.folded.contains(&volume.id);
            let name = volume.name.clone();
            self.lines.push(TreeRow { volume: volume.id, depth: 0, name, thing: TreeItem::Volume { open } });
            if open {
                self.folder(session, volume, "", 1);
            }
        }
        if !self.lines.is_empty() {
            self.system_rows();
        }
    }

    /// Adds the rows of the volume System.
    fn system_rows(&mut self) {
        let row = |depth: u16, name: &str, path: &str, open: Option<bool>| {
            let thing = TreeItem::System { path: path.to_owned(), open };
            TreeRow { volume: DocId([0; 16]), depth, name: name.to_owned(), thing }
        };
        let is_open = |folder: &str| self.system_open.contains(folder);
        let mut rows = vec![row(0, "System", "", Some(is_open("")))];
        let paths = system_volume::files().keys().filter(|_| is_open(""));
        let (inner, outer): (Vec<&String>, Vec<&String>) = paths.partition(|path| path.contains('/'));
        let mut last = "";
        for (folder, name) in inner.iter().filter_map(|path| path.split_once('/')) {
            if folder != last {
                rows.push(row(1, folder, folder, Some(is_open(folder))));
                last = folder;
            }
            if is_open(folder) {
                rows.push(row(2, shown_name(name), &format!("{folder}/{name}"), None));
            }
        }
        rows.extend(outer.iter().map(|path| row(1, path, path, None)));
        self.lines.append(&mut rows);
    }

    /// Adds a section's heading and its notes, if there are any.
    fn section(&mut self, session: &Session, name: &str, open: bool, notes: &[DocId]) {
        let places = notes.iter().filter_map(|note| Some((*note, session.locate_file(*note)?)));
        let found: Vec<TreeRow> = places
            .map(|(note, (volume, path))| {
                let name = session.volume(volume).map_or(path, |volume| file_title(session, volume, path)).to_owned();
                TreeRow { volume, depth: 1, name, thing: TreeItem::Note(note) }
            })
            .collect();
        let Some(volume) = found.first().map(|line| line.volume) else { return };
        self.lines.push(TreeRow { volume, depth: 0, name: name.to_owned(), thing: TreeItem::Section { open } });
        if open {
            self.lines.extend(found);
        }
    }

    /// Adds the rows of one folder: folders first, then files, each in order.
    fn folder(&mut self, session: &Session, volume: &Volume, prefix: &str, depth: u16) {
        let (mut folders, mut files) = children(&volume.files, prefix);
        if session.is_guide(volume) {
            for (name, row) in &mut files {
                *name = guide_title(&row.path).unwrap_or(*name);
            }
        }
        folders.sort_by_key(|name| name.to_lowercase());
        files.sort_by_key(|(name, _)| name.to_lowercase());
        match session.settings().tree_order {
            TreeOrder::Name => {}
            TreeOrder::NameReversed => {
                folders.reverse();
                files.reverse();
            }
            TreeOrder::Edited => files.sort_by_key(|(_, row)| Reverse(row.mtime)),
            TreeOrder::Created => files.sort_by_cached_key(|(_, row)| Reverse(creation_day(volume, row))),
        }
        for name in folders {
            let path = format!("{prefix}{name}/");
            let open = self.open.contains(&(volume.id, path.clone()));
            let thing = TreeItem::Folder { path: path.clone(), open };
            self.lines.push(TreeRow { volume: volume.id, depth, name: name.to_owned(), thing });
            if open {
                self.folder(session, volume, &path, depth + 1);
            }
        }
        for (name, row) in files {
            let (name, thing) = match row.kind {
                FileKind::Note | FileKind::Collection | FileKind::Script => (shown_name(name), TreeItem::Note(row.id)),
                FileKind::Attachment => (name, TreeItem::Attachment(row.id)),
            };
            self.lines.push(TreeRow { volume: volume.id, depth, name: name.to_owned(), thing });
        }
    }

    fn toggle(&mut self, line: &TreeRow) {
        match &line.thing {
            TreeItem::Section { .. } => {
                if line.name == "Recent" {
                    self.recent_open = !self.recent_open;
                }
            }
            TreeItem::Volume { .. } => {
                if !self.folded.remove(&line.volume) {
                    self.folded.insert(line.volume);
                }
            }
            TreeItem::Folder { path, .. } => {
                let key = (line.volume, path.clone());
                if !self.open.remove(&key) {
                    self.open.insert(key);
                }
            }
            TreeItem::System { path, .. } => {
                if !self.system_open.remove(path) {
                    self.system_open.insert(path.clone());
                }
            }
            TreeItem::Note(_) | TreeItem::Attachment(_) => {}
        }
        self.changes += 1;
    }

    /// Folds all folders.
    pub(crate) fn collapse_folders(&mut self) {
        self.open.clear();
        self.system_open.clear();
        self.changes += 1;
    }

    /// Unfolds the folders around a note and scrolls to it.
    pub(crate) fn reveal(&mut self, session: &Session, note: DocId) {
        self.marked = Some(note);
        self.reveal_note(session);
    }

    /// Unfolds a volume and scrolls to it.
    pub(crate) fn reveal_volume(&mut self, volume: DocId) {
        self.folded.remove(&volume);
        self.changes += 1;
        self.revealed_volume = Some(volume);
    }

    /// Unfolds the folders around the marked note.
    fn reveal_note(&mut self, session: &Session) {
        let Some((volume, path)) = self.marked.and_then(|note| session.locate_file(note)) else { return };
        self.reveal = true;
        self.changes += 1;
        self.folded.remove(&volume);
        for (at, _) in path.match_indices('/') {
            self.open.insert((volume, path[..=at].to_owned()));
        }
    }

    /// Draws a row. Returns whether to fold or unfold it.
    fn line(
        &self,
        ui: &Ui,
        (session, badges): (&Session, &FileBadges),
        index: usize,
        rect: Rect,
        note: Option<DocId>,
        actions: &mut Vec<PageAction>,
    ) -> bool {
        let Some(line) = self.lines.get(index) else { return false };
        let colours = ThemeColors::of(ui);
        let starred = self.lines.iter().position(|line| matches!(line.thing, TreeItem::Volume { .. })).unwrap_or(0);
        let id = match &line.thing {
            // A note may also be among the starred or recent ones.
            TreeItem::Note(note) => ui.scope_id().with((note, index < starred, index.min(starred))),
            thing => ui.scope_id().with((line.volume, &line.name, line.depth, file_of(thing).is_some(), index)),
        };
        let rect = rect.shrink2(vec2(space::S, 0.0));
        let response = ui.interact(rect, id, Sense::click_and_drag());
        let marked = index >= starred && note.is_some() && file_of(&line.thing) == note;
        self.carry(ui, session, line, rect, &response, actions);
        menu(session, line, &response, actions);
        let badge = path_of(session, &line.thing).and_then(|path| badges.kind_of(line.volume, path));
        let is_system = matches!(&line.thing, TreeItem::System { path, .. } if path.is_empty());
        let is_volume = matches!(line.thing, TreeItem::Volume { .. });
        let is_locked = is_system || (is_volume && session.read_only_reason(line.volume).is_some());
        let name = format!("{}{}", line.name, if is_locked { " (read-only)" } else { "" });
        response.widget_info(|| {
            WidgetInfo::selected(Role::TreeItem, true, marked, text::untrusted_text::escape_line(&name))
        });
        let about = match file_of(&line.thing) {
            Some(file) if response.hovered() => describe_file(session, file),
            None if is_volume => badges.describe_volume(session, line.volume),
            Some(_) | None => String::new(),
        };
        if !about.is_empty() {
            response.clone().on_hover_text(text::untrusted_text::escape_block(&about).into_owned());
        }
        if is_volume && !about.is_empty() {
            ui.ctx().accesskit_node_builder(id, |node| node.set_description(about.as_str()));
        }
        if let Some(kind) = badge {
            ui.ctx().accesskit_node_builder(id, |node| node.set_description(kind.word()));
        }
        if marked {
            ui.painter().rect_filled(rect, CONTROL_CORNER, colours.accent_ground);
            let bar = Rect::from_min_size(rect.left_top() + vec2(0.0, 6.0), vec2(3.0, TREE_ROW_HEIGHT - 12.0));
            ui.painter().rect_filled(bar, 2.0, colours.accent);
        } else if response.hovered() {
            ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.paper));
        }
        widgets::paint_focus_ring(ui, &response, CONTROL_CORNER);
        let middle = rect.center().y;
        let mut x = rect.left() + space::XS + TREE_INDENT * f32::from(line.depth.min(12));
        let icon = |x: f32, icon: &str, points: f32| {
            ui.painter().text(
                pos2(x + 7.0, middle),
                Align2::CENTER_CENTER,
                icon,
                theme::icon_font(points),
                colours.muted,
            );
        };
        match &line.thing {
            TreeItem::Section { open }
            | TreeItem::Volume { open }
            | TreeItem::Folder { open, .. }
            | TreeItem::System { open: Some(open), .. } => {
                icon(x, if *open { icons::CARET_DOWN } else { icons::CARET_RIGHT }, 12.0);
                ui.ctx().accesskit_node_builder(id, |node| node.set_expanded(*open));
            }
            TreeItem::Attachment(_) => icon(x, icons::PAPERCLIP, 13.0),
            TreeItem::Note(_) if collection::is_collection(&line.name) => icon(x, icons::TABLE, 13.0),
            TreeItem::Note(_) | TreeItem::System { open: None, .. } => {}
        }
        x += TREE_INDENT + 2.0;
        let mut right = rect.right() - space::S;
        if is_locked {
            right -= space::XL;
            icon(right + 6.0, icons::LOCK, 13.0);
        }
        if let (TreeItem::Volume { .. }, Some(volume)) = (&line.thing, session.volume(line.volume)) {
            let kind = session.volume_config(line.volume).and_then(|known| known.kind);
            right -= self.about_volume(ui, (volume, kind), pos2(right, middle), &response);
        }
        if let Some(kind) = badge {
            let font = theme::tabular_font(12.0);
            let colour = source_control::change_color(kind, colours);
            let drawn = ui.painter().text(pos2(right, middle), Align2::RIGHT_CENTER, kind.letter(), font, colour);
            right -= drawn.width() + space::S;
        }
        let cut = match line.thing {
            TreeItem::Volume { .. } | TreeItem::Section { .. } => theme::InterCut::SemiBold,
            _ if is_system => theme::InterCut::SemiBold,
            _ if marked => theme::InterCut::SemiBold,
            _ => theme::InterCut::Regular,
        };
        let muted = matches!(line.thing, TreeItem::Attachment(_) | TreeItem::Section { .. });
        let colour = if muted { colours.muted } else { colours.ink };
        let style = theme::TypeStyle { font: theme::inter_font(cut, 13.0), line: 20.0 };
        let shown = line.name.strip_suffix(".base").unwrap_or(&line.name);
        paint_clipped_text(ui, pos2(x, middle - 10.0), right - x, shown, &style, colour);
        let beside = response.middle_clicked() || ui.input(|input| input.modifiers.command);
        if !response.clicked() && !response.middle_clicked() {
            return false;
        }
        match &line.thing {
            TreeItem::Note(file) | TreeItem::Attachment(file) if beside => actions.push(PageAction::OpenBeside(*file)),
            TreeItem::Section { .. }
            | TreeItem::Volume { .. }
            | TreeItem::Folder { .. }
            | TreeItem::System { open: Some(_), .. } => return true,
            TreeItem::System { path, open: None } => actions.push(PageAction::ShowSystemFile(path.clone())),
            TreeItem::Note(file) | TreeItem::Attachment(file) => actions.push(PageAction::Open(*file)),
        }
        false
    }

    /// Handles dragging a row, and dropping one onto it.
    fn carry(
        &self,
        ui: &Ui,
        session: &Session,
        line: &TreeRow,
        rect: Rect,
        response: &egui::Response,
        actions: &mut Vec<PageAction>,
    ) {
        let colours = ThemeColors::of(ui);
        if !matches!(line.thing, TreeItem::Section { .. } | TreeItem::Volume { .. } | TreeItem::System { .. }) {
            response.dnd_set_drag_payload(line.clone());
            if response.dragged()
                && let Some(at) = ui.input(|input| input.pointer.latest_pos())
            {
                ghost(ui, at, &line.name);
            }
        }
        let into = match &line.thing {
            TreeItem::Volume { .. } => String::new(),
            TreeItem::Folder { path, .. } => path.clone(),
            TreeItem::Section { .. } | TreeItem::Note(_) | TreeItem::Attachment(_) | TreeItem::System { .. } => return,
        };
        let fits = |dragged: &TreeRow| dragged.volume == line.volume && !moves(session, dragged, &into).is_empty();
        if response.dnd_hover_payload::<TreeRow>().is_some_and(|dragged| fits(&dragged)) {
            let stroke = egui::Stroke::new(size::FOCUS_RING_WIDTH, colours.accent);
            ui.painter().rect_stroke(rect, CONTROL_CORNER, stroke, egui::StrokeKind::Inside);
        }
        if let Some(dragged) = response.dnd_release_payload::<TreeRow>() {
            let moves = moves(session, &dragged, &into);
            if dragged.volume != line.volume {
                actions.push(PageAction::Say("A note moves inside its volume only.".to_owned()));
            } else if !moves.is_empty() {
                actions.push(PageAction::Tree(TreeAction::Move { moves, into: line.name.clone() }));
            }
        }
    }

    /// Draws the progress of a volume's scan, its problem, or else its kind. Returns the width used.
    fn about_volume(
        &self,
        ui: &Ui,
        (volume, kind): (&Volume, Option<VolumeKind>),
        at: egui::Pos2,
        response: &egui::Response,
    ) -> f32 {
        let colours = ThemeColors::of(ui);
        if let Some(trouble) = &volume.trouble {
            ui.painter().text(at, Align2::RIGHT_CENTER, icons::WARNING, theme::icon_font(14.0), colours.warn);
            response.clone().on_hover_text(text::untrusted_text::escape_block(trouble).into_owned());
            return space::XL;
        }
        let text = match volume.scanning {
            ScanState::Running { seen, .. } if seen > 0 => format!("{seen} files…"),
            ScanState::Running { .. } if volume.files.is_empty() => "scanning…".to_owned(),
            ScanState::Running { .. } | ScanState::Idle => match kind {
                Some(kind) => kind.as_str().to_owned(),
                None => return 0.0,
            },
        };
        let rect = ui.painter().text(at, Align2::RIGHT_CENTER, text, theme::tabular_font(12.0), colours.muted);
        rect.width() + space::S
    }
}

/// Returns a file's creation time in sortable form: its `created` property, or otherwise the time of its last edit.
fn creation_day(volume: &Volume, row: &FileRow) -> String {
    let outline = volume.links.outline(row.id);
    let created = outline.and_then(|outline| outline.properties.get("created")?.as_str().map(ToOwned::to_owned));
    created.unwrap_or_else(|| {
        jiff::Timestamp::from_millisecond(row.mtime / 1_000_000).map_or_else(|_| String::new(), |time| time.to_string())
    })
}

/// Returns the path of a row in its volume, if it's a file or a folder.
fn path_of<'a>(session: &'a Session, thing: &'a TreeItem) -> Option<&'a str> {
    match thing {
        TreeItem::Folder { path, .. } => Some(path.trim_end_matches('/')),
        thing => file_of(thing).and_then(|file| Some(session.locate_file(file)?.1)),
    }
}

/// Returns the file of a row, if it's a note or attachment.
fn file_of(thing: &TreeItem) -> Option<DocId> {
    match thing {
        TreeItem::Note(file) | TreeItem::Attachment(file) => Some(*file),
        TreeItem::Section { .. } | TreeItem::Volume { .. } | TreeItem::Folder { .. } | TreeItem::System { .. } => None,
    }
}

/// Returns the files below a folder.
pub(crate) fn files_below<'a>(volume: &'a Volume, folder: &'a str) -> impl Iterator<Item = (&'a str, DocId)> {
    let from = volume.files.range::<String, _>(folder.to_owned()..);
    from.take_while(move |(path, _)| path.starts_with(folder)).map(|(path, row)| (path.as_str(), row.id))
}

/// Returns the moves that bring a row into a folder of its volume (`a/b/`, or empty for the volume itself).
fn moves(session: &Session, line: &TreeRow, into: &str) -> Vec<(DocId, String)> {
    match &line.thing {
        TreeItem::Note(file) | TreeItem::Attachment(file) => {
            let Some((_, path)) = session.locate_file(*file) else { return Vec::new() };
            let name = path.rsplit('/').next().unwrap_or(path);
            let to = format!("{into}{name}");
            if to == path { Vec::new() } else { vec![(*file, to)] }
        }
        TreeItem::Folder { path, .. } => {
            let to = format!("{into}{}/", line.name);
            let Some(volume) = session.volume(line.volume).filter(|_| to != *path && !into.starts_with(path.as_str()))
            else {
                return Vec::new();
            };
            files_below(volume, path).map(|(file, id)| (id, format!("{to}{}", &file[path.len()..]))).collect()
        }
        TreeItem::Section { .. } | TreeItem::Volume { .. } | TreeItem::System { .. } => Vec::new(),
    }
}

/// Draws the dragged item next to the pointer.
fn ghost(ui: &Ui, at: egui::Pos2, name: &str) {
    let colours = ThemeColors::of(ui);
    let layer = egui::LayerId::new(egui::Order::Tooltip, egui::Id::unique("dragged line"));
    let painter = ui.ctx().layer_painter(layer);
    let galley =
        painter.layout_no_wrap(text::untrusted_text::escape_line(name).into_owned(), theme::small().font, colours.ink);
    let rect = Rect::from_min_size(at + vec2(space::M, space::S), galley.size() + vec2(2.0 * space::S, space::S));
    painter.rect(rect, CONTROL_CORNER, colours.raised, egui::Stroke::new(1.0, colours.line), egui::StrokeKind::Inside);
    painter.galley(rect.min + vec2(space::S, space::XS), galley, colours.ink);
}

/// Shows the menu of a row.
fn menu(session: &Session, line: &TreeRow, response: &egui::Response, actions: &mut Vec<PageAction>) {
    if matches!(line.thing, TreeItem::Section { .. } | TreeItem::System { open: Some(_), .. }) {
        return;
    }
    context_menu(response, "File menu", |ui| {
        let mut item = |ui: &mut Ui, name: &str, action: PageAction| {
            if menu_item(ui, name, None, true) {
                actions.push(action);
            }
        };
        match &line.thing {
            TreeItem::Note(note) => {
                item(ui, "Open in a new tab", PageAction::OpenBeside(*note));
                let is = session.settings().starred.contains(note);
                item(ui, if is { "Remove star" } else { "Star" }, PageAction::Tree(TreeAction::Star(*note)));
                menu_separator(ui);
                let folder =
                    session.locate_file(*note).map_or("", |(_, path)| &path[..path.rfind('/').map_or(0, |at| at + 1)]);
                item(ui, "New note here…", PageAction::Tree(TreeAction::NewNote(line.volume, folder.to_owned())));
                item(ui, "Duplicate", PageAction::Tree(TreeAction::Duplicate(*note)));
                item(ui, "Rename or move…", PageAction::Rename(*note));
                item(ui, "History", PageAction::Tree(TreeAction::History(*note)));
                menu_separator(ui);
                item(ui, "Copy link", PageAction::Tree(TreeAction::CopyLink(*note)));
                item(ui, "Copy path", PageAction::Tree(TreeAction::CopyPath(*note)));
                item(ui, "Show in folder", PageAction::File(*note, FileAction::ShowInFolder));
                menu_separator(ui);
                exports(ui, &ExportScope::Note(*note), &mut item);
                menu_separator(ui);
                item(ui, "Delete", PageAction::Delete(*note));
            }
            TreeItem::Attachment(file) => {
                item(ui, "Open in a new tab", PageAction::OpenBeside(*file));
                item(ui, "Open in default app", PageAction::File(*file, FileAction::OpenOutside));
                item(ui, "Show in folder", PageAction::File(*file, FileAction::ShowInFolder));
                menu_separator(ui);
                item(ui, "Rename or move…", PageAction::Rename(*file));
                item(ui, "Copy path", PageAction::Tree(TreeAction::CopyPath(*file)));
                menu_separator(ui);
                item(ui, "Delete", PageAction::Delete(*file));
            }
            TreeItem::Folder { path, .. } => {
                item(ui, "New note here…", PageAction::Tree(TreeAction::NewNote(line.volume, path.clone())));
                let inner = format!("{path}New folder/");
                item(ui, "New folder here…", PageAction::Tree(TreeAction::NewNote(line.volume, inner)));
                item(ui, "Rename or move…", PageAction::Tree(TreeAction::RenameFolder(line.volume, path.clone())));
                menu_separator(ui);
                exports(ui, &ExportScope::Folder(line.volume, path.clone()), &mut item);
                menu_separator(ui);
                let volume = session.volume(line.volume);
                let files: Vec<DocId> =
                    volume.into_iter().flat_map(|volume| files_below(volume, path)).map(|(_, id)| id).collect();
                let name = match files.len() {
                    1 => "Delete 1 file".to_owned(),
                    count => format!("Delete {} files", ui::text::format_thousands(count)),
                };
                item(ui, &name, PageAction::Do(Command::DeleteFiles { files }));
            }
            TreeItem::Volume { .. } => {
                item(ui, "New note here…", PageAction::Tree(TreeAction::NewNote(line.volume, String::new())));
                let inner = "New folder/".to_owned();
                item(ui, "New folder here…", PageAction::Tree(TreeAction::NewNote(line.volume, inner)));
                menu_separator(ui);
                item(ui, "Trash", PageAction::Run(CommandId::ViewTrash));
                menu_separator(ui);
                exports(ui, &ExportScope::Folder(line.volume, String::new()), &mut item);
                menu_separator(ui);
                item(ui, "Volume settings", PageAction::Tree(TreeAction::VolumeSettings));
                item(ui, "Close volume", PageAction::Tree(TreeAction::CloseVolume(line.volume)));
            }
            TreeItem::System { path, .. } => {
                item(ui, "Open", PageAction::ShowSystemFile(path.clone()));
                item(ui, "Copy to workspace", PageAction::CopySystemFile(path.clone()));
            }
            TreeItem::Section { .. } => {}
        }
    });
}

/// Adds the export items to a menu.
fn exports(ui: &mut Ui, what: &ExportScope, item: &mut impl FnMut(&mut Ui, &str, PageAction)) {
    for (name, kind) in [
        ("Export to HTML…", ExportCommand::Html),
        ("Export to PDF…", ExportCommand::Pdf),
        ("Export to Markdown folder…", ExportCommand::Folder),
        ("Export to Jupyter notebook…", ExportCommand::Notebook),
    ] {
        item(ui, name, PageAction::Tree(TreeAction::Export(kind, what.clone())));
    }
}

/// Draws the tree's placeholder when there's no volume.
pub(crate) fn show_empty_tree(ui: &mut Ui, actions: &mut Vec<PageAction>) {
    let colours = ThemeColors::of(ui);
    let at = ui.cursor().min + vec2(space::L, space::S);
    ui.painter().text(at, Align2::LEFT_TOP, "No folder is open.", theme::small().font, colours.muted);
    let rect = Rect::from_min_size(at + vec2(0.0, 20.0), vec2(120.0, size::MIN_CLICK_HEIGHT));
    if word_button(ui, rect, ui.scope_id().with("open"), "Open a folder", "Open a folder").clicked() {
        actions.push(PageAction::Run(CommandId::FolderOpen));
    }
    let at = rect.left_bottom();
    ui.painter().text(at, Align2::LEFT_TOP, "Or drop one on the window.", theme::caption().font, colours.muted);
}

/// Returns folders and files directly below a prefix. Deeper entries are skipped by range, not iterated.
fn children<'a>(files: &'a BTreeMap<String, FileRow>, prefix: &str) -> (Vec<&'a str>, Vec<(&'a str, &'a FileRow)>) {
    let (mut folders, mut found) = (Vec::new(), Vec::new());
    let mut from = Bound::Included(prefix.to_owned());
    while let Some((path, row)) = files.range::<String, _>((from.as_ref(), Bound::Unbounded)).next() {
        let Some(rest) = path.strip_prefix(prefix) else { break };
        match rest.split_once('/') {
            Some((folder, _)) => {
                folders.push(folder);
                // `0` is the character after `/`.
                from = Bound::Included(format!("{prefix}{folder}0"));
            }
            None => {
                found.push((rest, row));
                from = Bound::Excluded(path.clone());
            }
        }
    }
    (folders, found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::BlobHash;

    #[test]
    fn only_what_is_straight_below() {
        let row = |path: &str| FileRow {
            volume: DocId([0; 16]),
            path: path.to_owned(),
            id: DocId([1; 16]),
            kind: FileKind::Note,
            size: 0,
            mtime: 0,
            hash: BlobHash::of(b""),
            blocks: 0,
            cells: 0,
            heads: Vec::new(),
        };
        let paths = ["a.md", "b/c.md", "b/d/e.md", "b.md", "b-.md", "b0", "z/y/x.md"];
        let files: BTreeMap<String, FileRow> = paths.iter().map(|path| ((*path).to_owned(), row(path))).collect();
        let names = |prefix: &str| {
            let (folders, files) = children(&files, prefix);
            (folders, files.into_iter().map(|(name, _)| name).collect::<Vec<_>>())
        };
        assert_eq!(names(""), (vec!["b", "z"], vec!["a.md", "b-.md", "b.md", "b0"]));
        assert_eq!(names("b/"), (vec!["d"], vec!["c.md"]));
        assert_eq!(shown_name("....md"), "...");
        assert_eq!(shown_name(".md"), ".md");
    }
}
