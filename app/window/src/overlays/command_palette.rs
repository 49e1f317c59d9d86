//! The command palette and the quick switcher: a query field with the best matches below.
//!
//! They only report the choice. The caller acts on it.

use super::command_aliases::command_aliases;
use crate::panels::row_details::file_title;
use crate::shell::commands::{self, ShortcutTable, WindowCommand};
use editor::vim::ex;
use eframe::egui;
use egui::accesskit::Role;
use egui::text::LayoutJob;
use egui::{Align2, Key, Rect, Sense, Ui, pos2, vec2};
use engine::commands::CommandId;
use engine::{ENVIRONMENT_KERNEL, KernelSpec, SCIENCE_KERNEL, Session};
use host::science_pack::{PACK_WHEEL_BYTES, PackStatus, megabytes};
use std::path::Path;
use store::DocId;
use text::untrusted_text;
use ui::fuzzy::{FuzzyCandidate, query_chars};
use ui::picker::{self, ListPicker};
use ui::theme::{self, ThemeColors, space};
use ui::widgets::set_accessible_name;

/// Maximum number of listed matches. Typing more finds the rest.
const MAX_PALETTE_RESULTS: usize = 100;
/// Number of visible rows.
const VISIBLE_PALETTE_ROWS: f32 = 9.0;
const PALETTE_ROW_HEIGHT: f32 = 40.0;
/// Maximum number of headings in the quick switcher, for all notes together.
const MAX_LISTED_HEADINGS: usize = 10_000;
/// How much lower a heading's score is than a note's.
const HEADING_PENALTY: i32 = 6;
/// How much higher a match in a command's title scores than one in an alias.
const COMMAND_TITLE_BONUS: i32 = 6;
/// How much lower a match in a command's help scores.
const COMMAND_HELP_MALUS: i32 = 40;
/// Minimum number of typed characters for a search in commands' help.
const MIN_HELP_QUERY_CHARS: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PaletteChoice {
    Command(CommandId),
    Note(DocId),
    /// A heading of a note, with its byte offset.
    Heading(DocId, usize),
    /// Create a note with this name.
    New(String),
    /// Search for these words.
    Search(String),
    /// Insert this template into the open note.
    Template(DocId),
    /// Use the colors of this theme; empty for Tracebook's own.
    Theme(String),
    /// Replace a byte range of the open note with this word.
    Word {
        range: std::ops::Range<usize>,
        word: String,
    },
    /// Add this word to the user's dictionary.
    Learn(String),
    /// Use this kernel for the open note; `None` is the built-in one.
    Kernel(Option<String>),
    /// Open the science pack dialog.
    SciencePack,
    /// Open the dialog that chooses the Python of the open note's environment kernel.
    Interpreter,
    /// Run this Vim command line.
    Line(String),
}

struct PaletteEntry {
    choice: PaletteChoice,
    pub(crate) title: String,
    /// Muted text after the title.
    about: String,
    key: Option<String>,
    hay: FuzzyCandidate,
    about_hay: FuzzyCandidate,
    /// Aliases of a command; empty for other entries.
    aliases: Vec<FuzzyCandidate>,
}

impl PaletteEntry {
    fn new(choice: PaletteChoice, title: String, about: String) -> PaletteEntry {
        let (hay, about_hay) = (FuzzyCandidate::new(&title), FuzzyCandidate::new(&about));
        PaletteEntry { choice, title, about, key: None, hay, about_hay, aliases: Vec::new() }
    }
}

pub(crate) struct CommandPalette {
    name: &'static str,
    hint: &'static str,
    query: String,
    entries: Vec<PaletteEntry>,
    /// The query's matches: indices into `entries`, and the matched characters of the title.
    hits: Vec<(usize, Vec<usize>)>,
    found_for: Option<String>,
    pick: ListPicker,
    /// Whether a note with the typed name can be created.
    makes: bool,
    /// Whether the typed words can be searched for in all notes.
    searches: bool,
    /// Whether Vim command lines are accepted, and a description of what the typed one would do.
    lines: bool,
    line: Option<String>,
    /// The keyboard shortcut of the search.
    search_key: Option<String>,
}

