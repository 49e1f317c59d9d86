//! Links of the open note: backlinks, outgoing links and unlinked mentions. Also contains the broken links page.

use super::related::{RelatedNote, RelatedNotes};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Rect, Response, Sense, Ui, pos2, vec2};
use engine::{Command, Session};
use host::{Driver, UnlinkedMention};
use notebook::actions::PageAction;
use std::cell::OnceCell;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};
use store::DocId;
use text::markdown::dialect;
use text::outline::NoteLink;
use text::untrusted_text;
use ui::empty_state;
use ui::icons;
use ui::text::shown_name;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{self, paint_clipped_text, set_accessible_name, text_button, word_button};

const BACKLINK_ROW_HEIGHT: f32 = size::MIN_CLICK_HEIGHT;

/// A row of the panel.
enum BacklinkRow {
    Title(String),
    /// A note, with the byte at which to open it.
    Note(DocId, String, Option<usize>),
    /// The line around a link, with the link's offset, and its plain text once it's visible.
    Context(DocId, usize, String, OnceCell<String>),
    /// A broken link: its target, and its offset in the note.
    Nowhere(String, usize),
    /// A link to a run or session: its address.
    Run(String),
    Mention(usize),
    /// A related note by meaning: its index.
    Near(usize),
    Words(String),
    Find,
}

/// The backlinks panel, with its rows cached until something changes.
#[derive(Default)]
pub(crate) struct BacklinksPanel {
    made: Option<(DocId, u64, u64)>,
    related: RelatedNotes,
    lines: Vec<BacklinkRow>,
    mentions: Vec<UnlinkedMention>,
    search: Option<(DocId, Option<Receiver<Vec<UnlinkedMention>>>)>,
}

impl BacklinksPanel {
    /// Processes the results of the search for mentions.
    fn receive(&mut self) {
        let Some((_, Some(found))) = &self.search else { return };
        match found.try_recv() {
            Ok(mentions) => {
                self.mentions.extend(mentions.into_iter().map(|mut mention| {
                    mention.line = readable(&mention.line);
                    mention
                }));
                self.made = None;
            }
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => {
                if let Some((_, search)) = &mut self.search {
                    *search = None;
                }
                self.made = None;
            }
        }
    }

    fn refresh(&mut self, ctx: &egui::Context, driver: &Driver, note: DocId) {
        let session = driver.session();
        self.receive();
        self.related.refresh(ctx, driver.search(), note);
        let Some(volume) = session.locate_file(note).and_then(|(volume, _)| session.volume(volume)) else { return };
        let key = (note, volume.links.revision(), self.related.revision);
        if self.search.as_ref().is_some_and(|(searched, _)| *searched != note) {
            (self.search, self.mentions) = (None, Vec::new());
        }
        if self.made == Some(key) {
            return;
        }
        self.made = Some(key);
        self.lines.clear();
        let path = |id: DocId| volume.links.path(id).unwrap_or_default().to_owned();
        let back = volume.links.backlinks(note);
        self.lines.push(BacklinkRow::Title(format!("Backlinks ({})", back.len())));
        if back.is_empty() {
            self.lines.push(BacklinkRow::Words("No other note links here yet.".to_owned()));
        }
        let mut last = None;
        for (from, link) in back {
            if last.replace(from) != Some(from) {
                self.lines.push(BacklinkRow::Note(from, path(from), Some(link.at)));
            }
            self.lines.push(BacklinkRow::Context(from, link.at, link.line.clone(), OnceCell::new()));
        }
        let mut seen: Vec<(String, Option<DocId>, usize)> = Vec::new();
        for (link, to) in volume.links.outgoing_links(note).filter(|(link, _)| !link.target.is_empty()) {
            let name = shown(link);
            if !seen.iter().any(|(known, known_to, _)| (known_to.is_some() && *known_to == to) || *known == name) {
                seen.push((name, to, link.at));
            }
        }
        self.lines.push(BacklinkRow::Title(format!("Outgoing links ({})", seen.len())));
        if seen.is_empty() {
            self.lines.push(BacklinkRow::Words("No links yet. Type [[ to add one.".to_owned()));
        }
        for (name, to, at) in seen {
            self.lines.push(match to {
                Some(to) => BacklinkRow::Note(to, path(to), None),
                None if session.agents().find_by_address(&name).is_some() => BacklinkRow::Run(name),
                None => BacklinkRow::Nowhere(name, at),
            });
        }
        self.lines.push(BacklinkRow::Title("Unlinked mentions".to_owned()));
        match &self.search {
            None => self.lines.push(BacklinkRow::Find),
            Some((_, searching)) => {
                self.lines.extend((0..self.mentions.len()).map(BacklinkRow::Mention));
                let words = match (searching.is_some(), self.mentions.is_empty()) {
                    (true, _) => "Searching the notes…",
                    (false, true) => "No unlinked mentions",
                    (false, false) => "",
                };
                self.lines.extend((!words.is_empty()).then(|| BacklinkRow::Words(words.to_owned())));
            }
        }
        self.lines.push(BacklinkRow::Title("Related notes".to_owned()));
        self.lines.extend((0..self.related.found.len()).map(BacklinkRow::Near));
        if self.related.found.is_empty() {
            let words = match (&self.related.trouble, self.related.is_asking()) {
                (Some(why), _) => why.as_str(),
                (None, true) => "Searching…",
                (None, false) => "No related notes",
            };
            self.lines.push(BacklinkRow::Words(words.to_owned()));
        }
    }

