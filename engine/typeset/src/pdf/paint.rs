//! Writes the laid out pages as PDF: text, strokes and images, with structure tags, links and the outline.

use super::blocks::LinkTarget;
use super::page_flow::{LaidPages, PlacedStrip, StripMark, StructureNode, TextRole};
use super::text_layout::{InlinePicture, LinePiece, ParagraphItem, PictureShape, PieceKind, WordStyle};
use super::{PdfDocument, PdfRequest, PdfWriteError, metrics, to_point};
use crate::tints::{Rgb, ThemeTints};
use krilla::Document;
use krilla::action::{Action, LinkAction};
use krilla::annotation::{Annotation, LinkAnnotation, Target as Goal};
use krilla::color::rgb;
use krilla::destination::XyzDestination;
use krilla::geom::{PathBuilder, Rect, Size, Transform};
use krilla::metadata::Metadata;
use krilla::num::NormalizedF32;
use krilla::outline::{Outline, OutlineNode};
use krilla::page::{Page, PageSettings};
use krilla::paint::{Fill, Stroke};
use krilla::surface::Surface;
use krilla::tagging::{
    Artifact, ArtifactType, ContentTag, Identifier, ListNumbering, SpanTag, TableHeaderScope, Tag, TagGroup, TagTree,
};
use krilla_svg::{SurfaceExt, SvgSettings};
use std::collections::HashMap;
use std::num::NonZeroU16;

/// Content of a structure node, in order.
enum StructureLeaf {
    Words(Identifier),
    Link(Identifier, Option<Identifier>),
    Formula(Identifier, String),
    Picture(Identifier, String),
}

/// A link on a page: its area, target, text, and structure leaf.
struct PageLink {
    rect: Rect,
    goal: Goal,
    words: String,
    leaf: (usize, usize),
}

pub(super) fn paint_pages(
    asked: &PdfRequest<'_>,
    tints: &ThemeTints,
    mut pages: LaidPages<'_>,
    links: &[LinkTarget],
    go_on: &mut dyn FnMut(f32) -> bool,
) -> Result<PdfDocument, PdfWriteError> {
    let mut document = Document::new_with(super::serialize_settings());
    let places = link_places(&pages);
    let count = pages.pages.len();
    let mut leaves: Vec<Vec<StructureLeaf>> = pages.nodes.iter().map(|_| Vec::new()).collect();
    let all = std::mem::take(&mut pages.pages);
    for (number, (laid, title)) in all.iter().enumerate() {
        #[allow(clippy::cast_precision_loss, reason = "a share")]
        if !go_on(number as f32 / count.max(1) as f32) {
            return Err(PdfWriteError::Stopped);
        }
        let settings = PageSettings::from_wh(pages.size.0, pages.size.1).ok_or(PdfWriteError::NoPaper)?;
        let mut page = document.start_page_with(settings);
        let mut found: Vec<PageLink> = Vec::new();
        let mut surface = page.surface();
        for laid in laid {
            let mut brush = PdfBrush { surface: &mut surface, tints, pages: &pages, leaves: &mut leaves };
            brush.paint_strip(laid, links, &places, &mut found);
        }
        paint_footer(&mut surface, tints, &mut pages, title, number + 1, count);
        surface.finish();
        add_link_annotations(&mut page, found, &mut leaves);
        page.finish();
    }
    document.set_outline(build_outline(&all));
    document.set_tag_tree(build_tag_tree(&pages.nodes, leaves));
    let metadata = Metadata::new().title(asked.title.to_owned()).creator("Tracebook".to_owned());
    document.set_metadata(metadata);
    if !go_on(1.0) {
        return Err(PdfWriteError::Stopped);
    }
    let bytes = document.finish().map_err(PdfWriteError::Unwritable)?;
    Ok(PdfDocument { bytes, pages: count, missing: pages.letters.missing.iter().copied().collect() })
}

/// Returns the page and vertical position of each anchor.
fn link_places(pages: &LaidPages<'_>) -> HashMap<String, (usize, f32)> {
    let mut places = HashMap::new();
    for (page, (laid, _)) in pages.pages.iter().enumerate() {
        for laid in laid {
            for place in &laid.strip.places {
                places.entry(place.clone()).or_insert((page, laid.y));
            }
        }
    }
    places
}