impl CommandPalette {
    /// Returns the palette of all commands, recently used ones first.
    pub(crate) fn commands(recent: &[CommandId], shortcuts: &ShortcutTable) -> CommandPalette {
        let mut entries: Vec<PaletteEntry> = commands::available_commands()
            .filter(|command| !matches!(commands::window_command(command.id), Some(WindowCommand::Palette)))
            .map(|command| PaletteEntry {
                choice: PaletteChoice::Command(command.id),
                title: command.title.to_owned(),
                about: command.help.to_owned(),
                key: shortcuts.key_of(command.id).map(str::to_owned),
                hay: FuzzyCandidate::new(command.title),
                about_hay: FuzzyCandidate::new(command.help),
                aliases: command_aliases(command.id).iter().map(|alias| FuzzyCandidate::new(alias)).collect(),
            })
            .collect();
        let rank = |entry: &PaletteEntry| match &entry.choice {
            PaletteChoice::Command(id) => recent.iter().position(|recent| recent == id).unwrap_or(usize::MAX),
            PaletteChoice::Heading(..) => usize::MAX,
            PaletteChoice::Note(_) | PaletteChoice::New(_) | PaletteChoice::Search(_) | PaletteChoice::Word { .. } => {
                usize::MAX
            }
            PaletteChoice::Learn(_)
            | PaletteChoice::Template(_)
            | PaletteChoice::Theme(_)
            | PaletteChoice::Kernel(_)
            | PaletteChoice::SciencePack
            | PaletteChoice::Interpreter
            | PaletteChoice::Line(_) => usize::MAX,
        };
        entries.sort_by_key(rank);
        let search_key = shortcuts.key_of(CommandId::SearchOpen).map(str::to_owned);
        let palette = CommandPalette::new("Command palette", "Search commands", entries, false);
        CommandPalette { searches: true, search_key, ..palette }
    }

    /// Returns the palette of all commands that also accepts Vim command lines.
    pub(crate) fn lines(recent: &[CommandId], begin: &str, shortcuts: &ShortcutTable) -> CommandPalette {
        let palette = CommandPalette::commands(recent, shortcuts);
        let hint = "w, q, a line's number, %s/old/new/g, or a part of a command";
        CommandPalette { lines: true, hint, query: begin.to_owned(), ..palette }
    }

    /// Returns the quick switcher with all notes, recently opened ones first, then other files and headings.
    pub(crate) fn notes(session: &Session, open: Option<DocId>, shortcuts: &ShortcutTable) -> CommandPalette {
        let recent = &session.settings().recent;
        let volumes: Vec<_> = session.volumes().collect();
        let mut entries: Vec<(usize, PaletteEntry)> = Vec::new();
        let mut headings = 0;
        for volume in &volumes {
            for (path, row) in &volume.files {
                let (folder, _) = path.rsplit_once('/').unwrap_or(("", path));
                let title = file_title(session, volume, path).to_owned();
                let about = match (volumes.len() > 1, folder.is_empty()) {
                    (true, true) => volume.name.clone(),
                    (true, false) => format!("{} / {}", volume.name, folder.replace('/', " / ")),
                    (false, _) => folder.replace('/', " / "),
                };
                // The open note is the last of the recent ones, since users rarely switch to the note they are in.
                let rank = match recent.iter().position(|recent| *recent == row.id) {
                    Some(_) if open == Some(row.id) => recent.len(),
                    Some(place) => place,
                    None if row.kind.is_text() => recent.len() + 1,
                    None => recent.len() + 2,
                };
                let outline = volume.links.outline(row.id).filter(|_| headings < MAX_LISTED_HEADINGS);
                for heading in outline.into_iter().flat_map(|outline| &outline.headings) {
                    headings += 1;
                    let choice = PaletteChoice::Heading(row.id, heading.at);
                    entries.push((recent.len() + 3, PaletteEntry::new(choice, heading.text.clone(), title.clone())));
                }
                entries.push((rank, PaletteEntry::new(PaletteChoice::Note(row.id), title, about)));
            }
        }
        entries.sort_by_key(|(a, _)| *a);
        let entries = entries.into_iter().map(|(_, entry)| entry).collect();
        let search_key = shortcuts.key_of(CommandId::SearchOpen).map(str::to_owned);
        let hint = "Notes, headings and files; Ctrl+Enter opens at the side";
        let palette = CommandPalette::new("Go to note", hint, entries, !volumes.is_empty());
        CommandPalette { search_key, searches: !volumes.is_empty(), ..palette }
    }