    pub(crate) fn show(&mut self, ui: &mut Ui, driver: &Driver, note: Option<DocId>, actions: &mut Vec<PageAction>) {
        let session = driver.session();
        let Some(note) = note else {
            words(ui, "No note is open.");
            return;
        };
        self.refresh(ui.ctx(), driver, note);
        let (mut find, mut linked) = (false, None);
        // The rows are placed by their height alone.
        ui.spacing_mut().item_spacing.y = 0.0;
        egui::ScrollArea::vertical().id_salt("links").auto_shrink(false).show_rows(
            ui,
            BACKLINK_ROW_HEIGHT,
            self.lines.len() + 1,
            |ui, range| {
                for line in self.lines.iter().skip(range.start).take(range.len()) {
                    match line {
                        BacklinkRow::Title(text) => title(ui, text),
                        BacklinkRow::Words(text) => words(ui, text),
                        BacklinkRow::Note(note, path, at) => {
                            if name(ui, path).clicked() {
                                actions.push(at.map_or(PageAction::Open(*note), |at| PageAction::OpenAt(*note, at)));
                            }
                        }
                        BacklinkRow::Context(note, at, line, plain) => {
                            let plain = plain.get_or_init(|| readable(line));
                            if context(ui, plain, space::L).clicked() {
                                actions.push(PageAction::OpenAt(*note, *at));
                            }
                        }
                        BacklinkRow::Nowhere(target, at) => {
                            if nowhere(ui, target).clicked() {
                                actions.push(PageAction::OpenAt(note, *at));
                            }
                        }
                        BacklinkRow::Run(address) => {
                            if name(ui, address).clicked() {
                                actions.push(PageAction::Follow(address.clone()));
                            }
                        }
                        BacklinkRow::Mention(index) => {
                            if let Some(mention) = self.mentions.get(*index)
                                && self::mention(ui, session, mention, actions)
                            {
                                linked = Some(*index);
                            }
                        }
                        BacklinkRow::Near(index) => {
                            if let Some(near) = self.related.found.get(*index)
                                && near_one(ui, near).clicked()
                            {
                                let at = near.block.and_then(|block| session.note(near.note)?.block_start(block));
                                actions.push(
                                    at.map_or(PageAction::Open(near.note), |at| PageAction::OpenAt(near.note, at)),
                                );
                            }
                        }
                        BacklinkRow::Find => {
                            ui.horizontal(|ui| {
                                ui.add_space(space::L);
                                find = word(ui, "Find them").clicked();
                            });
                        }
                    }
                }
            },
        );
        if find {
            self.search = Some((note, Some(driver.find_unlinked_mentions(note))));
            self.made = None;
        }
        if let Some(mention) = linked.map(|index| self.mentions.remove(index)) {
            actions.push(link_mention(session, note, &mention));
            self.made = None;
        }
        if let Some((_, Some(_))) = &self.search {
            ui.ctx().request_repaint_after(std::time::Duration::from_millis(50));
        }
    }
}

