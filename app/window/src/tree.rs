//! The tree at the left: starred and recent notes, then volumes, folders, notes. Flattened when something changed,
//! drawn only where it is in sight. Lines can be dragged into folders; each has a menu.

use super::commands;
use super::exports::Exporting;
use super::page::Action;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Rect, Sense, Ui, WidgetInfo, pos2, vec2};
use engine::{Command, Scanning, Session, Settings, Volume};
use export::What;
use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;
use store::disk::FileRow;
use store::{DocId, FileKind};
use ui::controls::word_button;
use ui::controls::{self, clipped, icon_button};
use ui::icons;
use ui::tokens::{self, CORNER, Colours, size, space};

const LINE: f32 = size::HIT;
const STEP: f32 = space::L;
/// Recent notes that are listed.
const RECENT: usize = 7;
/// While a scan runs, the tree is made anew at most this often, in seconds.
const EVERY: f64 = 0.25;

/// What a line stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Thing {
    /// Starred or recent notes.
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
}

#[derive(Clone, Debug)]
struct Line {
    volume: DocId,
    depth: u16,
    name: String,
    thing: Thing,
}

/// Of each volume its id, revision and whether it is known; how often something was folded; starred and recent notes.
type Stamp = (Vec<(DocId, u64, bool)>, u64, Vec<DocId>, Vec<DocId>);

/// What a menu of the tree asks for, beyond commands of the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// A new note below this path of a volume.
    NewNote(DocId, String),
    /// Another name or place for a folder of a volume.
    RenameFolder(DocId, String),
    /// A copy beside it.
    Duplicate(DocId),
    /// To the starred notes, or away from them.
    Star(DocId),
    /// A link to it, for the clipboard.
    CopyLink(DocId),
    /// Where it lies, for the clipboard.
    CopyPath(DocId),
    /// How it was.
    History(DocId),
    /// An end to files of the trash.
    Discard(Vec<DocId>),
    /// To a new place, as HTML, PDF or Markdown.
    Export(Exporting, What),
}

/// The tree's state: what is folded, and the lines as they were made last.
#[derive(Default)]
pub(super) struct Tree {
    folded: HashSet<DocId>,
    open: HashSet<(DocId, String)>,
    recent_open: bool,
    lines: Vec<Line>,
    /// What the lines were made of.
    made: Option<Stamp>,
    made_at: f64,
    changes: u64,
    /// The note that was shown to be open last.
    marked: Option<DocId>,
    reveal: bool,
}

impl Tree {
    /// The tree as it was folded last.
    pub(super) fn of(settings: &Settings) -> Tree {
        let open = settings.unfolded.iter().cloned().collect();
        let folded = settings.folded.iter().copied().collect();
        Tree { open, folded, recent_open: settings.recent_open, ..Tree::default() }
    }

    /// Takes over what the settings say of it.
    pub(super) fn set(&mut self, settings: &Settings) {
        let Tree { folded, open, recent_open, .. } = Tree::of(settings);
        if (&self.folded, &self.open, self.recent_open) != (&folded, &open, recent_open) {
            (self.folded, self.open, self.recent_open) = (folded, open, recent_open);
            self.changes += 1;
        }
    }

    /// Has the settings remember what is folded.
    pub(super) fn put(&self, settings: &mut Settings) {
        settings.recent_open = self.recent_open;
        settings.folded = self.folded.iter().copied().collect();
        settings.folded.sort_unstable();
        settings.unfolded = self.open.iter().cloned().collect();
        settings.unfolded.sort_unstable();
    }

