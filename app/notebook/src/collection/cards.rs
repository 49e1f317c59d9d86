//! The cards of a collection: an image, a name, and the other columns below.

use super::{CollectionContext, CollectionPage, TableLine};
use crate::actions::PageAction;
use collection::{CollectionRow, CollectionTable};
use editor::assets::{self, Asset};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Color32, CornerRadius, Pos2, Rect, Sense, Stroke, StrokeKind, Ui, pos2, vec2};
use std::sync::Arc;
use ui::icons;
use ui::text::shown_name;
use ui::theme::{self, CARD_CORNER, InterCut, ThemeColors, space};
use ui::widgets::{paint_clipped_text, paint_focus_ring, set_accessible_name};

/// Width of a card if the view sets none.
const DEFAULT_CARD_WIDTH: f32 = 220.0;
/// Height of a column's line.
const CARD_LINE_HEIGHT: f32 = theme::size::MIN_CLICK_HEIGHT;
const CARD_GROUP_HEIGHT: f32 = 40.0;

enum CardBand {
    Group(usize),
    Cards(usize, usize),
}

impl CollectionPage {
    pub(super) fn show_cards(&mut self, ui: &mut Ui, scene: &mut CollectionContext<'_>, table: &Arc<CollectionTable>) {
        let area = ui.available_rect_before_wrap();
        let view = scene.base.views.get(self.view);
        let wanted = view.and_then(|view| view.card).unwrap_or(DEFAULT_CARD_WIDTH).max(64.0);
        let room = (area.width() - 2.0 * space::L).max(wanted);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cards beside one another")]
        let across = (((room + space::M) / (wanted + space::M)) as usize).max(1);
        #[allow(clippy::cast_precision_loss, reason = "cards beside one another")]
        let wide = ((room + space::M) / across as f32 - space::M).floor().min(wanted * 1.5);
        let pictures = table.rows.iter().any(|row| row.image.is_some());
        let picture = if pictures { (wide * 0.66).round() } else { 0.0 };
        let named = table.columns.iter().any(|column| column.name == "file.name");
        let columns = table.columns.len() - usize::from(named);
        #[allow(clippy::cast_precision_loss, reason = "a few columns")]
        let words = if named { 36.0 } else { 0.0 } + columns as f32 * CARD_LINE_HEIGHT;
        let high = picture + words + if words > 0.0 { space::S } else { 0.0 };
        let bands = self.bands(across);
        let height =
            |band: &CardBand| if matches!(band, CardBand::Group(_)) { CARD_GROUP_HEIGHT } else { high + space::M };
        let all: f32 = bands.iter().map(height).sum();
        (self.high, self.wide) = (area.top() - ui.max_rect().top() + all + space::XL, 0.0);
        self.focused = false;
        let mut inner = ui::layout::part(ui, "cards", area, area);
        egui::ScrollArea::vertical().id_salt(("cards", self.view)).auto_shrink(false).show_viewport(
            &mut inner,
            |ui, seen| {
                ui.set_min_size(vec2(area.width(), all + space::XL));
                let origin = ui.max_rect().min + vec2(space::L, space::M);
                let mut y = 0.0;
                for band in &bands {
                    let top = y;
                    y += height(band);
                    if y < seen.top() || top > seen.bottom() {
                        continue;
                    }
                    match band {
                        CardBand::Group(group) => {
                            let at = pos2(origin.x, origin.y + top);
                            let rect = Rect::from_min_size(at, vec2(room, CARD_GROUP_HEIGHT - space::S));
                            self.card_group(ui, table, rect, *group);
                        }
                        CardBand::Cards(first, last) => {
                            for (place, row) in (*first..*last).enumerate() {
                                let Some(row) = table.rows.get(row) else { continue };
                                #[allow(clippy::cast_precision_loss, reason = "cards beside one another")]
                                let x = place as f32 * (wide + space::M);
                                let at = pos2(origin.x + x, origin.y + top);
                                card(ui, scene, table, row, Rect::from_min_size(at, vec2(wide, high)), picture);
                            }
                        }
                    }
                }
            },
        );
    }

    fn bands(&self, across: usize) -> Vec<CardBand> {
        let mut bands: Vec<CardBand> = Vec::new();
        for line in &self.lines {
            match (line, bands.last_mut()) {
                (TableLine::Group(group), _) => bands.push(CardBand::Group(*group)),
                (TableLine::Row(row), Some(CardBand::Cards(first, last))) if *last - *first < across => *last = row + 1,
                (TableLine::Row(row), _) => bands.push(CardBand::Cards(*row, row + 1)),
            }
        }
        bands
    }

