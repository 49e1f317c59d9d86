//! The properties of a note, shown as a table above its text.

use super::super::row_layout::{RowLayout, RowPart, SourceMap, SourceRun};
use super::{TextStyleContext, plain};
use eframe::egui;
use egui::{CornerRadius, Rect, pos2, vec2};
use std::ops::Range;
use text::properties::{self, Property, PropertyKind};
use ui::icons;
use ui::theme::{self, space};

/// Height of a property's line, in points.
const PROPERTY_ROW_HEIGHT: f32 = 28.0;
/// Horizontal position of the values, in points.
const PROPERTY_VALUES_X: f32 = 176.0;
/// Space between the text of a chip and its left and right edges.
const CHIP_PADDING: f32 = 6.0;

fn icon(kind: PropertyKind) -> &'static str {
    match kind {
        PropertyKind::Text | PropertyKind::Nested => icons::LIST,
        PropertyKind::Number => icons::CIRCLE,
        PropertyKind::Date => icons::CLOCK,
        PropertyKind::Check(_) => icons::CHECK_CIRCLE,
        PropertyKind::List => icons::LIST_BULLETS,
        PropertyKind::Link => icons::LINK,
    }
}

/// Lays out the front matter as a table, or as source if it can't be read.
pub(super) fn draw(source: &str, width: f32, pen: TextStyleContext<'_>) -> RowLayout {
    let kind = super::RowKind::Meta;
    match properties::read(source) {
        None => plain(source, kind, width, pen),
        Some(Err(why)) => {
            let mut drawn = plain(source, kind, width, pen);
            let words = format!("Can't read these properties: {why}.");
            let galley = pen.text(&words, &theme::caption(), pen.colours.bad, width);
            let height = galley.size().y;
            let at = vec2(0.0, drawn.height + space::XS);
            drawn.parts.push(RowPart::Text { at, galley, map: SourceMap::default(), links: Vec::new() });
            drawn.height += height + space::XS;
            drawn.text = format!("{words}\n{}", drawn.text);
            drawn
        }
        Some(Ok(properties)) => table(source, &properties, width, pen),
    }
}

fn table(source: &str, properties: &[Property], width: f32, pen: TextStyleContext<'_>) -> RowLayout {
    let mut table = PropertiesTable { source, pen, width, y: 0.0, parts: Vec::new(), text: String::new() };
    for property in properties {
        table.row(property);
    }
    let end = properties.last().map_or(source.find('\n').map_or(source.len(), |at| at + 1), |last| last.lines.end);
    let galley = pen.text("Add a property", &theme::small(), pen.colours.muted, PROPERTY_VALUES_X);
    let rect =
        Rect::from_min_size(pos2(0.0, table.y), vec2(galley.size().x + space::XL + space::S, PROPERTY_ROW_HEIGHT));
    table.icon(icons::PLUS);
    let at = vec2(space::XL, table.y + 4.0);
    table.parts.push(RowPart::Text { at, galley, map: SourceMap::default(), links: Vec::new() });
    let (insert, label) = ("name: \n".to_owned(), "Add a property".to_owned());
    table.parts.push(RowPart::Edit { rect, range: end..end, insert, caret: Some(4), label });
    let galley = pen.text("Edit source", &theme::small(), pen.colours.muted, PROPERTY_VALUES_X);
    let at = vec2(width - galley.size().x - space::S, table.y + 4.0);
    let rect = Rect::from_min_max(pos2(at.x - space::S, table.y), pos2(width, table.y + PROPERTY_ROW_HEIGHT));
    table.parts.push(RowPart::Text { at, galley, map: SourceMap::default(), links: Vec::new() });
    let (start, label) = (source.find('\n').map_or(0, |at| at + 1), "Edit source of properties".to_owned());
    table.parts.push(RowPart::Edit { rect, range: start..start, insert: String::new(), caret: Some(0), label });
    table.y += PROPERTY_ROW_HEIGHT;
    RowLayout { height: table.y, parts: table.parts, text: table.text, bare: false }
}

struct PropertiesTable<'a> {
    source: &'a str,
    pen: TextStyleContext<'a>,
    width: f32,
    y: f32,
    parts: Vec<RowPart>,
    text: String,
}