    /// Draws the tree.
    pub(super) fn show(&mut self, ui: &mut Ui, session: &Session, note: Option<DocId>, actions: &mut Vec<Action>) {
        self.head(ui, actions);
        if self.marked != note {
            self.marked = note;
            self.reveal_note(session);
        }
        self.refresh(ui, session);
        if self.lines.is_empty() {
            return;
        }
        let reveal = std::mem::take(&mut self.reveal);
        let marked = self.lines.iter().rposition(|line| matches!(line.thing, Thing::Note(id) if Some(id) == note));
        let mut toggled = None;
        egui::ScrollArea::vertical().id_salt("tree").auto_shrink(false).show_viewport(ui, |ui, viewport| {
            #[allow(clippy::cast_precision_loss, reason = "a count of lines")]
            let top_of = |line: usize| line as f32 * LINE;
            ui.set_height(top_of(self.lines.len()) + space::XL);
            let page = ui.max_rect();
            if let Some(line) = marked.filter(|_| reveal) {
                let rect = Rect::from_min_size(pos2(page.left(), page.top() + top_of(line)), vec2(1.0, LINE));
                ui.scroll_to_rect(rect, None);
            }
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a line in sight")]
            let (first, last) =
                ((viewport.top() / LINE).max(0.0) as usize, (viewport.bottom() / LINE).ceil().max(0.0) as usize);
            for index in first..last.min(self.lines.len()) {
                let rect = Rect::from_min_size(pos2(page.left(), page.top() + top_of(index)), vec2(page.width(), LINE));
                if self.line(ui, session, index, rect, note, actions) {
                    toggled = Some(index);
                }
            }
        });
        if let Some(line) = toggled.and_then(|index| self.lines.get(index).cloned()) {
            self.toggle(&line);
            ui.ctx().request_repaint();
        }
    }

