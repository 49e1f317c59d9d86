//! The field for a message to the agent: several lines; `@` completes notes, agents and resources of servers, `/`
//! completes prompts of servers, and arrow keys recall earlier messages.

use super::prompt_fields::PromptFields;
use super::{key, lately};
use agent::server_material::{self, ServerOffer};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Id, Key, Modifiers, Sense, Ui, vec2};
use engine::Session;
use store::{DocId, FileKind, MessageId};
use ui::fuzzy::FuzzyCandidate;
use ui::icons;
use ui::setting_rows;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{icon_button, paint_clipped_text, paint_focus_ring, set_accessible_name};

/// Maximum number of suggested names.
const MAX_NAME_SUGGESTIONS: usize = 6;
/// Maximum number of notes searched for a typed name.
const MAX_SCANNED_NOTES: usize = 20_000;

/// An earlier message that is edited and sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageResend {
    /// The message that the new one follows; `None` if it starts a session.
    pub parent: Option<MessageId>,
}

/// The message field with its suggestions and prompt history.
#[derive(Default)]
pub struct MessageComposer {
    /// The message so far.
    pub text: String,
    /// Set while an earlier message is edited to be sent again.
    pub again: Option<MessageResend>,
    /// Whether the agent is to work in a fork, a copy of the folder.
    pub in_fork: bool,
    /// Whether the user can choose that: the message begins a session.
    pub(super) can_fork: bool,
    /// Whether the field requests keyboard focus.
    pub focus: bool,
    /// Whether the caret moves to the end.
    end: bool,
    /// Position in the prompt history, and the draft from before it was opened.
    back: Option<(usize, String)>,
    /// Suggested names after the `@` or `/`, what they were found for, and the selected one.
    offers: Vec<NameSuggestion>,
    offered_for: Option<(String, usize, u64, usize)>,
    chosen: usize,
    /// Fields for the arguments of the prompt that the message calls.
    arguments: PromptFields,
    /// Position of the caret, in characters.
    caret: usize,
}

/// A name that completes what is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NameSuggestion {
    /// The label in the list of suggestions.
    name: String,
    /// What else is known of it; may be empty.
    about: String,
    /// What is written into the message.
    text: String,
}

impl NameSuggestion {
    fn mentioned(name: &str) -> NameSuggestion {
        NameSuggestion { name: name.to_owned(), about: String::new(), text: mention(name) }
    }
}

/// Function that returns earlier prompts, oldest first.
pub(super) type PromptHistory<'a> = &'a dyn Fn() -> Vec<String>;

/// The volume in which the agent works, and the names that can be called there with their revision.
pub(super) type ComposerContext<'a> = (Option<DocId>, (u64, &'a [String]));

/// What the composer requests.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ComposerAction {
    Send,
    Stop,
}

/// Returns the field's id for keyboard focus.
pub(super) fn field() -> Id {
    Id::unique("message to the agent")
}

/// Returns a name in mention syntax.
fn mention(name: &str) -> String {
    if name.contains(char::is_whitespace) { format!("@\"{name}\" ") } else { format!("@{name} ") }
}