    /// Returns the palette of all volumes' collections, with the command that creates one.
    pub(crate) fn collections(session: &Session) -> CommandPalette {
        let files = session.volumes().flat_map(|volume| volume.files.iter().map(move |file| (volume, file)));
        let found = files.filter(|(_, (path, _))| collection::is_collection(path)).map(|(volume, (path, row))| {
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            let title = name.strip_suffix(".base").unwrap_or(name).to_owned();
            let about = [volume.name.as_str(), folder].join(" / ").trim_end_matches(" / ").to_owned();
            PaletteEntry::new(PaletteChoice::Note(row.id), title, about)
        });
        let new = CommandId::CollectionNew;
        let new = PaletteEntry::new(PaletteChoice::Command(new), new.title().to_owned(), new.info().help.to_owned());
        let entries = found.chain(std::iter::once(new)).collect();
        CommandPalette::new("Go to collection", "Search collections", entries, false)
    }

    /// Returns the palette with suggestions for a misspelled word at `range` of the open note.
    pub(crate) fn words(wrong: &str, range: &std::ops::Range<usize>, found: &[String]) -> CommandPalette {
        let entry = |choice: PaletteChoice, title: String, about: &str| {
            let (hay, about_hay) = (FuzzyCandidate::new(&title), FuzzyCandidate::new(""));
            PaletteEntry { choice, title, about: about.to_owned(), key: None, hay, about_hay, aliases: Vec::new() }
        };
        let mut entries: Vec<PaletteEntry> = found
            .iter()
            .map(|word| entry(PaletteChoice::Word { range: range.clone(), word: word.clone() }, word.clone(), ""))
            .collect();
        let title = format!("Keep “{wrong}”");
        entries.push(entry(PaletteChoice::Learn(wrong.to_owned()), title, "don't mark it as misspelled anymore"));
        CommandPalette::new("Correct spelling", "Choose a word", entries, false)
    }

    /// Returns the palette of templates, by name.
    pub(crate) fn templates(notes: Vec<(DocId, String)>) -> CommandPalette {
        let entry = |(note, title): (DocId, String)| {
            let hay = FuzzyCandidate::new(&title);
            PaletteEntry {
                choice: PaletteChoice::Template(note),
                title,
                about: String::new(),
                key: None,
                hay,
                about_hay: FuzzyCandidate::new(""),
                aliases: Vec::new(),
            }
        };
        let entries = notes.into_iter().map(entry).collect();
        CommandPalette::new("Insert template", "Search templates", entries, false)
    }

    /// Returns the palette of themes of the user's own, by name.
    pub(crate) fn themes(names: Vec<String>) -> CommandPalette {
        let own = PaletteEntry::new(
            PaletteChoice::Theme(String::new()),
            "Tracebook's own colors".to_owned(),
            "light or dark, as the settings say".to_owned(),
        );
        let entry = |name: String| PaletteEntry::new(PaletteChoice::Theme(name.clone()), name, String::new());
        let entries = std::iter::once(own).chain(names.into_iter().map(entry)).collect();
        CommandPalette::new("Choose theme", "Search themes", entries, false)
    }

