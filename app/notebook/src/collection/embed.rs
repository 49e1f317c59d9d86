//! Embedded collections: the view is drawn below the row that contains it, up to a part of the window's height. `this`
//! is the surrounding note.

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

/// No collection in a note is higher than this, and no generated view; what is longer scrolls.
const MAX_COLLECTION_EMBED_HEIGHT: f32 = 444.0;
const MAX_VIEW_EMBED_HEIGHT: f32 = 720.0;
/// Until it is known how high it is.
const PLACEHOLDER_EMBED_HEIGHT: f32 = 176.0;
/// The room above and below it.
const EMBED_PADDING: f32 = space::XS;
/// Number of frames after which unseen ones are evicted.
const EMBED_EVICTION_FRAMES: u64 = 600;

/// A row that shows a collection: its block, and the how manieth of these in it.
pub(super) type EmbedKey = (BlockId, usize);

#[derive(Default)]
struct CollectionEmbed {
    pub collection: CollectionPage,
    /// The hits, where it is a search.
    hits: Option<EmbeddedSearch>,
    /// The view, where it is a generated one.
    pub view: Option<Box<GeneratedView>>,
    /// What the link says.
    asked: Option<(String, Option<String>)>,
    /// The file that holds the collection, where that is one of its own.
    file: Option<DocId>,
    seen: u64,
    /// Where it was drawn, and whether the caret is in its row.
    top: f32,
    edited: bool,
}

/// The collections that a note shows.
#[derive(Default)]
pub struct CollectionEmbeds {
    kept: HashMap<EmbedKey, CollectionEmbed>,
    frame: u64,
    /// Answers embedded searches, once the window has set it.
    pub search: Option<SearchService>,
}

impl CollectionEmbeds {
    /// Another note is shown.
    pub fn clear(&mut self) {
        self.kept.clear();
    }

    /// Prepares for a new frame.
    pub fn begin_frame(&mut self) {
        self.frame += 1;
        let frame = self.frame;
        self.kept.retain(|_, inset| inset.seen + EMBED_EVICTION_FRAMES >= frame);
    }

    /// Whether the keyboard is in one of them.
    pub fn focused(&self) -> bool {
        self.kept.values().any(|inset| inset.collection.focused && inset.seen == self.frame)
    }

    /// The one that a command means: with the keyboard, at the caret, or the first in sight.
    pub fn command_target(&mut self) -> Option<&mut CollectionPage> {
        let frame = self.frame;
        let seen = self.kept.values_mut().filter(|inset| inset.seen == frame && inset.view.is_none());
        let first = seen.min_by(|one, other| {
            let rank = |inset: &CollectionEmbed| (!inset.collection.focused, !inset.edited);
            rank(one).cmp(&rank(other)).then(one.top.total_cmp(&other.top))
        });
        first.map(|inset| &mut inset.collection)
    }

    /// All generated views of the note, also those out of sight.
    pub fn generated_views(&mut self) -> impl Iterator<Item = &mut GeneratedView> {
        self.kept.values_mut().filter_map(|inset| inset.view.as_deref_mut())
    }

    /// The files of the collections that links in the note show.
    pub fn files(&self) -> impl Iterator<Item = DocId> {
        self.kept.values().filter_map(|inset| inset.file)
    }

    /// How high the one of a row is, with the room around it.
    pub fn height(&self, key: EmbedKey) -> f32 {
        let (high, most) =
            self.kept.get(&key).map_or((0.0, MAX_COLLECTION_EMBED_HEIGHT), |inset| match (&inset.view, &inset.hits) {
                (Some(view), _) => (view.high, MAX_VIEW_EMBED_HEIGHT),
                (None, Some(hits)) => (hits.high, MAX_COLLECTION_EMBED_HEIGHT),
                (None, None) => (inset.collection.high, MAX_COLLECTION_EMBED_HEIGHT),
            });
        2.0 * EMBED_PADDING + if high > 0.0 { high.min(most) } else { PLACEHOLDER_EMBED_HEIGHT }
    }

    /// Draws the one of a row. `text`: the row's source, which begins at the byte `start` of the note; `widest`: how
    /// far it may reach; `marked`: it is selected; `edited`: the caret is in its row.
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

    /// Returns where the collection's text is; `None` while it's being read.
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
            NotePhase::Failed(why) => Err(anyhow!("This collection cannot be read: {why}.")),
        }
    }
}

/// Collections that are kept open since notes show them, and whether they could be opened.
#[derive(Default)]
pub struct HeldCollections(pub Vec<(DocId, bool)>);