impl MessageComposer {
    pub(super) fn show(
        &mut self,
        ui: &mut Ui,
        session: &Session,
        around: ComposerContext<'_>,
        before: PromptHistory<'_>,
        (busy, pick): (bool, impl FnOnce(&mut Ui)),
    ) -> Option<ComposerAction> {
        let mut wish = None;
        if std::mem::take(&mut self.end) {
            self.caret = self.text.chars().count();
            lately(ui, field(), self.caret);
        }
        if ui.memory(|memory| memory.has_focus(field())) {
            wish = self.keys(ui, before);
        }
        if ui.memory(|memory| memory.has_focus(field())) || self.focus {
            self.offer(session, around);
        }
        self.offers(ui);
        let offers = session.agents().setup().map(|setup| setup.offers.as_slice()).unwrap_or_default();
        if self.again.is_some() {
            ui.horizontal(|ui| {
                let (rect, response) = ui.allocate_exact_size(
                    vec2(ui.available_width() - size::MIN_CLICK_HEIGHT - space::S, size::MIN_CLICK_HEIGHT),
                    Sense::hover(),
                );
                let words = "Rephrasing your message starts another branch";
                set_accessible_name(&response, Role::Label, words);
                paint_clipped_text(
                    ui,
                    rect.left_center() - vec2(0.0, 8.0),
                    rect.width(),
                    words,
                    &theme::caption(),
                    ThemeColors::of(ui).accent,
                );
                if icon_button(ui, icons::X, "Cancel rephrasing", None).clicked() {
                    self.again = None;
                    self.text.clear();
                }
            });
        }
        let colours = ThemeColors::of(ui);
        let style = theme::small();
        let words = if offers.iter().any(|offer| !offer.prompts.is_empty()) {
            "Ask the agent. @ names notes and agents, / prompts of servers."
        } else {
            "Ask the agent. @ names notes and agents."
        };
        let hint = egui::RichText::new(words).font(style.font.clone()).color(colours.muted);
        let (rows, offering) = (self.text.lines().count().clamp(2, 8), !self.offers.is_empty());
        egui::ScrollArea::vertical().id_salt("message").max_height(180.0).show(ui, |ui| {
            let field = egui::TextEdit::multiline(&mut self.text)
                .id(field())
                .font(style.font)
                .hint_text(hint)
                .margin(egui::Margin::symmetric(8, 6))
                .desired_rows(rows)
                .desired_width(f32::INFINITY)
                .event_filter(egui::EventFilter {
                    horizontal_arrows: true,
                    vertical_arrows: true,
                    // They select or dismiss suggestions.
                    tab: offering,
                    escape: offering,
                });
            let shown = field.show(ui);
            if let Some(range) = shown.cursor_range {
                self.caret = range.primary.index.0;
            }
            let response = shown.response.response.accessible_name("Message to the agent");
            if std::mem::take(&mut self.focus) {
                response.request_focus();
            }
        });
        if self.arguments.show(ui, &self.text, offers) {
            wish = Some(ComposerAction::Send);
        }
        if self.can_fork {
            ui.horizontal(|ui| {
                if setting_rows::toggle_switch(ui, "Work in a fork", self.in_fork) {
                    self.in_fork = !self.in_fork;
                }
                let words = if self.in_fork { "Work in a fork: your folder stays as it is" } else { "Work in a fork" };
                let words = ui.painter().layout_no_wrap(words.to_owned(), theme::caption().font, colours.muted);
                let (rect, _) = ui.allocate_exact_size(
                    vec2(words.size().x.min(ui.available_width()), size::MIN_CLICK_HEIGHT),
                    Sense::hover(),
                );
                ui.painter().galley(rect.left_center() - vec2(0.0, words.size().y / 2.0), words, colours.muted);
            });
        }
        ui.horizontal(|ui| {
            pick(ui);
            let room = ui.available_width() - 72.0;
            let (rect, response) = ui.allocate_exact_size(vec2(room.max(0.0), size::MIN_CLICK_HEIGHT), Sense::hover());
            let keys = "Enter to send, Shift+Enter for a new line";
            // A truncated hint isn't helpful: the full text is in the tooltip.
            let mut said = [keys, "Enter to send"]
                .into_iter()
                .map(|keys| ui.painter().layout_no_wrap(keys.to_owned(), theme::caption().font, colours.muted));
            if let Some(said) = said.find(|said| said.size().x <= rect.width()) {
                let at = rect.left_center() - vec2(0.0, said.size().y / 2.0);
                ui.painter().galley(at, said, colours.muted);
            }
            response.on_hover_text(keys);
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                ui.spacing_mut().item_spacing.x = space::XS;
                if busy && icon_button(ui, icons::STOP, "Stop agent", None).clicked() {
                    wish = Some(ComposerAction::Stop);
                }
                if send(ui, !self.text.trim().is_empty()) {
                    wish = Some(ComposerAction::Send);
                }
            });
        });
        let wish = wish.filter(|wish| *wish == ComposerAction::Stop || !self.text.trim().is_empty());
        // What is missing is said here, so that the message isn't sent for nothing.
        wish.filter(|wish| *wish == ComposerAction::Stop || self.arguments.complete(&mut self.text, offers))
    }

    fn keys(&mut self, ui: &Ui, before: PromptHistory<'_>) -> Option<ComposerAction> {
        let open = !self.offers.is_empty();
        if open {
            let count = self.offers.len();
            if key(ui, Key::ArrowDown, Modifiers::NONE) {
                self.chosen = (self.chosen + 1) % count;
            } else if key(ui, Key::ArrowUp, Modifiers::NONE) {
                self.chosen = (self.chosen + count - 1) % count;
            } else if key(ui, Key::Enter, Modifiers::NONE) || key(ui, Key::Tab, Modifiers::NONE) {
                self.take(ui, self.chosen);
            } else if key(ui, Key::Escape, Modifiers::NONE) {
                self.offers.clear();
            }
            return None;
        }
        if key(ui, Key::Enter, Modifiers::NONE) {
            return Some(ComposerAction::Send);
        }
        let steps = match &self.back {
            Some(_) => true,
            None => self.text.is_empty(),
        };
        if steps && key(ui, Key::ArrowUp, Modifiers::NONE) {
            self.step(&before(), true);
        } else if self.back.is_some() && key(ui, Key::ArrowDown, Modifiers::NONE) {
            self.step(&before(), false);
        }
        None
    }

    /// Moves to an earlier prompt, or back towards the draft.
    fn step(&mut self, before: &[String], back: bool) {
        let (at, own) = self.back.take().unwrap_or((before.len(), self.text.clone()));
        let next = if back { at.saturating_sub(1) } else { at + 1 };
        match before.get(next) {
            Some(text) => {
                text.clone_into(&mut self.text);
                self.back = Some((next, own));
            }
            None => self.text = own,
        }
    }

    /// Returns the text before the caret.
    fn text_before_caret(&self) -> Option<&str> {
        let end = self.text.char_indices().nth(self.caret).map_or(self.text.len(), |(at, _)| at);
        self.text.get(..end)
    }

    /// Returns the typed part of a prompt's name, if the message begins with one and the caret is in it.
    fn prompt_name(&self) -> Option<&str> {
        let typed = self.text_before_caret()?.strip_prefix('/')?;
        (typed.chars().count() < 200 && !typed.contains(char::is_whitespace)).then_some(typed)
    }

    /// Returns the byte at which the name before the caret begins, and the typed part of it.
    fn name(&self) -> Option<(usize, &str)> {
        let before = self.text_before_caret()?;
        let at = before.rfind('@')?;
        let typed = &before[at + 1..];
        let begins = before[..at].chars().next_back().is_none_or(|letter| letter.is_whitespace() || letter == '(');
        (begins && !typed.contains('\n') && typed.chars().count() < 60 && !typed.contains(' ')).then_some((at, typed))
    }

    /// Returns whether a name is being typed.
    pub(super) fn is_naming_agent(&self) -> bool {
        self.name().is_some()
    }

    /// Returns whether a name is being typed that servers may offer.
    pub(super) fn is_naming_offer(&self) -> bool {
        self.name().is_some() || self.prompt_name().is_some()
    }

    /// Finds names that match the typed text.
    fn offer(&mut self, session: &Session, (volume, (revision, callable)): ComposerContext<'_>) {
        let servers = session.agents().setup().map(|setup| setup.offers.as_slice()).unwrap_or_default();
        let listed = |offer: &ServerOffer| offer.prompts.len() + offer.resources.len() + offer.templates.len();
        let known: usize = servers.iter().map(listed).sum();
        if let Some(typed) = self.prompt_name() {
            let asked = (format!("/{typed}"), 0, revision, known);
            if self.offered_for.as_ref() != Some(&asked) {
                self.offers = suggested_prompts(servers, typed);
                (self.offered_for, self.chosen) = (Some(asked), 0);
            }
            return;
        }
        let Some((at, typed)) = self.name() else {
            self.offers.clear();
            self.offered_for = None;
            return;
        };
        let asked = (typed.to_owned(), at, revision, known);
        if self.offered_for.as_ref() == Some(&asked) {
            return;
        }
        let query: Vec<char> = typed.chars().flat_map(char::to_lowercase).collect();
        let mut found: Vec<(i32, NameSuggestion)> = Vec::new();
        let mut look = |name: &str, more: i32| {
            if let Some(hit) = FuzzyCandidate::new(name).match_query(&query) {
                found.push((hit.score + more, NameSuggestion::mentioned(name)));
            }
        };
        callable.iter().for_each(|name| look(name, 2));
        let files = volume.and_then(|volume| session.volume(volume)).into_iter().flat_map(|volume| volume.files.iter());
        files.filter(|(_, row)| row.kind == FileKind::Note).take(MAX_SCANNED_NOTES).for_each(|(path, _)| look(path, 0));
        found.extend(suggested_resources(servers, &query));
        self.offers = best_suggestions(found, typed);
        (self.offered_for, self.chosen) = (Some(asked), 0);
    }

    /// Draws the suggested names above the field.
    fn offers(&mut self, ui: &mut Ui) {
        let mut clicked = None;
        for (at, NameSuggestion { name, about, .. }) in self.offers.iter().enumerate() {
            let (rect, response) =
                ui.allocate_exact_size(vec2(ui.available_width(), size::MIN_CLICK_HEIGHT), Sense::click());
            let colours = ThemeColors::of(ui);
            if at == self.chosen {
                ui.painter().rect_filled(rect, CONTROL_CORNER, colours.accent_ground);
            } else if response.hovered() {
                ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.paper));
            }
            let name = match about.is_empty() {
                true => text::untrusted_text::escape_line(name),
                false => text::untrusted_text::escape_line(&format!("{name} – {about}")).into_owned().into(),
            };
            paint_clipped_text(
                ui,
                rect.left_center() + vec2(space::S, -10.0),
                rect.width() - space::L,
                &name,
                &theme::small(),
                colours.ink,
            );
            paint_focus_ring(ui, &response, CONTROL_CORNER);
            response.widget_info(|| egui::WidgetInfo::selected(Role::ListBoxOption, true, at == self.chosen, &*name));
            if response.clicked() {
                clicked = Some(at);
            }
        }
        if let Some(at) = clicked {
            self.take(ui, at);
            self.focus = true;
        }
    }

    /// Inserts a chosen name.
    fn take(&mut self, ui: &Ui, chosen: usize) {
        let prompt = self.prompt_name().map(|typed| (0, typed.len()));
        let Some((at, length)) = prompt.or_else(|| self.name().map(|(at, typed)| (at, typed.len()))) else { return };
        let Some(name) = self.offers.get(chosen).map(|offer| offer.text.clone()) else { return };
        self.text.replace_range(at..at + 1 + length, &name);
        self.caret = self.text[..at].chars().count() + name.chars().count();
        lately(ui, field(), self.caret);
        self.offers.clear();
    }

    /// Addresses the draft to an agent by its name.
    pub fn mention_agent(&mut self, name: &str) {
        let name = mention(name);
        if !self.text.starts_with(&name) {
            self.text.insert_str(0, &name);
        }
        self.end = true;
    }

    /// Takes the message out of the field.
    pub fn take_message(&mut self) -> (String, Option<MessageResend>) {
        self.back = None;
        self.caret = 0;
        (std::mem::take(&mut self.text), self.again.take())
    }
}