    /// Returns the palette of kernels: Tracebook's own kinds, and the Jupyter kernels that were found. The used one is
    /// first. `interpreter` is the Python that the user has chosen for the note.
    pub(crate) fn kernels(
        found: &[KernelSpec],
        used: Option<&str>,
        interpreter: Option<&Path>,
        science: &PackStatus,
    ) -> CommandPalette {
        let entry = |choice: Option<String>, title: &str, about: String| {
            PaletteEntry::new(PaletteChoice::Kernel(choice), title.to_owned(), about)
        };
        let about = "Tracebook’s Python: starts at once; cells reach only their note’s folder, and no network";
        let mut entries = vec![entry(None, "Instant", about.to_owned())];
        let about = "numpy, pandas, scipy and more, as confined as Instant; variables are saved";
        let manage = |title: String, about: String| PaletteEntry::new(PaletteChoice::SciencePack, title, about);
        if science.phase.is_busy() {
            entries.push(manage("Science".to_owned(), science.phase.describe()));
        } else if let Some(pack) = &science.installed {
            entries.push(entry(Some(SCIENCE_KERNEL.to_owned()), "Science", about.to_owned()));
            let size = format!("version {}, {} MB", pack.version, megabytes(pack.bytes));
            entries.push(manage("Science pack…".to_owned(), format!("{size}; remove it")));
        } else {
            let title = format!("Install Science ({} MB download)", megabytes(PACK_WHEEL_BYTES));
            entries.push(manage(title, about.to_owned()));
        }
        let about = "this computer’s Python with this note’s packages, as confined as Instant".to_owned();
        entries.push(entry(Some(ENVIRONMENT_KERNEL.to_owned()), "Environment", about));
        let about = interpreter.map_or_else(
            || "another Python of this computer, such as one of conda or pyenv, as confined as Instant".to_owned(),
            |python| format!("now {}", python.display()),
        );
        entries.push(PaletteEntry::new(PaletteChoice::Interpreter, "Choose an interpreter…".to_owned(), about));
        for spec in found {
            // The path has the form PREFIX/share/jupyter/kernels/NAME/kernel.json.
            let place = spec.path.ancestors().nth(5).unwrap_or(&spec.path);
            let about = format!("{}, with all your rights; from {}", spec.name, place.display());
            entries.push(entry(Some(spec.name.clone()), &spec.title, about));
        }
        entries.sort_by_key(|entry| !matches!(&entry.choice, PaletteChoice::Kernel(name) if name.as_deref() == used));
        CommandPalette::new("Choose kernel", "Search kernels", entries, false)
    }

    fn new(name: &'static str, hint: &'static str, entries: Vec<PaletteEntry>, makes: bool) -> CommandPalette {
        CommandPalette {
            name,
            hint,
            query: String::new(),
            entries,
            hits: Vec::new(),
            found_for: None,
            pick: ListPicker::default(),
            makes,
            searches: false,
            lines: false,
            line: None,
            search_key: None,
        }
    }

    /// Updates the matches if the query has changed.
    pub(crate) fn find(&mut self) {
        if self.found_for.as_ref() == Some(&self.query) {
            return;
        }
        // Notes are listed without their file extension.
        let query = query_chars(self.query.strip_suffix(".md").unwrap_or(&self.query));
        let mut hits: Vec<(i32, usize, Vec<usize>)> = Vec::new();
        for (place, entry) in self.entries.iter().enumerate() {
            // A note ranks above a heading that matches equally well.
            let is_heading = matches!(entry.choice, PaletteChoice::Heading(..));
            if let PaletteChoice::Command(_) = entry.choice {
                let title = entry.hay.match_word_parts(&query).map(|hit| (hit.score + COMMAND_TITLE_BONUS, hit.places));
                let alias =
                    entry.aliases.iter().filter_map(|alias| alias.match_word_parts(&query)).max_by_key(|hit| hit.score);
                let alias = alias.map(|hit| (hit.score, Vec::new()));
                let about = || {
                    let hit =
                        entry.about_hay.match_word_parts(&query).filter(|_| query.len() >= MIN_HELP_QUERY_CHARS)?;
                    Some((hit.score - COMMAND_HELP_MALUS, Vec::new()))
                };
                let best = title.into_iter().chain(alias).max_by_key(|(score, _)| *score).or_else(about);
                hits.extend(best.map(|(score, places)| (score, place, places)));
            } else if let Some(hit) = entry.hay.match_query(&query) {
                hits.push((hit.score - if is_heading { HEADING_PENALTY } else { 0 }, place, hit.places));
            } else if let Some(hit) = entry.about_hay.match_query(&query).filter(|_| !is_heading) {
                hits.push((hit.score - 40, place, Vec::new()));
            }
        }
        if !query.is_empty() {
            hits.sort_by(|(a, i, _), (b, j, _)| b.cmp(a).then(i.cmp(j)));
        }
        hits.truncate(MAX_PALETTE_RESULTS);
        self.hits = hits.into_iter().map(|(_, place, places)| (place, places)).collect();
        self.line = self.lines.then(|| ex::describe_command(&self.query)).flatten();
        self.found_for = Some(self.query.clone());
        self.pick = ListPicker::default();
    }

    fn count(&self) -> usize {
        usize::from(self.line.is_some()) + self.hits.len() + self.offers().len()
    }

