//! Checks spelling, suggests corrections, and adds words to the dictionary.

use crate::overlays::command_palette::CommandPalette;
use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use editor::motion;
use editor::note_editor::NoteEdit;
use editor::spelling::{SpellChecker, SpellingRequest, with};
use eframe::egui;
use host::spelling::{HunspellChecker, system_language};
use std::ops::Range;

impl PaneState {
    /// Applies the settings, and shows suggestions that have arrived.
    pub(crate) fn update_spelling(&mut self, host: &HostLink, overlay: &mut WindowOverlay, ctx: &egui::Context) {
        let settings = host.session().settings();
        let (on, own) = (settings.spelling, &settings.spelling_dictionary);
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
            && self.active.note == Some(note)
            && matches!(overlay, WindowOverlay::None)
        {
            *overlay = WindowOverlay::Palette(CommandPalette::words(&word, &range, &found));
        }
    }

    /// Requests corrections for the word at the caret.
    pub(crate) fn suggest_corrections(&mut self, host: &HostLink, notices: &mut NoticeState, ctx: &egui::Context) {
        let Some(note) = self.active.note else { return };
        let dark = ctx.global_style().visuals.dark_mode;
        let word = self.with_note(host, ctx, dark, |world, editor, _| {
            let target = editor.edit_target(world)?;
            let caret = target.shown_byte(editor.caret?.at);
            let range = motion::word_around(&target.shown, caret);
            let word = target.shown.get(range.clone())?.to_owned();
            Some((target.note_byte(range.start)..target.note_byte(range.end), word))
        });
        let Some(Some((range, word))) = word.filter(|word| word.as_ref().is_some_and(|(_, word)| !word.is_empty()))
        else {
            notices.toasts.show_message("Put the caret into a word first.");
            return;
        };
        let said = with(ctx, |spelling| {
            let Some(speller) = &spelling.speller else {
                return Some("Spell check is off. Turn it on in Settings, Spelling.".to_owned());
            };
            match speller.dictionary_state() {
                None => Some("The dictionary is still being read; try again in a moment.".to_owned()),
                Some(Err(why)) => Some(why.to_string()),
                Some(Ok(_)) if spelling.accepts(&word) => Some(format!("“{word}” is spelled correctly.")),
                Some(Ok(_)) => {
                    let (tell, wake) = (spelling.tell.clone(), ctx.clone());
                    speller.suggest(word.clone(), move |found| {
                        // If the receiver is gone, the result is no longer needed.
                        let _ = tell.send(SpellingRequest { note, range, word, found });
                        wake.request_repaint();
                    });
                    None
                }
            }
        });
        if let Some(Some(said)) = said {
            notices.toasts.show_message(said);
        }
    }

    /// Replaces a word at a byte range.
    pub(crate) fn replace_word(
        &mut self,
        host: &mut HostLink,
        notices: &mut NoticeState,
        ctx: &egui::Context,
        range: Range<usize>,
        word: String,
    ) {
        let caret = range.start + word.len();
        let edit = NoteEdit { at: range.start, delete: range.len(), insert: word, caret, anchor: caret };
        self.apply_edits(host, notices, vec![edit]);
        ctx.request_repaint();
    }
}

impl HostLink {
    /// Adds a word to the user's dictionary.
    pub(crate) fn learn_word(&mut self, notices: &mut NoticeState, word: String) {
        let session = self.session();
        let mut settings = session.settings().clone();
        if !settings.spelling_dictionary.contains(&word) {
            settings.spelling_dictionary.push(word);
            self.send(engine::Command::Set { settings: Box::new(settings) }, notices);
        }
    }

    /// Turns spell checking on or off.
    pub(crate) fn toggle_spelling(&mut self, notices: &mut NoticeState) {
        let session = self.session();
        let mut settings = session.settings().clone();
        settings.spelling = !settings.spelling;
        let said = if settings.spelling { "Spell check is on." } else { "Spell check is off." };
        if self.send(engine::Command::Set { settings: Box::new(settings) }, notices) {
            notices.toasts.show_message(said);
        }
    }
}
