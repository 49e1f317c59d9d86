//! Checks spelling, suggests corrections, and learns words.

use crate::actions::PageAction;
use crate::app_window::AppWindow;
use crate::overlays::command_palette::CommandPalette;
use crate::overlays::window_overlay::WindowOverlay;
use editor::motion;
use editor::note_editor::NoteEdit;
use editor::spelling::{SpellChecker, SpellingRequest, with};
use eframe::egui;
use host::spelling::{HunspellChecker, system_language};
use std::ops::Range;

impl AppWindow {
    /// Puts the settings into force, and shows the suggestions that have been found since.
    pub(crate) fn update_spelling(&mut self, ctx: &egui::Context) {
        let settings = self.host.session().settings();
        let (on, own) = (settings.spelling, &settings.words);
        let asked = with(ctx, |spelling| {
            if on != spelling.speller.is_some() {
                let wake = ctx.clone();
                spelling.speller = on.then(|| {
                    HunspellChecker::start(system_language(), move || {
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
            && self.panes.active.note == Some(note)
            && matches!(self.overlay, WindowOverlay::None)
        {
            self.overlay = WindowOverlay::Palette(CommandPalette::words(&word, &range, &found));
        }
    }

    /// Asks for words that may have been meant by the one at the caret.
    pub(crate) fn suggest_corrections(&mut self, ctx: &egui::Context) {
        let Some(note) = self.panes.active.note else { return };
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
            self.notices.toasts.show_message("Put the caret into a word first.");
            return;
        };
        let said = with(ctx, |spelling| {
            let Some(speller) = &spelling.speller else {
                return Some("Spelling is not checked; turn it on first, from the palette.".to_owned());
            };
            match speller.dictionary_state() {
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
            self.notices.toasts.show_message(said);
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
        let session = self.host.session();
        let mut settings = session.settings().clone();
        if !settings.words.contains(&word) {
            settings.words.push(word);
            self.send(engine::Command::Set { settings: Box::new(settings) });
        }
    }

    /// Turns the marks on or off.
    pub(crate) fn toggle_spelling(&mut self) {
        let session = self.host.session();
        let mut settings = session.settings().clone();
        settings.spelling = !settings.spelling;
        let said = if settings.spelling { "Spell check is on." } else { "Spell check is off." };
        if self.send(engine::Command::Set { settings: Box::new(settings) }) {
            self.notices.toasts.show_message(said);
        }
    }
}