    /// Returns the match in a line of the list.
    fn hit(&self, line: usize) -> Option<&(usize, Vec<usize>)> {
        self.hits.get(line.checked_sub(usize::from(self.line.is_some()))?)
    }

    /// Returns the entry after the hits: create a note with this name, or search for the words.
    fn offer(&self, line: usize) -> Option<PaletteChoice> {
        let behind = line.checked_sub(usize::from(self.line.is_some()) + self.hits.len())?;
        self.offers().into_iter().nth(behind)
    }

    pub(crate) fn typed_query(&self) -> &str {
        self.query.trim()
    }

    /// Returns the choices that use the query itself: create a note, or search.
    fn offers(&self) -> Vec<PaletteChoice> {
        let text = self.query.trim();
        let make = self.makes.then(|| PaletteChoice::New(text.to_owned()));
        let search = self.searches.then(|| PaletteChoice::Search(text.to_owned()));
        make.into_iter().chain(search).filter(|_| !text.is_empty()).collect()
    }

    /// Handles a key that moves the selection. Returns whether it did.
    pub(crate) fn key(&mut self, key: Key) -> bool {
        self.find();
        self.pick.key(key, self.count(), VISIBLE_PALETTE_ROWS as usize)
    }

    /// Returns the choice for Enter.
    pub(crate) fn take_choice(&mut self) -> Option<PaletteChoice> {
        self.find();
        if self.line.is_some() && self.pick.line == 0 {
            return Some(PaletteChoice::Line(self.query.clone()));
        }
        match self.hit(self.pick.line) {
            Some((place, _)) => Some(self.entries[*place].choice.clone()),
            None => self.offer(self.pick.line),
        }
    }

    /// Draws the palette. `Some(None)` means that it must close.
    pub(crate) fn show(
        &mut self,
        ctx: &egui::Context,
        colours: &'static ThemeColors,
        dark: bool,
    ) -> Option<Option<PaletteChoice>> {
        let mut chosen = None;
        let most = (ctx.content_rect().height() * 0.6).min(VISIBLE_PALETTE_ROWS * PALETTE_ROW_HEIGHT);
        let away = picker::show_floating(ctx, self.name, 0.2, colours, dark, |ui| {
            picker::show_entry(ui, &mut self.query, "palette query", (self.name, self.hint), 0.0, |_, _| {});
            let line = ui.available_rect_before_wrap();
            ui.painter().hline(line.x_range(), line.top(), egui::Stroke::new(1.0, colours.line));
            self.find();
            chosen = self.list(ui, most);
        });
        if away {
            return Some(None);
        }
        chosen.map(Some)
    }

    fn list(&mut self, ui: &mut Ui, height: f32) -> Option<PaletteChoice> {
        let colours = ThemeColors::of(ui);
        let lines = self.count();
        if lines == 0 {
            let (rect, response) =
                ui.allocate_exact_size(vec2(ui.available_width(), PALETTE_ROW_HEIGHT + space::S), Sense::hover());
            let text = "No matches";
            let at = rect.left_center() + vec2(space::L, 0.0);
            ui.painter().text(at, Align2::LEFT_CENTER, text, theme::small().font, colours.muted);
            set_accessible_name(&response, Role::Label, text);
            return None;
        }
        let mut pick = std::mem::take(&mut self.pick);
        let clicked = pick.show_list(ui, lines, PALETTE_ROW_HEIGHT, height, |ui, line, rect, response| {
            self.line(ui, line, rect, response)
        });
        self.pick = pick;
        clicked.and_then(|_| self.take_choice())
    }