    pub(super) fn card_group(&mut self, ui: &Ui, table: &CollectionTable, rect: Rect, group: usize) {
        let colours = ThemeColors::of(ui);
        let Some((name, count)) = table.groups.get(group) else { return };
        let words = if name.is_empty() { "Without a value" } else { name.as_str() };
        let response = ui.interact(rect, ui.scope_id().with(("group", group)), Sense::click());
        set_accessible_name(&response, Role::Heading, &format!("{words}: {count}"));
        let icon = if self.folded.contains(name) { icons::CARET_RIGHT } else { icons::CARET_DOWN };
        let middle = rect.center().y;
        ui.painter().text(
            pos2(rect.left() + 6.0, middle),
            Align2::CENTER_CENTER,
            icon,
            theme::icon_font(12.0),
            colours.muted,
        );
        let style = theme::TypeStyle { font: theme::inter_font(InterCut::SemiBold, 13.0), line: 20.0 };
        let at = pos2(rect.left() + space::L + space::XS, middle - 10.0);
        let wide = paint_clipped_text(ui, at, rect.width() * 0.7, words, &style, colours.ink);
        let at = pos2(at.x + wide + space::S, at.y + 2.0);
        paint_clipped_text(ui, at, 80.0, &count.to_string(), &theme::caption(), colours.muted);
        paint_focus_ring(ui, &response, theme::CONTROL_CORNER);
        if response.clicked() {
            self.fold(&name.clone());
        }
    }
}

fn card(
    ui: &Ui,
    scene: &mut CollectionContext<'_>,
    table: &CollectionTable,
    row: &CollectionRow,
    rect: Rect,
    picture: f32,
) {
    let colours = ThemeColors::of(ui);
    let id = ui.scope_id().with(("card", row.file));
    let response = ui.interact(rect, id, Sense::click());
    let name = shown_name(row.path.rsplit('/').next().unwrap_or(&row.path));
    set_accessible_name(&response, Role::Link, &format!("Card {name}"));
    ui.painter().rect_filled(rect, CARD_CORNER, if response.hovered() { colours.sunken } else { colours.raised });
    if picture > 0.0 {
        let frame = rect.with_max_y(rect.top() + picture);
        cover(ui, scene, row, frame);
    }
    ui.painter().rect_stroke(rect, CARD_CORNER, Stroke::new(1.0, colours.line), StrokeKind::Inside);
    paint_focus_ring(ui, &response, CARD_CORNER);
    let mut y = rect.top() + picture + space::XS;
    let inner = rect.shrink2(vec2(space::M, 0.0));
    if table.columns.iter().any(|column| column.name == "file.name") {
        let style = theme::TypeStyle { font: theme::inter_font(InterCut::SemiBold, 13.0), line: 20.0 };
        paint_clipped_text(ui, pos2(inner.left(), y + 6.0), inner.width(), name, &style, colours.ink);
        y += 32.0;
    }
    for (column, cell) in table.columns.iter().zip(&row.cells).filter(|(column, _)| column.name != "file.name") {
        let line = Rect::from_min_size(pos2(inner.left(), y), vec2(inner.width(), CARD_LINE_HEIGHT));
        let label = (inner.width() * 0.38).min(96.0);
        let at = pos2(line.left(), line.center().y - 7.0); // on the line of its value
        paint_clipped_text(ui, at, label - space::S, &column.title, &theme::caption(), colours.muted);
        let value = line.with_min_x(line.left() + label - space::S);
        let response = ui.interact(value, id.with(&column.name), Sense::hover());
        set_accessible_name(&response, Role::Label, &format!("{} of {name}: {}", column.title, cell.to_text()));
        // Numbers are left-aligned here, since there's no column to compare.
        let shown = match cell {
            collection::CollectionCell::Number(number) => collection::CollectionCell::Date(number.to_string()),
            other => other.clone(),
        };
        super::cell::draw(
            ui,
            scene,
            value,
            id.with((&column.name, "cell")),
            &shown,
            column.editable_property().is_some(),
        );
        y += CARD_LINE_HEIGHT;
    }
    let beside = response.middle_clicked() || ui.input(|input| input.modifiers.command);
    if response.clicked() || response.middle_clicked() {
        scene.actions.push(match (scene.is_note(row), beside) {
            (true, true) => PageAction::OpenBeside(row.file),
            (true, false) => PageAction::Open(row.file),
            (false, _) => PageAction::Follow(row.path.clone()),
        });
    }
}

/// Draws a card's image, cropped to its frame.
fn cover(ui: &Ui, scene: &CollectionContext<'_>, row: &CollectionRow, frame: Rect) {
    let colours = ThemeColors::of(ui);
    let corner = CornerRadius { nw: CARD_CORNER.nw, ne: CARD_CORNER.ne, sw: 0, se: 0 };
    ui.painter().rect_filled(frame, corner, colours.sunken);
    let sight = match row.image.as_deref() {
        Some(target) if !target.contains("://") => assets::request_asset(ui.ctx(), scene.source.note.id, target),
        _ => Asset::None,
    };
    match sight {
        Asset::Picture(texture, natural) => {
            let scale = (frame.width() / natural.x.max(1.0)).max(frame.height() / natural.y.max(1.0));
            let part = vec2(frame.width() / (natural.x * scale), frame.height() / (natural.y * scale));
            let whole = Rect::from_center_size(pos2(0.5, 0.5), part.min(vec2(1.0, 1.0)));
            let image = egui::epaint::RectShape::filled(frame, corner, Color32::WHITE);
            ui.painter().add(image.with_texture(texture.id(), whole));
        }
        Asset::Waiting => {}
        Asset::Text(_) | Asset::Remark(_) | Asset::None => {
            let at: Pos2 = frame.center();
            ui.painter().text(at, Align2::CENTER_CENTER, icons::IMAGE, theme::icon_font(24.0), colours.line);
        }
    }
}