fn solid_fill(colour: Rgb) -> Fill {
    let [red, green, blue] = colour;
    Fill { paint: rgb::Color::new(red, green, blue).into(), opacity: NormalizedF32::ONE, rule: Default::default() }
}

fn fill_rect(surface: &mut Surface<'_>, x: f32, y: f32, width: f32, height: f32, colour: Rgb) {
    let Some(rect) = Rect::from_xywh(x, y, width, height) else { return };
    let mut path = PathBuilder::new();
    path.push_rect(rect);
    if let Some(path) = path.finish() {
        surface.set_fill(Some(solid_fill(colour)));
        surface.draw_path(&path);
    }
}

struct PdfBrush<'a, 'b, 'c> {
    surface: &'a mut Surface<'b>,
    tints: &'a ThemeTints,
    pages: &'a LaidPages<'c>,
    leaves: &'a mut Vec<Vec<StructureLeaf>>,
}

impl PdfBrush<'_, '_, '_> {
    fn paint_strip(
        &mut self,
        laid: &PlacedStrip,
        links: &[LinkTarget],
        places: &HashMap<String, (usize, f32)>,
        found: &mut Vec<PageLink>,
    ) {
        self.paint_grounds(laid);
        let aside = ContentTag::Artifact(Artifact::with_kind(ArtifactType::Layout));
        if laid.is_repeated {
            // A repeated table header is an artifact: screen readers have already read it.
            self.surface.start_tagged(aside);
        }
        for mark in &laid.strip.marks {
            match mark {
                StripMark::Fill { .. } => {}
                StripMark::Piece { x, y, piece, tag } => {
                    let (x, y) = (metrics::SIDE_MARGIN_PT + x, laid.y + y);
                    let link = match &piece.what {
                        PieceKind::Run { style, .. } => style.link,
                        PieceKind::Object(_) => None,
                    };
                    let goal = link.and_then(|link| link_goal(links.get(link)?, places));
                    if laid.is_repeated {
                        self.paint_piece(x, y, piece);
                        continue;
                    }
                    let content = match &piece.what {
                        PieceKind::Run { .. } => ContentTag::Span(SpanTag::empty()),
                        PieceKind::Object(_) => ContentTag::Other,
                    };
                    let id = self.surface.start_tagged(content);
                    self.paint_piece(x, y, piece);
                    self.surface.end_tagged();
                    let leaf = match (&piece.what, &goal) {
                        (PieceKind::Object(object), _) if object.formula => {
                            StructureLeaf::Formula(id, object.alt.clone())
                        }
                        (PieceKind::Object(object), _) => StructureLeaf::Picture(id, object.alt.clone()),
                        (PieceKind::Run { .. }, Some(_)) => StructureLeaf::Link(id, None),
                        (PieceKind::Run { .. }, None) => StructureLeaf::Words(id),
                    };
                    self.leaves[*tag].push(leaf);
                    if let (Some(goal), PieceKind::Run { style, text, .. }) = (goal, &piece.what)
                        && let Some(rect) = Rect::from_xywh(x, y - style.size, piece.width, style.size * 1.3)
                    {
                        let leaf = (*tag, self.leaves[*tag].len() - 1);
                        found.push(PageLink { rect, goal, words: text.trim().to_owned(), leaf });
                    }
                }
                StripMark::Picture { x, y, object, tag } => {
                    let id = (!laid.is_repeated).then(|| self.surface.start_tagged(ContentTag::Other));
                    self.paint_picture(metrics::SIDE_MARGIN_PT + x, laid.y + y, object);
                    if let Some(id) = id {
                        self.surface.end_tagged();
                        self.leaves[*tag].push(StructureLeaf::Words(id));
                    }
                }
                StripMark::Task { x, y, done, state, tag } => {
                    let words = match (done, state) {
                        (true, _) => "☑",
                        (false, Some('/')) => "◪",
                        (false, Some('-')) => "⊟",
                        (false, _) => "☐",
                    };
                    let span = SpanTag::empty().with_actual_text(Some(words));
                    let id = self.surface.start_tagged(ContentTag::Span(span));
                    self.paint_task(metrics::SIDE_MARGIN_PT + x, laid.y + y, *done, *state);
                    self.surface.end_tagged();
                    self.leaves[*tag].push(StructureLeaf::Words(id));
                }
            }
        }
        if laid.is_repeated {
            self.surface.end_tagged();
        }
        self.paint_strikes(laid);
    }

    /// Paints the backgrounds behind the text.
    fn paint_grounds(&mut self, laid: &PlacedStrip) {
        let mut fills: Vec<(f32, f32, f32, f32, Rgb)> = Vec::new();
        let bottom = laid.y + laid.strip.height;
        for (ground, top) in laid.strip.grounds.iter().zip(&laid.ground) {
            // Slightly larger, so that no seam shows between two strips.
            fills.push((
                metrics::SIDE_MARGIN_PT + ground.x,
                *top - 0.15,
                ground.width,
                bottom - top + 0.3,
                ground.colour,
            ));
        }
        for mark in &laid.strip.marks {
            match mark {
                StripMark::Fill { x, y, width, height, colour } => {
                    fills.push((metrics::SIDE_MARGIN_PT + x, laid.y + y, *width, *height, *colour));
                }
                StripMark::Piece {
                    x, y, piece: LinePiece { width, what: PieceKind::Run { style, .. }, .. }, ..
                } => {
                    if let Some(ground) = style.ground {
                        let (x, y) = (metrics::SIDE_MARGIN_PT + x, laid.y + y);
                        fills.push((x - 1.5, y - style.size * 0.98, width + 3.0, style.size * 1.3, ground));
                    }
                }
                StripMark::Piece { .. } | StripMark::Picture { .. } | StripMark::Task { .. } => {}
            }
        }
        self.paint_artifacts(fills);
    }

    /// Paints the lines through struck text.
    fn paint_strikes(&mut self, laid: &PlacedStrip) {
        let strikes = laid.strip.marks.iter().filter_map(|mark| match mark {
            StripMark::Piece { x, y, piece: LinePiece { width, what: PieceKind::Run { style, .. }, .. }, .. }
                if style.strike =>
            {
                let y = laid.y + y - style.size * 0.3;
                Some((metrics::SIDE_MARGIN_PT + x, y, *width, 0.6, self.tints.muted))
            }
            _ => None,
        });
        let strikes = strikes.collect();
        self.paint_artifacts(strikes);
    }

    fn paint_artifacts(&mut self, fills: Vec<(f32, f32, f32, f32, Rgb)>) {
        if fills.is_empty() {
            return;
        }
        self.surface.start_tagged(ContentTag::Artifact(Artifact::with_kind(ArtifactType::Layout)));
        for (x, y, width, height, colour) in fills {
            fill_rect(self.surface, x, y, width, height, colour);
        }
        self.surface.end_tagged();
    }

    fn paint_piece(&mut self, x: f32, y: f32, piece: &LinePiece) {
        match &piece.what {
            PieceKind::Object(object) => self.paint_picture(x, y - object.height, object),
            PieceKind::Run { face, glyphs, text, style } => {
                let Some(face) = self.pages.letters.faces.get(*face) else { return };
                self.surface.set_fill(Some(solid_fill(style.colour)));
                let at = to_point(x, y - style.rise);
                self.surface.draw_glyphs(at, glyphs, face.font.clone(), text, style.size, false);
            }
        }
    }

    /// Paints an image; `x` and `y` are its top left corner without the padding.
    fn paint_picture(&mut self, x: f32, y: f32, object: &InlinePicture) {
        let pad = object.pad;
        let (width, height) = (object.width + 2.0 * pad, object.height + object.depth + 2.0 * pad);
        let Some(size) = Size::from_wh(width, height) else { return };
        self.surface.push_transform(&Transform::from_translate(x - pad, y - pad));
        match object.shape.as_ref() {
            PictureShape::Image(image) => self.surface.draw_image(image.clone(), size),
            PictureShape::Drawing(drawing) => {
                self.surface.draw_svg(&drawing.tree, size, SvgSettings::default());
            }
        }
        self.surface.pop();
    }

    fn paint_task(&mut self, x: f32, y: f32, done: bool, state: Option<char>) {
        const TASK_BOX_PT: f32 = 8.6;
        let stroke = |colour: Rgb, width: f32| {
            let [red, green, blue] = colour;
            Stroke { paint: rgb::Color::new(red, green, blue).into(), width, ..Stroke::default() }
        };
        if done {
            fill_rect(self.surface, x, y, TASK_BOX_PT, TASK_BOX_PT, self.tints.accent);
            let mut path = PathBuilder::new();
            path.move_to(x + 1.9, y + 4.5);
            path.line_to(x + 3.7, y + 6.3);
            path.line_to(x + 6.8, y + 2.5);
            if let Some(path) = path.finish() {
                self.surface.set_fill(None);
                self.surface.set_stroke(Some(stroke([255; 3], 1.2)));
                self.surface.draw_path(&path);
                self.surface.set_stroke(None);
            }
            return;
        }
        let mut path = PathBuilder::new();
        if let Some(rect) = Rect::from_xywh(x + 0.4, y + 0.4, TASK_BOX_PT - 0.8, TASK_BOX_PT - 0.8) {
            path.push_rect(rect);
        }
        if let Some(path) = path.finish() {
            self.surface.set_fill(None);
            self.surface.set_stroke(Some(stroke(self.tints.muted, 0.8)));
            self.surface.draw_path(&path);
            self.surface.set_stroke(None);
        }
        match state {
            Some('/') => {
                fill_rect(self.surface, x + 2.0, y + 2.0, TASK_BOX_PT / 2.0 - 2.0, TASK_BOX_PT - 4.0, self.tints.accent)
            }
            Some(_) => {
                fill_rect(self.surface, x + 2.2, y + TASK_BOX_PT / 2.0 - 0.5, TASK_BOX_PT - 4.4, 1.0, self.tints.muted)
            }
            None => {}
        }
    }
}