    fn line(&self, ui: &Ui, line: usize, rect: Rect, response: &egui::Response) {
        let colours = ThemeColors::of(ui);
        let (title, about, key, places): (String, &str, Option<&str>, &[usize]) = match self.hit(line) {
            Some((place, places)) => {
                let entry = &self.entries[*place];
                (entry.title.clone(), &entry.about, entry.key.as_deref(), places)
            }
            None if line == 0 && self.line.is_some() => (self.line.clone().unwrap_or_default(), "", None, &[]),
            None => match self.offer(line) {
                Some(PaletteChoice::Search(text)) => {
                    (format!("Search everything for “{text}”"), "", self.search_key.as_deref(), &[])
                }
                Some(_) | None => (format!("New note “{}”", self.query.trim()), "", None, &[]),
            },
        };
        set_accessible_name(response, Role::Button, &title);
        let mut right = rect.right() - space::M;
        if let Some(key) = key {
            right -= keys(ui, pos2(right, rect.center().y), key) + space::M;
        }
        let style = theme::small();
        let mut job = LayoutJob::default();
        // Escaped one character at a time, an emoji's joiners would look like hidden characters.
        let hides = *untrusted_text::escape_line(&title) != *title;
        for (place, c) in title.chars().enumerate() {
            let hit = places.contains(&place);
            let font = if hit {
                theme::inter_font(theme::InterCut::SemiBold, 14.0)
            } else {
                theme::inter_font(theme::InterCut::Regular, 14.0)
            };
            let colour = if hit { colours.accent } else { colours.ink };
            let mut bytes = [0; 4];
            let letter = &*c.encode_utf8(&mut bytes);
            let letter = if hides { untrusted_text::escape_line(letter) } else { letter.into() };
            job.append(&letter, 0.0, ui::widgets::format(font, 20.0, colour));
        }
        job.append(&untrusted_text::escape_line(about), space::M, ui::widgets::format(style.font, 20.0, colours.muted));
        job.wrap = egui::text::TextWrapping::truncate_at_width((right - rect.left() - space::M).max(0.0));
        let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
        let at = pos2(rect.left() + space::M, rect.center().y - galley.size().y / 2.0);
        ui.painter().galley(at, galley, colours.ink);
    }
}

/// Draws keys as keycaps, right-aligned at a point. Returns their width.
pub(crate) fn keys(ui: &Ui, at: egui::Pos2, keys: &str) -> f32 {
    let colours = ThemeColors::of(ui);
    let mut x = at.x;
    let names: Vec<&str> = keys.split('+').collect();
    for name in names.iter().rev() {
        let name = match *name {
            "Plus" => "+",
            "Minus" => "−",
            name => name,
        };
        let galley = ui.painter().layout_no_wrap(name.to_owned(), theme::caption().font, colours.muted);
        let width = (galley.size().x + space::M).max(22.0);
        let cap = Rect::from_min_max(pos2(x - width, at.y - 10.0), pos2(x, at.y + 10.0));
        ui.painter().rect_filled(cap, egui::CornerRadius::same(4), colours.sunken);
        ui.painter().galley(
            Align2::CENTER_CENTER.align_size_within_rect(galley.size(), cap).min,
            galley,
            colours.muted,
        );
        x -= width + space::XS;
    }
    at.x - x - space::XS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_by_a_few_letters() {
        let mut palette = CommandPalette::commands(&[CommandId::ViewTheme], &ShortcutTable::default());
        assert_eq!(
            palette.take_choice(),
            Some(PaletteChoice::Command(CommandId::ViewTheme)),
            "the last one used comes first"
        );
        palette.query = "run all".to_owned();
        assert_eq!(palette.take_choice(), Some(PaletteChoice::Command(CommandId::NoteRunAll)));
        palette.query = "run all.md".to_owned();
        assert_eq!(palette.take_choice(), Some(PaletteChoice::Command(CommandId::NoteRunAll)));
        palette.query = "zzz".to_owned();
        assert_eq!(palette.take_choice(), Some(PaletteChoice::Search("zzz".to_owned())));
    }

    #[test]
    fn commands_are_found_by_the_words_of_other_programs() {
        let mut palette = CommandPalette::commands(&[], &ShortcutTable::default());
        for (query, id) in [
            ("dark mode", CommandId::ViewTheme),
            ("backlinks", CommandId::ViewLinks),
            ("outline", CommandId::ViewRight),
            ("sidebar", CommandId::ViewLeft),
            ("open vault", CommandId::FolderOpen),
            ("api key", CommandId::AppSettings),
            ("find in files", CommandId::SearchOpen),
            ("capture", CommandId::NoteQuick),
            ("help", CommandId::HelpOpen),
            ("print", CommandId::NotePrint),
            ("model", CommandId::AgentConnect),
            ("grant", CommandId::KernelGrant),
            ("daily note", CommandId::NoteToday),
            ("interrupt", CommandId::CellStop),
        ] {
            palette.query = query.to_owned();
            assert_eq!(palette.take_choice(), Some(PaletteChoice::Command(id)), "{query}");
        }
    }
}