/// Returns the best of these suggestions; none if the best one is typed already.
fn best_suggestions(mut found: Vec<(i32, NameSuggestion)>, typed: &str) -> Vec<NameSuggestion> {
    found.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.name.cmp(&other.1.name)));
    let is_whole = found.first().is_some_and(|(_, one)| one.name == typed);
    let best = found.into_iter().take(MAX_NAME_SUGGESTIONS).map(|(_, one)| one);
    if is_whole { Vec::new() } else { best.collect() }
}

/// Returns prompts of servers that match what is typed after the `/`.
fn suggested_prompts(servers: &[ServerOffer], typed: &str) -> Vec<NameSuggestion> {
    let query: Vec<char> = typed.chars().flat_map(char::to_lowercase).collect();
    let mut found = Vec::new();
    for offer in servers {
        for prompt in &offer.prompts {
            let name = format!("{}:{}", offer.server, prompt.name);
            let hit = FuzzyCandidate::new(&name).match_query(&query);
            let hit = hit.or_else(|| FuzzyCandidate::new(prompt.caption()).match_query(&query));
            let Some(hit) = hit else { continue };
            let text = format!("{} ", server_material::prompt_call(&offer.server, &prompt.name));
            found.push((hit.score, NameSuggestion { name, about: prompt.caption().to_owned(), text }));
        }
    }
    best_suggestions(found, typed)
}