fn link_goal(target: &LinkTarget, places: &HashMap<String, (usize, f32)>) -> Option<Goal> {
    match target {
        LinkTarget::Url(url) => Some(Goal::Action(Action::Link(LinkAction::new(url.clone())))),
        LinkTarget::Place(place) => {
            // If the heading no longer exists, the link leads to its note.
            let note = || places.get(place.split('#').next()?);
            let (page, y) = places.get(place).or_else(note)?;
            let at = XyzDestination::new(*page, to_point(0.0, (y - 12.0).max(0.0)));
            Some(Goal::Destination(at.into()))
        }
    }
}

fn add_link_annotations(page: &mut Page<'_>, found: Vec<PageLink>, leaves: &mut [Vec<StructureLeaf>]) {
    for PageLink { rect, goal, words, leaf: (node, at) } in found {
        let id = page.add_tagged_annotation(Annotation::new_link(LinkAnnotation::new(rect, goal), Some(words)));
        if let Some(StructureLeaf::Link(_, own)) = leaves.get_mut(node).and_then(|leaves| leaves.get_mut(at)) {
            *own = Some(id);
        }
    }
}

#[allow(clippy::too_many_arguments, reason = "what stands at the foot of a page")]
fn paint_footer(
    surface: &mut Surface<'_>,
    tints: &ThemeTints,
    pages: &mut LaidPages<'_>,
    title: &str,
    number: usize,
    count: usize,
) {
    let style = WordStyle { colour: tints.muted, size: 8.0, ..metrics::small_style() };
    let width = pages.size.0 - 2.0 * metrics::SIDE_MARGIN_PT;
    let y = pages.size.1 - metrics::BOTTOM_MARGIN_PT + 36.0;
    surface.start_tagged(ContentTag::Artifact(Artifact::with_kind(ArtifactType::PageNumber)));
    let words = [(title.to_owned(), false), (format!("{number} / {count}"), true)];
    for (text, right) in words {
        let lines = pages.letters.break_lines(&[ParagraphItem::Text(text, style)], width * 0.75, 10.0);
        let Some(line) = lines.into_iter().next() else { continue };
        let x = metrics::SIDE_MARGIN_PT + if right { width - line.width } else { 0.0 };
        for piece in &line.pieces {
            if let PieceKind::Run { face, glyphs, text, style } = &piece.what
                && let Some(face) = pages.letters.faces.get(*face)
            {
                surface.set_fill(Some(solid_fill(style.colour)));
                surface.draw_glyphs(to_point(x + piece.x, y), glyphs, face.font.clone(), text, style.size, false);
            }
        }
    }
    surface.end_tagged();
}

