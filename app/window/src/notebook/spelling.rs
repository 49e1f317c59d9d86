//! Misspelt words: marked where they are read or written, corrected by a palette of suggestions. Lives as a plugin of
//! egui, since every row asks it. Code, links and what is no plain word are left alone.

use super::page::PageAction;
use crate::AppWindow;
use crate::WindowOverlay;
use crate::overlays::command_palette::CommandPalette;
use editor::motion;
use editor::note_editor::NoteEdit;
use editor::row_layout::{RowLayout, RowPart, text_rects};
use eframe::egui;
use egui::{Galley, Painter, Pos2, Rect, Shape, Stroke, pos2};
use host::spelling::{HunspellChecker, language};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use store::DocId;
use ui::theme::{self, ThemeColors};
use unicode_segmentation::UnicodeSegmentation;

/// Texts whose words are remembered.
const MAX_CACHED_SPELLED_TEXTS: usize = 2_000;
/// Words that are remembered.
const MAX_CACHED_WORDS: usize = 20_000;
/// Texts longer than this many bytes are not looked through: what is that long is data.
const MAX_SPELL_CHECK_BYTES: usize = 50_000;

/// Words of our own and of those who write notes, which older dictionaries lack.
const BUILT_IN_WORDS: &[&str] = &["tracebook", "todo", "todos", "wikilink", "wikilinks", "markdown"];

/// A word and where it stands in a note.
struct SpellingRequest {
    note: DocId,
    range: Range<usize>,
    word: String,
    found: Vec<String>,
}

/// What is known of words.
pub(crate) struct SpellChecker {
    speller: Option<HunspellChecker>,
    own: HashSet<String>,
    /// Texts by their hash, with the characters of the misspelt words in them.
    known: HashMap<u64, Arc<[Range<usize>]>>,
    /// Words that were looked up, and whether they are right.
    words: HashMap<String, bool>,
    /// Counts the changes of all of this: marks made before one may be others now.
    version: u64,
    tell: Sender<SpellingRequest>,
    requests: Receiver<SpellingRequest>,
}

impl egui::Plugin for SpellingPlugin {
    fn debug_name(&self) -> &'static str {
        "spelling"
    }
}

/// The plugin: nothing of egui's own is needed of it.
#[derive(Default)]
pub(crate) struct SpellingPlugin(std::sync::Mutex<Option<SpellChecker>>);

impl SpellChecker {
    fn new() -> SpellChecker {
        let (tell, told) = channel();
        SpellChecker {
            speller: None,
            own: HashSet::new(),
            known: HashMap::new(),
            words: HashMap::new(),
            version: 0,
            tell,
            requests: told,
        }
    }

    /// What was known of texts is not known any more.
    fn forget(&mut self) {
        self.known.clear();
        self.words.clear();
        self.version += 1;
    }

    /// [`SpellChecker::accepts`], remembered.
    fn is_right(&mut self, word: &str) -> bool {
        if let Some(right) = self.words.get(word) {
            return *right;
        }
        if self.words.len() >= MAX_CACHED_WORDS {
            self.words.clear();
        }
        let right = self.accepts(word);
        self.words.insert(word.to_owned(), right);
        right
    }

    /// Whether a word is written as a dictionary, or its user, has it.
    fn accepts(&self, word: &str) -> bool {
        let word = word.replace('\u{2019}', "'");
        let small = word.to_lowercase();
        BUILT_IN_WORDS.contains(&small.as_str())
            || self.own.contains(&word)
            || self.own.contains(&small)
            || self.speller.as_ref().and_then(|speller| speller.knows(&word)).unwrap_or(true)
    }

    fn misspelt(&mut self, galley: &Galley) -> Arc<[Range<usize>]> {
        let text = galley.text();
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        if let Some(known) = self.known.get(&hasher.finish()) {
            return known.clone();
        }
        let code = |at: usize| {
            galley.job.sections.iter().any(|section| {
                let range = section.byte_range.start.0..section.byte_range.end.0;
                range.contains(&at) && theme::is_mono(&section.format.font_id)
            })
        };
        let words = words(text).filter(|range| !code(range.start) && !self.is_right(&text[range.clone()]));
        let mut found: Vec<Range<usize>> = words.collect();
        let (mut byte, mut chars) = (0, 0);
        for range in &mut found {
            chars += text[byte..range.start].chars().count();
            byte = range.start;
            *range = chars..chars + text[range.clone()].chars().count();
        }
        if self.known.len() >= MAX_CACHED_SPELLED_TEXTS {
            self.known.clear();
        }
        let found: Arc<[Range<usize>]> = found.into();
        self.known.insert(hasher.finish(), found.clone());
        found
    }
}

