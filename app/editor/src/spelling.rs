//! Spell checking: misspelled words are marked while reading and editing, and corrected from a list of suggestions. It
//! is an egui plugin, because every row uses it. Code, links and other non-words are skipped.

use crate::row_layout::{RowLayout, RowPart, text_rects};
use eframe::egui;
use egui::{Galley, Painter, Pos2, Rect, Shape, Stroke, pos2};
use host::spelling::HunspellChecker;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use store::DocId;
use ui::theme::{self, ThemeColors};
use unicode_segmentation::UnicodeSegmentation;

/// Maximum number of texts whose misspelled words are cached.
const MAX_CACHED_SPELLED_TEXTS: usize = 2_000;
/// Maximum number of cached words.
const MAX_CACHED_WORDS: usize = 20_000;
/// Maximum bytes of a text that is checked; longer text is data.
const MAX_SPELL_CHECK_BYTES: usize = 50_000;

/// The property that turns spell check off for a note, if it's `false`.
pub const SPELLING_PROPERTY: &str = "spelling";

/// Words of Tracebook and of note-taking that older dictionaries lack.
const BUILT_IN_WORDS: &[&str] = &["tracebook", "todo", "todos", "wikilink", "wikilinks", "markdown"];

/// A misspelled word in a note, with suggested corrections.
pub struct SpellingRequest {
    /// The note that holds the word.
    pub note: DocId,
    /// Byte range of the word in the note.
    pub range: Range<usize>,
    /// The misspelled word.
    pub word: String,
    /// Suggested corrections, best first.
    pub found: Vec<String>,
}

/// Spell-checking dictionaries and cached results.
pub struct SpellChecker {
    /// The dictionaries; `None` while spell checking is turned off.
    pub speller: Option<HunspellChecker>,
    /// Words added by the user.
    pub own: HashSet<String>,
    /// Character ranges of misspelled words, by hash of their text.
    known: HashMap<u64, Arc<[Range<usize>]>>,
    /// Words that were looked up, and whether they are spelled correctly.
    pub words: HashMap<String, bool>,
    /// Increases whenever earlier results may have become invalid.
    version: u64,
    /// Sends results from the thread that looks for corrections.
    pub tell: Sender<SpellingRequest>,
    /// Receives those results.
    pub requests: Receiver<SpellingRequest>,
}

impl egui::Plugin for SpellingPlugin {
    fn debug_name(&self) -> &'static str {
        "spelling"
    }
}

/// The egui plugin that holds the spell checker; it uses none of egui's hooks.
#[derive(Default)]
pub struct SpellingPlugin(std::sync::Mutex<Option<SpellChecker>>);

impl SpellChecker {
    /// Creates a checker that is turned off.
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

    /// Clears cached results.
    pub fn forget(&mut self) {
        self.known.clear();
        self.words.clear();
        self.version += 1;
    }

    /// Returns the cached result of [`SpellChecker::accepts`].
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

    /// Returns whether a word is in a dictionary, in the user's list or built in.
    pub fn accepts(&self, word: &str) -> bool {
        let word = word.replace('\u{2019}', "'");
        let small = word.to_lowercase();
        BUILT_IN_WORDS.contains(&small.as_str())
            || self.own.contains(&word)
            || self.own.contains(&small)
            || self.speller.as_ref().and_then(|speller| speller.check_word(&word)).unwrap_or(true)
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

/// Returns the byte ranges of a text's plain words, without code identifiers, addresses, numbers and tags.
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

/// Marks misspelled words in laid-out text. `caret` is the character at which the user types; its word isn't marked
/// until the caret leaves it.
pub fn paint(painter: &Painter, origin: Pos2, galley: &Galley, caret: Option<usize>) {
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

/// Returns whether the front matter of a note turns spell check off for the note. `front` is the note's first block.
pub fn is_off_in(front: &str) -> bool {
    if !front.trim_start_matches('\u{feff}').starts_with("---") || !front.contains(SPELLING_PROPERTY) {
        return false;
    }
    let stated = text::properties::read(front).and_then(Result::ok).unwrap_or_default();
    let stated = stated.iter().find(|property| property.key == SPELLING_PROPERTY);
    let value = stated.and_then(|property| property.values.first());
    value.is_some_and(|(value, _)| matches!(value.as_str(), "false" | "off"))
}

/// Returns a version that changes whenever the set of misspelled words may have changed.
pub fn version(ctx: &egui::Context) -> u64 {
    with(ctx, |spelling| spelling.version).unwrap_or(0)
}

/// Returns the rectangles of misspelled words in a laid-out row.
pub fn misspelled_rects(ctx: &egui::Context, drawn: &RowLayout) -> Vec<Rect> {
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

/// Draws the misspelling marks of a row.
pub fn paint_marks(painter: &Painter, origin: Pos2, marks: &[Rect]) {
    let colour = ThemeColors::for_dark_mode(painter.ctx().global_style().visuals.dark_mode).bad;
    for rect in marks {
        wave(painter, rect.translate(origin.to_vec2()), Stroke::new(1.0, colour));
    }
}

/// Draws a small wave under a word. The shape marks it independently of color.
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

/// Runs a function with the spell checker of this egui context.
pub fn with<R>(ctx: &egui::Context, look: impl FnOnce(&mut SpellChecker) -> R) -> Option<R> {
    ctx.with_plugin(|plugin: &mut SpellingPlugin| {
        let mut spelling = plugin.0.lock().ok()?;
        Some(look(spelling.get_or_insert_with(SpellChecker::new)))
    })?
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