    fn head(&self, ui: &mut Ui, actions: &mut Vec<Action>) {
        let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), size::STRIP), Sense::hover());
        let colours = Colours::of(ui);
        let at = rect.left_center() + vec2(space::L, 0.0);
        let font = tokens::inter(tokens::Cut::SemiBold, 13.0);
        ui.painter().text(at, Align2::LEFT_CENTER, "Notes", font, colours.ink);
        let buttons = Rect::from_min_max(pos2(rect.right() - 72.0, rect.top() + space::XS), rect.max);
        let mut child = ui
            .new_child(egui::UiBuilder::new().max_rect(buttons).layout(egui::Layout::left_to_right(egui::Align::Min)));
        child.spacing_mut().item_spacing.x = space::XS;
        for (icon, name, id) in
            [(icons::FOLDER_PLUS, "Open folder as volume", "folder.open"), (icons::FILE_PLUS, "New note", "note.new")]
        {
            if icon_button(&mut child, icon, name, commands::key_of(id)).clicked() {
                actions.push(Action::Run(id));
            }
        }
    }

    /// Makes the lines anew if something changed.
    fn refresh(&mut self, ui: &Ui, session: &Session) {
        let state: Vec<(DocId, u64, bool)> =
            session.volumes().map(|volume| (volume.id, volume.revision, volume.known)).collect();
        let (starred, recent) = (session.settings().starred.clone(), session.settings().recent.clone());
        let stamp: Stamp = (state, self.changes, starred, recent);
        if self.made.as_ref() == Some(&stamp) {
            return;
        }
        let now = ui.input(|input| input.time);
        let scans = session.volumes().any(|volume| matches!(volume.scanning, Scanning::Running { .. }));
        let only_files =
            self.made.as_ref().is_some_and(|made| (made.1, &made.2, &made.3) == (stamp.1, &stamp.2, &stamp.3));
        if scans && only_files && now - self.made_at < EVERY {
            ui.ctx().request_repaint_after(std::time::Duration::from_secs_f64(EVERY));
            return;
        }
        let (starred, recent) = (stamp.2.clone(), stamp.3.clone());
        self.made = Some(stamp);
        self.made_at = now;
        self.lines.clear();
        self.section(session, "Starred", true, &starred);
        if recent.len() > 1 {
            let recent: Vec<DocId> = recent.into_iter().take(RECENT).collect();
            self.section(session, "Recent", self.recent_open, &recent);
        }
        let mut volumes: Vec<&Volume> = session.volumes().collect();
        volumes.sort_by_key(|volume| volume.name.to_lowercase());
        for volume in volumes {
            let open = !self.folded.contains(&volume.id);
            let name = volume.name.clone();
            self.lines.push(Line { volume: volume.id, depth: 0, name, thing: Thing::Volume { open } });
            if open {
                self.folder(volume, "", 1);
            }
        }
    }

    /// A heading and the notes below it, where there are any.
    fn section(&mut self, session: &Session, name: &str, open: bool, notes: &[DocId]) {
        let places = notes.iter().filter_map(|note| Some((*note, session.place(*note)?)));
        let found: Vec<Line> = places
            .map(|(note, (volume, path))| {
                let name = shown_name(path.rsplit('/').next().unwrap_or(path)).to_owned();
                Line { volume, depth: 1, name, thing: Thing::Note(note) }
            })
            .collect();
        let Some(volume) = found.first().map(|line| line.volume) else { return };
        self.lines.push(Line { volume, depth: 0, name: name.to_owned(), thing: Thing::Section { open } });
        if open {
            self.lines.extend(found);
        }
    }

    /// The lines of one folder: folders first, then files, each by name.
    fn folder(&mut self, volume: &Volume, prefix: &str, depth: u16) {
        let (mut folders, mut files) = children(&volume.files, prefix);
        folders.sort_by_key(|name| name.to_lowercase());
        files.sort_by_key(|(name, _)| name.to_lowercase());
        for name in folders {
            let path = format!("{prefix}{name}/");
            let open = self.open.contains(&(volume.id, path.clone()));
            let thing = Thing::Folder { path: path.clone(), open };
            self.lines.push(Line { volume: volume.id, depth, name: name.to_owned(), thing });
            if open {
                self.folder(volume, &path, depth + 1);
            }
        }
        for (name, row) in files {
            let (name, thing) = match row.kind {
                FileKind::Note | FileKind::Collection | FileKind::Script => (shown_name(name), Thing::Note(row.id)),
                FileKind::Attachment => (name, Thing::Attachment(row.id)),
            };
            self.lines.push(Line { volume: volume.id, depth, name: name.to_owned(), thing });
        }
    }

    fn toggle(&mut self, line: &Line) {
        match &line.thing {
            Thing::Section { .. } => {
                if line.name == "Recent" {
                    self.recent_open = !self.recent_open;
                }
            }
            Thing::Volume { .. } => {
                if !self.folded.remove(&line.volume) {
                    self.folded.insert(line.volume);
                }
            }
            Thing::Folder { path, .. } => {
                let key = (line.volume, path.clone());
                if !self.open.remove(&key) {
                    self.open.insert(key);
                }
            }
            Thing::Note(_) | Thing::Attachment(_) => {}
        }
        self.changes += 1;
    }

    /// Unfolds what is around the marked note.
    fn reveal_note(&mut self, session: &Session) {
        let Some((volume, path)) = self.marked.and_then(|note| session.place(note)) else { return };
        self.reveal = true;
        self.changes += 1;
        self.folded.remove(&volume);
        for (at, _) in path.match_indices('/') {
            self.open.insert((volume, path[..=at].to_owned()));
        }
    }

    /// Draws a line. Whether it shall be folded or unfolded.
    fn line(
        &self,
        ui: &Ui,
        session: &Session,
        index: usize,
        rect: Rect,
        note: Option<DocId>,
        actions: &mut Vec<Action>,
    ) -> bool {
        let Some(line) = self.lines.get(index) else { return false };
        let colours = Colours::of(ui);
        let starred = self.lines.iter().position(|line| matches!(line.thing, Thing::Volume { .. })).unwrap_or(0);
        let id = match &line.thing {
            // A note may stand among the starred ones, too.
            Thing::Note(note) => ui.scope_id().with((note, index < starred, index.min(starred))),
            thing => ui.scope_id().with((line.volume, &line.name, line.depth, file_of(thing).is_some(), index)),
        };
        let rect = rect.shrink2(vec2(space::S, 0.0));
        let response = ui.interact(rect, id, Sense::click_and_drag());
        let marked = index >= starred && matches!(line.thing, Thing::Note(id) if Some(id) == note);
        self.carry(ui, session, line, rect, &response, actions);
        menu(session, line, &response, actions);
        response.widget_info(|| WidgetInfo::selected(Role::TreeItem, true, marked, &line.name));
        if marked {
            ui.painter().rect_filled(rect, CORNER, colours.accent_ground);
            let bar = Rect::from_min_size(rect.left_top() + vec2(0.0, 6.0), vec2(3.0, LINE - 12.0));
            ui.painter().rect_filled(bar, 2.0, colours.accent);
        } else if response.hovered() {
            ui.painter().rect_filled(rect, CORNER, colours.hover(colours.paper));
        }
        controls::ring(ui, &response, CORNER);
        let middle = rect.center().y;
        let mut x = rect.left() + space::XS + STEP * f32::from(line.depth.min(12));
        let icon = |x: f32, icon: &str, points: f32| {
            ui.painter().text(pos2(x + 7.0, middle), Align2::CENTER_CENTER, icon, tokens::icon(points), colours.muted);
        };
        match &line.thing {
            Thing::Section { open } | Thing::Volume { open } | Thing::Folder { open, .. } => {
                icon(x, if *open { icons::CARET_DOWN } else { icons::CARET_RIGHT }, 12.0);
                ui.ctx().accesskit_node_builder(id, |node| node.set_expanded(*open));
            }
            Thing::Attachment(_) => icon(x, icons::PAPERCLIP, 13.0),
            Thing::Note(_) if collection::is_collection(&line.name) => icon(x, icons::TABLE, 13.0),
            Thing::Note(_) => {}
        }
        x += STEP + 2.0;
        let mut right = rect.right() - space::S;
        if let (Thing::Volume { .. }, Some(volume)) = (&line.thing, session.volume(line.volume)) {
            right -= self.about_volume(ui, volume, pos2(right, middle), &response);
        }
        let cut = match line.thing {
            Thing::Volume { .. } | Thing::Section { .. } => tokens::Cut::SemiBold,
            _ if marked => tokens::Cut::SemiBold,
            _ => tokens::Cut::Regular,
        };
        let muted = matches!(line.thing, Thing::Attachment(_) | Thing::Section { .. });
        let colour = if muted { colours.muted } else { colours.ink };
        let style = tokens::Type { font: tokens::inter(cut, 13.0), line: 20.0 };
        let shown = line.name.strip_suffix(".base").unwrap_or(&line.name);
        clipped(ui, pos2(x, middle - 10.0), right - x, shown, &style, colour);
        let beside = response.middle_clicked() || ui.input(|input| input.modifiers.command);
        if !response.clicked() && !response.middle_clicked() {
            return false;
        }
        match &line.thing {
            Thing::Note(note) if beside => actions.push(Action::OpenBeside(*note)),
            Thing::Section { .. } | Thing::Volume { .. } | Thing::Folder { .. } => return true,
            Thing::Note(note) => actions.push(Action::Open(*note)),
            Thing::Attachment(_) => {
                actions.push(Action::Say(format!(
                    "An attachment stays as it is; open it with its own program: {}",
                    line.name
                )));
            }
        }
        false
    }

    /// A line that is dragged, or onto which one is dropped.
    fn carry(
        &self,
        ui: &Ui,
        session: &Session,
        line: &Line,
        rect: Rect,
        response: &egui::Response,
        actions: &mut Vec<Action>,
    ) {
        let colours = Colours::of(ui);
        if !matches!(line.thing, Thing::Section { .. } | Thing::Volume { .. }) {
            response.dnd_set_drag_payload(line.clone());
            if response.dragged()
                && let Some(at) = ui.input(|input| input.pointer.latest_pos())
            {
                ghost(ui, at, &line.name);
            }
        }
        let into = match &line.thing {
            Thing::Volume { .. } => String::new(),
            Thing::Folder { path, .. } => path.clone(),
            Thing::Section { .. } | Thing::Note(_) | Thing::Attachment(_) => return,
        };
        let fits = |dragged: &Line| dragged.volume == line.volume && !moves(session, dragged, &into).is_empty();
        if response.dnd_hover_payload::<Line>().is_some_and(|dragged| fits(&dragged)) {
            let stroke = egui::Stroke::new(size::RING, colours.accent);
            ui.painter().rect_stroke(rect, CORNER, stroke, egui::StrokeKind::Inside);
        }
        if let Some(dragged) = response.dnd_release_payload::<Line>() {
            let moves = moves(session, &dragged, &into);
            if dragged.volume != line.volume {
                actions.push(Action::Say("A note moves inside its volume only.".to_owned()));
            } else if !moves.is_empty() {
                actions.push(Action::Do(Command::MoveFiles { moves }));
            }
        }
    }

    /// How a volume's scan goes, or what is wrong with it; gives the width.
    fn about_volume(&self, ui: &Ui, volume: &Volume, at: egui::Pos2, response: &egui::Response) -> f32 {
        let colours = Colours::of(ui);
        if let Some(trouble) = &volume.trouble {
            ui.painter().text(at, Align2::RIGHT_CENTER, icons::WARNING, tokens::icon(14.0), colours.warn);
            response.clone().on_hover_text(trouble);
            return space::XL;
        }
        let text = match volume.scanning {
            Scanning::Running { seen, .. } if seen > 0 => format!("{seen} files…"),
            Scanning::Running { .. } if volume.files.is_empty() => "looking…".to_owned(),
            Scanning::Running { .. } | Scanning::Idle => return 0.0,
        };
        let rect = ui.painter().text(at, Align2::RIGHT_CENTER, text, tokens::tabular(12.0), colours.muted);
        rect.width() + space::S
    }
}