/// The plain words of a text, in bytes: no names of things in code, no addresses, no numbers, no tags.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let text = if text.len() > MAX_SPELL_CHECK_BYTES { "" } else { text };
    text.unicode_word_indices().filter_map(move |(start, word)| {
        let end = start + word.len();
        let before = text[..start].rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let after = text[end..].find(char::is_whitespace).map_or(text.len(), |at| end + at);
        let around = &text[before..after];
        let odd = around.contains(['/', '\\', '@', '#', '_', '=', '<', '>', '{', '}', '$']) || around.contains("](");
        let plain = word.chars().all(|letter| letter.is_alphabetic() || matches!(letter, '\'' | '\u{2019}'));
        let inner_capitals = word.chars().skip(1).any(char::is_uppercase);
        (plain && !odd && !inner_capitals && word.chars().count() > 1).then_some(start..end)
    })
}

/// Marks what is misspelt in laid-out text. `caret`: the character at which somebody is writing; the word there is let
/// be until it is left.
pub(crate) fn paint(painter: &Painter, origin: Pos2, galley: &Galley, caret: Option<usize>) {
    let found = with(painter.ctx(), |spelling| spelling.speller.is_some().then(|| spelling.misspelt(galley)));
    let Some(Some(found)) = found else { return };
    let colour = ThemeColors::for_dark_mode(painter.ctx().global_style().visuals.dark_mode).bad;
    for range in found.iter() {
        if caret.is_some_and(|caret| range.start < caret && caret <= range.end) {
            continue;
        }
        for rect in text_rects(galley, range.clone()) {
            wave(painter, rect.translate(origin.to_vec2()), Stroke::new(1.0, colour));
        }
    }
}

/// Changes whenever other words may be misspelt than before.
pub(crate) fn version(ctx: &egui::Context) -> u64 {
    with(ctx, |spelling| spelling.version).unwrap_or(0)
}

/// Where misspelt words stand in a laid-out row.
pub(crate) fn misspelled_rects(ctx: &egui::Context, drawn: &RowLayout) -> Vec<Rect> {
    let mut marks = Vec::new();
    for part in &drawn.parts {
        if let RowPart::Text { at, galley, .. } = part
            && let Some(Some(found)) =
                with(ctx, |spelling| spelling.speller.is_some().then(|| spelling.misspelt(galley)))
        {
            let found = found.iter().flat_map(|range| text_rects(galley, range.clone()));
            marks.extend(found.map(|rect| rect.translate(*at)));
        }
    }
    marks
}

/// Draws the marks of a row.
pub(crate) fn paint_marks(painter: &Painter, origin: Pos2, marks: &[Rect]) {
    let colour = ThemeColors::for_dark_mode(painter.ctx().global_style().visuals.dark_mode).bad;
    for rect in marks {
        wave(painter, rect.translate(origin.to_vec2()), Stroke::new(1.0, colour));
    }
}

/// A small wave under a word: a shape of its own, so that the colour does not speak alone.
fn wave(painter: &Painter, rect: Rect, stroke: Stroke) {
    if !painter.clip_rect().intersects(rect) {
        return;
    }
    let low = rect.bottom() - 2.0;
    let points = (0..)
        .map(|step| step as f32 * 2.0)
        .take_while(|x| *x <= rect.width())
        .enumerate()
        .map(|(step, x)| pos2(rect.left() + x, if step % 2 == 0 { low } else { low - 1.5 }));
    painter.add(Shape::line(points.collect(), stroke));
}

fn with<R>(ctx: &egui::Context, look: impl FnOnce(&mut SpellChecker) -> R) -> Option<R> {
    ctx.with_plugin(|plugin: &mut SpellingPlugin| {
        let mut spelling = plugin.0.lock().ok()?;
        Some(look(spelling.get_or_insert_with(SpellChecker::new)))
    })?
}

