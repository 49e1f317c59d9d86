//! Embedded collections: the view is drawn below the row that contains it, up to a maximum height. `this` is the
//! surrounding note.

use super::{CollectionPage, CollectionSource};
use crate::actions::PageAction;
use crate::embedded_search::EmbeddedSearch;
use crate::generated_view::GeneratedView;
use crate::link_targets::link_target;
use anyhow::{Context, anyhow};
use collection::{EmbeddedCollection, is_collection, parse_embed};
use editor::note_editor::EditContext;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Pos2, Rect, Stroke, StrokeKind, Ui, vec2};
use engine::NotePhase;
use host::search::SearchService;
use std::collections::HashMap;
use store::{BlockId, DocId};
use ui::theme::{CARD_CORNER, ThemeColors, space};
use ui::widgets::set_accessible_name;

/// Maximum height of embedded collections and generated views; longer content scrolls.
const MAX_COLLECTION_EMBED_HEIGHT: f32 = 444.0;
const MAX_VIEW_EMBED_HEIGHT: f32 = 720.0;
/// Height used until the actual height is known.
const PLACEHOLDER_EMBED_HEIGHT: f32 = 176.0;
/// Space above and below an embed.
const EMBED_PADDING: f32 = space::XS;
/// Number of frames after which embeds out of sight are evicted.
const EMBED_EVICTION_FRAMES: u64 = 600;

/// An embed's block, and its index in the block.
pub(super) type EmbedKey = (BlockId, usize);

#[derive(Default)]
struct CollectionEmbed {
    pub collection: CollectionPage,
    /// The search hits, if it's a search.
    hits: Option<EmbeddedSearch>,
    /// The generated view, if it's one.
    pub view: Option<Box<GeneratedView>>,
    /// Target and view of the link.
    asked: Option<(String, Option<String>)>,
    /// The collection's file, if it has its own.
    file: Option<DocId>,
    seen: u64,
    /// Where it was last drawn, and whether the caret is in its row.
    top: f32,
    edited: bool,
}

/// Embedded collections of a note.
#[derive(Default)]
pub struct CollectionEmbeds {
    kept: HashMap<EmbedKey, CollectionEmbed>,
    frame: u64,
    /// Service for embedded searches, set by the window.
    pub search: Option<SearchService>,
}

impl CollectionEmbeds {
    /// Clears the embeds when another note is shown.
    pub fn clear(&mut self) {
        self.kept.clear();
    }

    /// Prepares for a new frame.
    pub fn begin_frame(&mut self) {
        self.frame += 1;
        let frame = self.frame;
        self.kept.retain(|_, inset| inset.seen + EMBED_EVICTION_FRAMES >= frame);
    }

    /// Returns whether one of them has keyboard focus.
    pub fn focused(&self) -> bool {
        self.kept.values().any(|inset| inset.collection.focused && inset.seen == self.frame)
    }

    /// Returns the collection that a command applies to: the focused one, the one at the caret, or the first visible
    /// one.
    pub fn command_target(&mut self) -> Option<&mut CollectionPage> {
        let frame = self.frame;
        let seen = self.kept.values_mut().filter(|inset| inset.seen == frame && inset.view.is_none());
        let first = seen.min_by(|one, other| {
            let rank = |inset: &CollectionEmbed| (!inset.collection.focused, !inset.edited);
            rank(one).cmp(&rank(other)).then(one.top.total_cmp(&other.top))
        });
        first.map(|inset| &mut inset.collection)
    }

    /// Returns all generated views of the note, including those out of sight.
    pub fn generated_views(&mut self) -> impl Iterator<Item = &mut GeneratedView> {
        self.kept.values_mut().filter_map(|inset| inset.view.as_deref_mut())
    }

    /// Returns the files of the collections embedded by links.
    pub fn files(&self) -> impl Iterator<Item = DocId> {
        self.kept.values().filter_map(|inset| inset.file)
    }

    /// Returns the height of a row's embed, with the space around it.
    pub fn height(&self, key: EmbedKey) -> f32 {
        let (high, most) =
            self.kept.get(&key).map_or((0.0, MAX_COLLECTION_EMBED_HEIGHT), |inset| match (&inset.view, &inset.hits) {
                (Some(view), _) => (view.high, MAX_VIEW_EMBED_HEIGHT),
                (None, Some(hits)) => (hits.high, MAX_COLLECTION_EMBED_HEIGHT),
                (None, None) => (inset.collection.high, MAX_COLLECTION_EMBED_HEIGHT),
            });
        2.0 * EMBED_PADDING + if high > 0.0 { high.min(most) } else { PLACEHOLDER_EMBED_HEIGHT }
    }