impl PropertiesTable<'_> {
    fn icon(&mut self, icon: &str) {
        let style = theme::TypeStyle { font: theme::icon_font(15.0), line: 20.0 };
        let galley = self.pen.text(icon, &style, self.pen.colours.muted, 24.0);
        let at = vec2(0.0, self.y + 4.0);
        self.parts.push(RowPart::Text { at, galley, map: SourceMap::default(), links: Vec::new() });
    }

    /// Adds text from the source, as a chip or link if requested. Returns its width and height.
    fn words(&mut self, words: &str, range: &Range<usize>, x: f32, chip: bool, link: bool) -> (f32, f32) {
        let colours = self.pen.colours;
        let colour = if link || chip { colours.accent } else { colours.ink };
        let galley = self.pen.text(words, &theme::small(), colour, (self.width - x - PROPERTY_ROW_HEIGHT).max(80.0));
        let size = galley.size();
        let at = vec2(x, self.y + 4.0);
        if chip {
            let rect = Rect::from_min_size(at.to_pos2(), size).expand2(vec2(CHIP_PADDING, 0.0));
            self.parts.push(RowPart::Fill { rect, colour: colours.accent_ground, corner: CornerRadius::same(6) });
        }
        let raw = self.source.get(range.clone()).unwrap_or("");
        let start = range.start + raw.find(words).unwrap_or(0);
        let map = SourceMap {
            runs: vec![SourceRun { chars: 0, source: start..start + words.len(), exact: raw.contains(words) }],
        };
        let target = words.trim_start_matches("[[").trim_end_matches("]]");
        let target = target.split_once('|').map_or(target, |(target, _)| target).to_owned();
        let links = if link { vec![(0..words.chars().count() + 1, target)] } else { Vec::new() };
        self.parts.push(RowPart::Text { at, galley, map, links });
        (size.x, size.y)
    }

    fn row(&mut self, property: &Property) {
        let colours = self.pen.colours;
        let top = self.y;
        self.icon(icon(property.kind));
        let key = self.pen.text(&property.key, &theme::small(), colours.muted, PROPERTY_VALUES_X - space::XXL);
        let start = property.lines.start;
        let runs = vec![SourceRun { chars: 0, source: start..start + property.key.len(), exact: true }];
        let at = vec2(space::XL, self.y + 4.0);
        self.parts.push(RowPart::Text { at, galley: key, map: SourceMap { runs }, links: Vec::new() });
        self.text.push_str(&property.key);
        self.text.push_str(": ");
        let mut x = PROPERTY_VALUES_X;
        let mut height = PROPERTY_ROW_HEIGHT;
        for (index, (words, range)) in property.values.iter().enumerate() {
            self.text.push_str(if index > 0 { ", " } else { "" });
            self.text.push_str(words);
            match property.kind {
                PropertyKind::Check(done) => {
                    let rect = Rect::from_min_size(pos2(x - 2.0, self.y + 2.0), vec2(20.0, 24.0));
                    let label = property.key.clone();
                    let mark = range.clone();
                    self.parts.push(RowPart::Task { rect, mark, done, state: None, fixed: false, label });
                }
                PropertyKind::List => {
                    let link = words.starts_with("[[") || words.contains("://");
                    let room = self.width - x - PROPERTY_ROW_HEIGHT;
                    let wide = self.pen.text(words, &theme::small(), colours.ink, f32::INFINITY).size().x;
                    if wide + 2.0 * CHIP_PADDING > room && x > PROPERTY_VALUES_X {
                        x = PROPERTY_VALUES_X;
                        self.y += PROPERTY_ROW_HEIGHT;
                        height += PROPERTY_ROW_HEIGHT;
                    }
                    x += self.words(words, range, x + CHIP_PADDING, true, link).0 + space::L + space::XS;
                }
                PropertyKind::Text
                | PropertyKind::Number
                | PropertyKind::Date
                | PropertyKind::Nested
                | PropertyKind::Link => {
                    let link = property.kind == PropertyKind::Link;
                    height = height.max(self.words(words, range, x, false, link).1 + space::S);
                }
            }
        }
        self.text.push('\n');
        let style = theme::TypeStyle { font: theme::icon_font(12.0), line: 20.0 };
        let cross = self.pen.text(icons::X, &style, colours.muted, 24.0);
        let rect = Rect::from_min_size(
            pos2(self.width - PROPERTY_ROW_HEIGHT, top),
            vec2(PROPERTY_ROW_HEIGHT, PROPERTY_ROW_HEIGHT),
        );
        let at = vec2(self.width - PROPERTY_ROW_HEIGHT / 2.0 - 6.0, top + 4.0);
        self.parts.push(RowPart::Text { at, galley: cross, map: SourceMap::default(), links: Vec::new() });
        let label = format!("Remove the property {}", property.key);
        self.parts.push(RowPart::Edit {
            rect,
            range: property.lines.clone(),
            insert: String::new(),
            caret: None,
            label,
        });
        self.y = top + height;
    }
}