/// Returns the action that turns a mention into a link.
fn link_mention(session: &Session, note: DocId, mention: &UnlinkedMention) -> PageAction {
    let path = session.locate_file(note).map(|(_, path)| path).unwrap_or_default();
    let name = shown_name(path.rsplit('/').next().unwrap_or(path));
    let new = if *name == mention.text { format!("[[{name}]]") } else { format!("[[{name}|{}]]", mention.text) };
    let (note, at, old) = (mention.note, mention.at, mention.text.clone());
    PageAction::Do(Command::Amend { note, at, old, new })
}

fn count(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

fn shown(link: &NoteLink) -> String {
    link.part.as_ref().map_or_else(|| link.path().into_owned(), |part| format!("{}#{part}", link.path()))
}

fn title(ui: &mut Ui, text: &str) {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), BACKLINK_ROW_HEIGHT), Sense::hover());
    let font = theme::inter_font(theme::InterCut::SemiBold, 13.0);
    let at = rect.left_center() + vec2(space::L, 2.0);
    ui.painter().text(at, Align2::LEFT_CENTER, text, font, ThemeColors::of(ui).ink);
    set_accessible_name(&response, Role::Heading, text);
}

fn words(ui: &mut Ui, text: &str) {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), BACKLINK_ROW_HEIGHT), Sense::hover());
    let at = pos2(rect.left() + space::L, rect.center().y - 10.0);
    paint_clipped_text(ui, at, rect.width() - 2.0 * space::L, text, &theme::small(), ThemeColors::of(ui).muted);
    set_accessible_name(&response, Role::Label, text);
}

fn word(ui: &mut Ui, text: &str) -> Response {
    let (rect, _) = ui.allocate_exact_size(vec2(90.0, BACKLINK_ROW_HEIGHT), Sense::hover());
    word_button(ui, rect, ui.scope_id().with(text), text, text)
}

/// Draws the background of a clickable row. Returns its text area and response.
fn clickable(ui: &mut Ui, label: &str, inset: f32) -> (Rect, Response) {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), BACKLINK_ROW_HEIGHT), Sense::click());
    let rect = rect.shrink2(vec2(space::S, 0.0));
    if response.hovered() {
        ui.painter().rect_filled(rect, CONTROL_CORNER, ThemeColors::of(ui).hover_color(ThemeColors::of(ui).paper));
    }
    widgets::paint_focus_ring(ui, &response, CONTROL_CORNER);
    set_accessible_name(&response, Role::Link, label);
    (rect.with_min_x(rect.left() + space::S + inset).with_max_x(rect.right() - space::S), response)
}

/// Draws a note's name, followed by its folder.
fn name(ui: &mut Ui, path: &str) -> Response {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let name = shown_name(file);
    let (rect, response) = clickable(ui, &format!("Open {name}"), 0.0);
    let colours = ThemeColors::of(ui);
    let at = pos2(rect.left(), rect.center().y - 10.0);
    let width = paint_clipped_text(ui, at, rect.width(), name, &theme::small(), colours.accent);
    let rest = rect.width() - width - space::S;
    if rest > 40.0 && !folder.is_empty() {
        let at = pos2(rect.left() + width + space::S, rect.center().y - 8.0);
        paint_clipped_text(ui, at, rest, &folder.replace('/', " / "), &theme::caption(), colours.muted);
    }
    response
}