/// Returns resources of servers whose address or name matches.
fn suggested_resources(servers: &[ServerOffer], query: &[char]) -> Vec<(i32, NameSuggestion)> {
    let mut found = Vec::new();
    for offer in servers {
        for resource in offer.resources.iter().chain(&offer.templates) {
            let name = format!("{}:{}", offer.server, resource.uri);
            let hit = FuzzyCandidate::new(&name).match_query(query);
            let hit = hit.or_else(|| FuzzyCandidate::new(&resource.name).match_query(query));
            let (Some(hit), Some(text)) = (hit, server_material::resource_mention(&offer.server, &resource.uri)) else {
                continue;
            };
            found.push((hit.score, NameSuggestion { name, about: resource.name.clone(), text: format!("{text} ") }));
        }
    }
    found
}

/// Draws the send button. Returns whether it was clicked.
fn send(ui: &mut Ui, can: bool) -> bool {
    let (rect, response) = ui.allocate_exact_size(vec2(32.0, size::MIN_CLICK_HEIGHT), Sense::click());
    let colours = ThemeColors::of(ui);
    let (ground, ink) = if can { (colours.accent, colours.paper) } else { (colours.sunken, colours.muted) };
    ui.painter().rect_filled(rect, CONTROL_CORNER, ground);
    ui.painter().text(
        rect.center(),
        egui::Align2::CENTER_CENTER,
        icons::CARET_UP,
        theme::icon_font(size::ICON_SIZE),
        ink,
    );
    if response.has_focus() {
        let stroke = egui::Stroke::new(size::FOCUS_RING_WIDTH, colours.accent);
        ui.painter().rect_stroke(rect.expand(2.0), CONTROL_CORNER, stroke, egui::StrokeKind::Inside);
    }
    set_accessible_name(&response, Role::Button, "Send");
    response.on_hover_text("Send   Enter").clicked() && can
}