impl AppWindow {
    /// Puts the settings into force, and shows the suggestions that have been found since.
    pub(crate) fn update_spelling(&mut self, ctx: &egui::Context) {
        let Some(settings) = self.session().map(engine::Session::settings) else { return };
        let (on, own) = (settings.spelling, &settings.words);
        let asked = with(ctx, |spelling| {
            if on != spelling.speller.is_some() {
                let wake = ctx.clone();
                spelling.speller = on.then(|| {
                    HunspellChecker::start(language(), move || {
                        with(&wake, SpellChecker::forget);
                        wake.request_repaint();
                    })
                });
                spelling.forget();
            }
            if own.len() != spelling.own.len() || own.iter().any(|word| !spelling.own.contains(word)) {
                spelling.own = own.iter().cloned().collect();
                spelling.forget();
            }
            spelling.requests.try_recv().ok()
        });
        if let Some(Some(SpellingRequest { note, range, word, found })) = asked
            && self.active_pane.note == Some(note)
            && matches!(self.overlay, WindowOverlay::None)
        {
            self.overlay = WindowOverlay::Palette(CommandPalette::words(&word, &range, &found));
        }
    }

    /// Asks for words that may have been meant by the one at the caret.
    pub(crate) fn suggest_corrections(&mut self, ctx: &egui::Context) {
        let Some(note) = self.active_pane.note else { return };
        let dark = ctx.global_style().visuals.dark_mode;
        let word = self.with_note(ctx, dark, |world, editor, _| {
            let target = editor.edit_target(world)?;
            let caret = target.shown_byte(editor.caret?.at);
            let range = motion::word_around(&target.shown, caret);
            let word = target.shown.get(range.clone())?.to_owned();
            Some((target.note_byte(range.start)..target.note_byte(range.end), word))
        });
        let Some(Some((range, word))) = word.filter(|word| word.as_ref().is_some_and(|(_, word)| !word.is_empty()))
        else {
            self.toasts.show_message("Put the caret into a word first.");
            return;
        };
        let said = with(ctx, |spelling| {
            let Some(speller) = &spelling.speller else {
                return Some("Spelling is not checked; turn it on first, from the palette.".to_owned());
            };
            match speller.state() {
                None => Some("The dictionary is still being read; try again in a moment.".to_owned()),
                Some(Err(why)) => Some(why.to_owned()),
                Some(Ok(_)) if spelling.accepts(&word) => Some(format!("“{word}” is spelt as the dictionary has it.")),
                Some(Ok(_)) => {
                    let (tell, wake) = (spelling.tell.clone(), ctx.clone());
                    speller.suggest(word.clone(), move |found| {
                        let _ = tell.send(SpellingRequest { note, range, word, found });
                        wake.request_repaint();
                    });
                    None
                }
            }
        });
        if let Some(Some(said)) = said {
            self.toasts.show_message(said);
        }
    }

    /// Puts another word in the place of one.
    pub(crate) fn replace_word(&mut self, ctx: &egui::Context, range: Range<usize>, word: String) {
        let caret = range.start + word.len();
        let edit = NoteEdit { at: range.start, delete: range.len(), insert: word, caret, anchor: caret };
        self.perform_actions(ctx, vec![PageAction::Edit(edit)]);
    }

    /// Takes a word for right from now on.
    pub(crate) fn learn_word(&mut self, word: String) {
        let Some(session) = self.session() else { return };
        let mut settings = session.settings().clone();
        if !settings.words.contains(&word) {
            settings.words.push(word);
            self.send(engine::Command::Set { settings: Box::new(settings) });
        }
    }

    /// Turns the marks on or off.
    pub(crate) fn toggle_spelling(&mut self) {
        let Some(session) = self.session() else { return };
        let mut settings = session.settings().clone();
        settings.spelling = !settings.spelling;
        let said = if settings.spelling { "Spelling is checked." } else { "Spelling is not checked any more." };
        if self.send(engine::Command::Set { settings: Box::new(settings) }) {
            self.toasts.show_message(said);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    fn found(text: &str) -> Vec<&str> {
        words(text).map(|range| &text[range]).collect()
    }

    #[test]
    fn only_plain_words_are_looked_up() {
        assert_eq!(found("It's a quiet day."), ["It's", "quiet", "day"]);
        assert_eq!(found("see https://exampel.org/pth and a@b.cd or snake_case"), ["see", "and", "or"]);
        assert_eq!(found("camelCase NASA v2 3rd #tagg"), Vec::<&str>::new());
        assert_eq!(found("**bold** (paren) naïve"), ["bold", "paren", "naïve"]);
    }
}