/// Draws a related note, followed by the most similar text.
fn near_one(ui: &mut Ui, near: &RelatedNote) -> Response {
    let name = shown_name(near.path.rsplit('/').next().unwrap_or(&near.path));
    let (rect, response) = clickable(ui, &format!("Near: {name}"), 0.0);
    let colours = ThemeColors::of(ui);
    let at = pos2(rect.left(), rect.center().y - 10.0);
    let width = paint_clipped_text(ui, at, rect.width() * 0.5, name, &theme::small(), colours.accent);
    let at = pos2(rect.left() + width + space::S, rect.center().y - 8.0);
    paint_clipped_text(ui, at, rect.right() - at.x, &near.text, &theme::caption(), colours.muted);
    let how = if near.cosine >= 0.5 { "close" } else { "related" };
    let all = format!("{}\n{how} in meaning ({:.2}): {}", near.path, near.cosine, near.text);
    response.on_hover_text(untrusted_text::escape_block(&all).into_owned())
}

/// Returns a line of a note without Markdown syntax; the line itself if there's nothing else in it.
fn readable(line: &str) -> String {
    let plain = dialect::plain_text(line);
    if plain.trim().is_empty() { line.to_owned() } else { plain }
}

/// Draws a line of a note, as plain text.
fn context(ui: &mut Ui, words: &str, inset: f32) -> Response {
    let (rect, response) = clickable(ui, words, inset);
    let at = pos2(rect.left(), rect.center().y - 8.0);
    paint_clipped_text(ui, at, rect.width(), words, &theme::caption(), ThemeColors::of(ui).muted);
    response.on_hover_text(untrusted_text::escape_block(words).into_owned())
}

fn nowhere(ui: &mut Ui, target: &str) -> Response {
    let (rect, response) = clickable(ui, &format!("{target} leads nowhere"), 0.0);
    let colours = ThemeColors::of(ui);
    let middle = rect.center().y;
    ui.painter().text(
        pos2(rect.left(), middle),
        Align2::LEFT_CENTER,
        icons::WARNING,
        theme::icon_font(13.0),
        colours.warn,
    );
    let at = pos2(rect.left() + 20.0, middle - 10.0);
    let width = paint_clipped_text(ui, at, rect.width() - 110.0, target, &theme::small(), colours.ink);
    let at = pos2(at.x + width + space::S, middle - 8.0);
    paint_clipped_text(ui, at, 90.0, "leads nowhere", &theme::caption(), colours.warn);
    response
}

/// Draws a mention and the button that links it. Returns whether the button was clicked.
fn mention(ui: &mut Ui, session: &Session, mention: &UnlinkedMention, actions: &mut Vec<PageAction>) -> bool {
    let path = session.locate_file(mention.note).map(|(_, path)| path).unwrap_or_default();
    let name = shown_name(path.rsplit('/').next().unwrap_or(path));
    let (rect, response) = clickable(ui, &format!("{name}: {}", mention.line), 0.0);
    let colours = ThemeColors::of(ui);
    let at = pos2(rect.left(), rect.center().y - 10.0);
    let room = rect.width() - 60.0;
    let width = paint_clipped_text(ui, at, room * 0.4, name, &theme::small(), colours.ink);
    let at = pos2(at.x + width + space::S, rect.center().y - 8.0);
    paint_clipped_text(ui, at, room - width - space::S, &mention.line, &theme::caption(), colours.muted);
    let button = rect.with_min_x(rect.right() - 48.0);
    let id = ui.scope_id().with(("link it", mention.note, mention.at));
    let linked = word_button(ui, button, id, "Link it", &format!("Link it in {name}")).clicked();
    if response.on_hover_text(untrusted_text::escape_block(&mention.line).into_owned()).clicked() && !linked {
        actions.push(PageAction::OpenAt(mention.note, mention.at));
    }
    linked
}