/// The file that a line stands for.
fn file_of(thing: &Thing) -> Option<DocId> {
    match thing {
        Thing::Note(file) | Thing::Attachment(file) => Some(*file),
        Thing::Section { .. } | Thing::Volume { .. } | Thing::Folder { .. } => None,
    }
}

/// The files below a folder.
pub(super) fn below<'a>(volume: &'a Volume, folder: &'a str) -> impl Iterator<Item = (&'a str, DocId)> {
    let from = volume.files.range::<String, _>(folder.to_owned()..);
    from.take_while(move |(path, _)| path.starts_with(folder)).map(|(path, row)| (path.as_str(), row.id))
}

/// The moves that bring a line into a folder of its volume (`a/b/`, or nothing for the volume itself).
fn moves(session: &Session, line: &Line, into: &str) -> Vec<(DocId, String)> {
    match &line.thing {
        Thing::Note(file) | Thing::Attachment(file) => {
            let Some((_, path)) = session.place(*file) else { return Vec::new() };
            let name = path.rsplit('/').next().unwrap_or(path);
            let to = format!("{into}{name}");
            if to == path { Vec::new() } else { vec![(*file, to)] }
        }
        Thing::Folder { path, .. } => {
            let to = format!("{into}{}/", line.name);
            let Some(volume) = session.volume(line.volume).filter(|_| to != *path && !into.starts_with(path.as_str()))
            else {
                return Vec::new();
            };
            below(volume, path).map(|(file, id)| (id, format!("{to}{}", &file[path.len()..]))).collect()
        }
        Thing::Section { .. } | Thing::Volume { .. } => Vec::new(),
    }
}