/// Builds the outline that a PDF viewer shows beside the pages.
fn build_outline(pages: &[(Vec<PlacedStrip>, String)]) -> Outline {
    let mut outline = Outline::new();
    let mut open: Vec<(u8, OutlineNode)> = Vec::new();
    let mut close = |open: &mut Vec<(u8, OutlineNode)>, level: u8| {
        while open.last().is_some_and(|(own, _)| *own >= level) {
            let Some((_, node)) = open.pop() else { break };
            match open.last_mut() {
                Some((_, around)) => around.push_child(node),
                None => outline.push_child(node),
            }
        }
    };
    for (page, (laid, _)) in pages.iter().enumerate() {
        for laid in laid.iter().filter(|laid| !laid.is_repeated) {
            let Some((level, words)) = &laid.strip.outline else { continue };
            if words.trim().is_empty() {
                continue;
            }
            close(&mut open, *level);
            let at = XyzDestination::new(page, to_point(0.0, (laid.y - 12.0).max(0.0)));
            open.push((*level, OutlineNode::new(words.trim().to_owned(), at)));
        }
    }
    close(&mut open, 0);
    outline
}

fn build_tag_tree(nodes: &[StructureNode], leaves: Vec<Vec<StructureLeaf>>) -> TagTree {
    let mut leaves: Vec<Option<Vec<StructureLeaf>>> = leaves.into_iter().map(Some).collect();
    let mut tree = TagTree::new();
    for part in nodes.first().map(|root| root.parts.clone()).unwrap_or_default() {
        if let Some(group) = build_tag_group(part, nodes, &mut leaves) {
            tree.push(group);
        }
    }
    tree
}