/// Time per frame spent on looking up links.
const BACKLINK_LOOKUP_BUDGET: Duration = Duration::from_millis(4);

/// The page of broken links, as far as they have been looked up.
#[derive(Default)]
pub(crate) struct BrokenLinksPage {
    made: Option<Vec<u64>>,
    left: Vec<(DocId, DocId)>,
    rows: Vec<(DocId, String, String, usize, String)>,
}

impl BrokenLinksPage {
    fn gather(&mut self, ui: &Ui, session: &Session) {
        let runs = session.agents().runs().count() + session.agents().sessions().count();
        let links = session.volumes().map(|volume| volume.links.revision());
        let state: Vec<u64> = links.chain([runs as u64]).collect();
        if self.made.as_ref() != Some(&state) {
            self.made = Some(state);
            self.rows.clear();
            self.left.clear();
            for volume in session.volumes() {
                self.left.extend(volume.files.values().rev().map(|row| (volume.id, row.id)));
            }
        }
        let begun = Instant::now();
        while let Some((volume, note)) = self.left.pop() {
            let Some(volume) = session.volume(volume) else { continue };
            let agents = session.agents();
            let broken = volume.links.outgoing_links(note).filter(|(link, to)| {
                // A link to a run isn't a file link.
                to.is_none() && agents.find_by_address(&link.target).is_none()
            });
            self.rows.extend(broken.map(|(link, _)| {
                let path = volume.links.path(note).unwrap_or_default().to_owned();
                (note, path, shown(link), link.at, readable(&link.line))
            }));
            if begun.elapsed() > BACKLINK_LOOKUP_BUDGET {
                ui.ctx().request_repaint();
                return;
            }
        }
    }

    pub(crate) fn show(&mut self, ui: &mut Ui, session: &Session, actions: &mut Vec<PageAction>) {
        self.gather(ui, session);
        let rows = &self.rows;
        if rows.is_empty() {
            let text = if self.left.is_empty() { "No broken links" } else { "Checking the links…" };
            empty_state::show_message(ui, text, None, "Links to notes and files that don't exist are listed here.");
            return;
        }
        ui.add_space(space::M);
        words(ui, &format!("{} to files that don't exist. Click one to go to it.", count(rows.len(), "link")));
        ui.add_space(space::S);
        ui.spacing_mut().item_spacing.y = 0.0;
        egui::ScrollArea::vertical().id_salt("broken").auto_shrink(false).show_rows(
            ui,
            BACKLINK_ROW_HEIGHT,
            rows.len(),
            |ui, range| {
                for (note, path, target, at, line) in rows.iter().skip(range.start).take(range.len()) {
                    let (rect, response) = clickable(ui, &format!("{path}: {target}"), 0.0);
                    let colours = ThemeColors::of(ui);
                    let y = rect.center().y - 10.0;
                    let third = rect.width() / 3.0;
                    paint_clipped_text(
                        ui,
                        pos2(rect.left(), y),
                        third - space::L,
                        target,
                        &theme::small(),
                        colours.warn,
                    );
                    let file = shown_name(path);
                    paint_clipped_text(
                        ui,
                        pos2(rect.left() + third, y),
                        third - space::L,
                        file,
                        &theme::small(),
                        colours.ink,
                    );
                    paint_clipped_text(
                        ui,
                        pos2(rect.left() + 2.0 * third, y + 2.0),
                        third,
                        line,
                        &theme::caption(),
                        colours.muted,
                    );
                    if response.on_hover_text(untrusted_text::escape_block(line).into_owned()).clicked() {
                        actions.push(PageAction::OpenAt(*note, *at));
                    }
                }
            },
        );
    }
}

/// Draws a text button.
pub(crate) fn button(ui: &mut Ui, text: &str) -> Response {
    text_button(ui, text, false)
}