/// What is dragged, beside the pointer.
fn ghost(ui: &Ui, at: egui::Pos2, name: &str) {
    let colours = Colours::of(ui);
    let layer = egui::LayerId::new(egui::Order::Tooltip, egui::Id::unique("dragged line"));
    let painter = ui.ctx().layer_painter(layer);
    let galley = painter.layout_no_wrap(name.to_owned(), tokens::small().font, colours.ink);
    let rect = Rect::from_min_size(at + vec2(space::M, space::S), galley.size() + vec2(2.0 * space::S, space::S));
    painter.rect(rect, CORNER, colours.raised, egui::Stroke::new(1.0, colours.line), egui::StrokeKind::Inside);
    painter.galley(rect.min + vec2(space::S, space::XS), galley, colours.ink);
}

/// The menu of a line.
fn menu(session: &Session, line: &Line, response: &egui::Response, actions: &mut Vec<Action>) {
    if matches!(line.thing, Thing::Section { .. }) {
        return;
    }
    response.context_menu(|ui| {
        ui.set_min_width(180.0);
        let mut chosen = None;
        let mut item = |ui: &mut Ui, name: &str, action: Action| {
            if ui.add(egui::Button::new(name).frame(false)).clicked() {
                chosen = Some(action);
            }
        };
        match &line.thing {
            Thing::Note(note) => {
                item(ui, "Open in a new tab", Action::OpenBeside(*note));
                let is = session.settings().starred.contains(note);
                item(ui, if is { "Take the star away" } else { "Star" }, Action::Tree(Wish::Star(*note)));
                ui.separator();
                let folder =
                    session.place(*note).map_or("", |(_, path)| &path[..path.rfind('/').map_or(0, |at| at + 1)]);
                item(ui, "New note here…", Action::Tree(Wish::NewNote(line.volume, folder.to_owned())));
                item(ui, "Duplicate", Action::Tree(Wish::Duplicate(*note)));
                item(ui, "Rename or move", Action::Rename(*note));
                item(ui, "History", Action::Tree(Wish::History(*note)));
                ui.separator();
                item(ui, "Copy link", Action::Tree(Wish::CopyLink(*note)));
                item(ui, "Copy path", Action::Tree(Wish::CopyPath(*note)));
                ui.separator();
                exports(ui, &What::Note(*note), &mut item);
                ui.separator();
                item(ui, "Delete", Action::Delete(*note));
            }
            Thing::Attachment(file) => {
                item(ui, "Rename or move", Action::Rename(*file));
                item(ui, "Copy path", Action::Tree(Wish::CopyPath(*file)));
                ui.separator();
                item(ui, "Delete", Action::Delete(*file));
            }
            Thing::Folder { path, .. } => {
                item(ui, "New note here…", Action::Tree(Wish::NewNote(line.volume, path.clone())));
                let inner = format!("{path}New folder/");
                item(ui, "New folder here…", Action::Tree(Wish::NewNote(line.volume, inner)));
                item(ui, "Rename or move…", Action::Tree(Wish::RenameFolder(line.volume, path.clone())));
                ui.separator();
                exports(ui, &What::Folder(line.volume, path.clone()), &mut item);
                ui.separator();
                let volume = session.volume(line.volume);
                let files: Vec<DocId> =
                    volume.into_iter().flat_map(|volume| below(volume, path)).map(|(_, id)| id).collect();
                let name = format!("Delete {} files", files.len());
                item(ui, &name, Action::Do(Command::DeleteFiles { files }));
            }
            Thing::Volume { .. } => {
                item(ui, "New note here…", Action::Tree(Wish::NewNote(line.volume, String::new())));
                item(ui, "New folder here…", Action::Tree(Wish::NewNote(line.volume, "New folder/".to_owned())));
                ui.separator();
                item(ui, "Trash", Action::Run("view.trash"));
                ui.separator();
                exports(ui, &What::Folder(line.volume, String::new()), &mut item);
                ui.separator();
                item(ui, "Close volume", Action::Do(Command::CloseVolume { volume: line.volume }));
            }
            Thing::Section { .. } => {}
        }
        if let Some(action) = chosen {
            actions.push(action);
            ui.close();
        }
    });
}