    /// Draws the embed of a row. `text`: the row's source, which begins at byte `start` of the note. `widest`: maximum
    /// width. `marked`: whether it's selected. `edited`: whether the caret is in its row.
    #[allow(clippy::too_many_arguments, reason = "one frame's worth of context")]
    pub fn show(
        &mut self,
        ui: &mut Ui,
        key: EmbedKey,
        text: &str,
        start: usize,
        origin: Pos2,
        widest: f32,
        (marked, edited): (bool, bool),
        world: &EditContext<'_>,
        actions: &mut Vec<PageAction>,
    ) {
        let generated = engine::generated_view::view_source(text);
        let embed = parse_embed(text);
        if generated.is_none() && embed.is_none() {
            return;
        }
        let before = self.height(key);
        let (session, note) = (world.session, world.note);
        let inset = self.kept.entry(key).or_default();
        (inset.seen, inset.top, inset.edited) = (self.frame, origin.y, edited);
        let searches = matches!(embed, Some(EmbeddedCollection::Search { .. }));
        inset.view = generated.map(|_| inset.view.take().unwrap_or_default());
        inset.hits = if searches { Some(inset.hits.take().unwrap_or_default()) } else { None };
        let width = inset.collection.wide.clamp(world.width, widest.max(world.width));
        let rect = Rect::from_min_size(origin + vec2(0.0, EMBED_PADDING), vec2(width, before - 2.0 * EMBED_PADDING));
        let colours = ThemeColors::of(ui);
        ui.painter().rect_filled(rect, CARD_CORNER, colours.paper);
        let layout = egui::Layout::top_down(egui::Align::Min);
        let builder = egui::UiBuilder::new().max_rect(rect).id_salt(("collection", key)).layout(layout);
        let mut inner = ui.new_child(builder);
        inner.set_clip_rect(rect.intersect(ui.clip_rect()));
        inner.spacing_mut().item_spacing.y = 0.0;
        match (generated, embed) {
            (Some(source), _) => {
                if let Some(view) = &mut inset.view {
                    let area = egui::ScrollArea::vertical().id_salt("view").auto_shrink([false, true]);
                    area.show(&mut inner, |ui| view.show(ui, world, source, actions));
                }
            }
            (None, Some(EmbeddedCollection::Search { text })) => {
                if let (Some(hits), Some(search)) = (&mut inset.hits, &self.search) {
                    hits.show(&mut inner, search, text, note.id, actions);
                }
            }
            (None, Some(embed)) => inset.draw(&mut inner, world, embed, start, actions),
            (None, None) => {}
        }
        let stroke = if marked { Stroke::new(2.0, colours.accent) } else { Stroke::new(1.0, colours.line) };
        ui.painter().rect_stroke(rect, CARD_CORNER, stroke, StrokeKind::Inside);
        let what = match (generated, searches) {
            (Some(_), _) => "View",
            (None, true) => "Search",
            (None, false) => "Collection",
        };
        let name = format!("{what} in {}", session.locate_file(note.id).map_or("", |(_, path)| path));
        let whole = ui.interact(rect, ui.scope_id().with(("around", key)), egui::Sense::empty());
        set_accessible_name(&whole, Role::Group, &name);
        if (self.height(key) - before).abs() > 0.5 {
            ui.ctx().request_repaint();
        }
    }
}

impl CollectionEmbed {
    fn draw(
        &mut self,
        ui: &mut Ui,
        world: &EditContext<'_>,
        embed: EmbeddedCollection<'_>,
        start: usize,
        actions: &mut Vec<PageAction>,
    ) {
        match self.source(world, embed, start) {
            Ok(Some(source)) => self.collection.show(ui, world.session, source, true, actions),
            Ok(None) => {}
            Err(why) => {
                let colour = ThemeColors::of(ui).warn;
                self.collection.say(ui, &why.to_string(), colour);
            }
        }
    }

    /// Returns the source of the collection, or `None` while it's being read.
    fn source<'a>(
        &mut self,
        world: &EditContext<'a>,
        embed: EmbeddedCollection<'a>,
        start: usize,
    ) -> anyhow::Result<Option<CollectionSource<'a>>> {
        let (session, inside) = (world.session, Some(world.note.id));
        let (target, view) = match embed {
            EmbeddedCollection::Text { text, at } => {
                (self.file, self.asked) = (None, None);
                return Ok(Some(CollectionSource { note: world.note, part: Some((text, start + at)), inside }));
            }
            EmbeddedCollection::File { target, view } => (target, view),
            EmbeddedCollection::Search { .. } => return Ok(None),
        };
        let asked = Some((target.to_owned(), view.map(str::to_owned)));
        if self.asked != asked {
            self.asked = asked;
            self.collection.reset_for_note();
            self.collection.begin_with(view.unwrap_or_default());
        }
        let found = link_target(session, world.note.id, target);
        let is_one = |file: &DocId| session.locate_file(*file).is_some_and(|(_, path)| is_collection(path));
        self.file = found.filter(is_one);
        let file = self.file.with_context(|| format!("There is no collection “{target}”."))?;
        let Some(note) = session.note(file) else { return Ok(None) };
        match &note.phase {
            NotePhase::Ready => Ok(Some(CollectionSource { note, part: None, inside })),
            NotePhase::Reading => Ok(None),
            NotePhase::Failed(why) => Err(anyhow!("Can't read this collection: {why}.")),
        }
    }
}

/// Collections kept open because notes show them, and whether they could be opened.
#[derive(Default)]
pub struct HeldCollections(pub Vec<(DocId, bool)>);