fn build_tag_group(at: usize, nodes: &[StructureNode], leaves: &mut [Option<Vec<StructureLeaf>>]) -> Option<TagGroup> {
    let node = nodes.get(at)?;
    let mut group = match &node.role {
        TextRole::Root | TextRole::Aside => TagGroup::new(Tag::Div),
        TextRole::Heading(level, words) => {
            TagGroup::new(Tag::Hn(NonZeroU16::new(u16::from(*level))?, Some(words.clone()).filter(|w| !w.is_empty())))
        }
        TextRole::Paragraph | TextRole::Code => TagGroup::new(Tag::P),
        TextRole::List(true) => TagGroup::new(Tag::L(ListNumbering::Decimal)),
        TextRole::List(false) => TagGroup::new(Tag::L(ListNumbering::Disc)),
        TextRole::Item => TagGroup::new(Tag::LI),
        TextRole::Bullet => TagGroup::new(Tag::Lbl),
        TextRole::Body => TagGroup::new(Tag::LBody),
        TextRole::Table => TagGroup::new(Tag::Table),
        TextRole::Row => TagGroup::new(Tag::TR),
        TextRole::Head => TagGroup::new(Tag::TH(TableHeaderScope::Column)),
        TextRole::Cell => TagGroup::new(Tag::TD),
        TextRole::Quote => TagGroup::new(Tag::BlockQuote),
        TextRole::Note => TagGroup::new(Tag::Note),
        TextRole::Picture(alt) => TagGroup::new(Tag::Figure(Some(alt.clone()))),
        TextRole::Formula(alt) => TagGroup::new(Tag::Formula(Some(alt.clone()))),
    };
    for leaf in leaves.get_mut(at)?.take()? {
        match leaf {
            StructureLeaf::Words(id) => group.push(id),
            StructureLeaf::Link(id, annotation) => {
                let mut link = TagGroup::new(Tag::Link);
                link.push(id);
                if let Some(annotation) = annotation {
                    link.push(annotation);
                }
                group.push(link);
            }
            StructureLeaf::Formula(id, alt) => {
                let mut formula = TagGroup::new(Tag::Formula(Some(alt)));
                formula.push(id);
                group.push(formula);
            }
            StructureLeaf::Picture(id, alt) => {
                let mut picture = TagGroup::new(Tag::Figure(Some(alt)));
                picture.push(id);
                group.push(picture);
            }
        }
    }
    for part in &node.parts {
        if let Some(inner) = self::build_tag_group(*part, nodes, leaves) {
            group.push(inner);
        }
    }
    Some(group)
}