/// The items of a menu that export something.
fn exports(ui: &mut Ui, what: &What, item: &mut impl FnMut(&mut Ui, &str, Action)) {
    for (name, kind) in [
        ("Export to HTML…", Exporting::Html),
        ("Export to PDF…", Exporting::Pdf),
        ("Export to Markdown folder…", Exporting::Folder),
    ] {
        item(ui, name, Action::Tree(Wish::Export(kind, what.clone())));
    }
}

/// What the workspace shows where there is no volume yet.
pub(super) fn empty(ui: &mut Ui, actions: &mut Vec<Action>) {
    let colours = Colours::of(ui);
    let at = ui.cursor().min + vec2(space::L, space::S);
    ui.painter().text(at, Align2::LEFT_TOP, "No folder is open.", tokens::small().font, colours.muted);
    let rect = Rect::from_min_size(at + vec2(0.0, 20.0), vec2(120.0, size::HIT));
    if word_button(ui, rect, ui.scope_id().with("open"), "Open a folder", "Open a folder").clicked() {
        actions.push(Action::Run("folder.open"));
    }
}

/// A note's name as it is shown: without the ending.
pub(super) fn shown_name(file: &str) -> &str {
    let short = file.strip_suffix(".md").or_else(|| file.strip_suffix(".markdown"));
    short.filter(|short| !short.is_empty()).unwrap_or(file)
}

/// The folders and files straight below a prefix. What lies deeper is stepped over, not walked through.
fn children<'a>(files: &'a BTreeMap<String, FileRow>, prefix: &str) -> (Vec<&'a str>, Vec<(&'a str, &'a FileRow)>) {
    let (mut folders, mut found) = (Vec::new(), Vec::new());
    let mut from = Bound::Included(prefix.to_owned());
    while let Some((path, row)) = files.range::<String, _>((from.as_ref(), Bound::Unbounded)).next() {
        let Some(rest) = path.strip_prefix(prefix) else { break };
        match rest.split_once('/') {
            Some((folder, _)) => {
                folders.push(folder);
                // `0` is what comes right after `/`.
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
