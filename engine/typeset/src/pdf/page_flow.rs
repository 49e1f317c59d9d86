//! Page layout: turns blocks into strips that are never split, and places the strips on pages.

use super::blocks::{ListBullet, PdfBlock};
use super::text_layout::{DocumentFonts, InlinePicture, LinePiece, ParagraphItem, TextLine, WordStyle};
use super::{PaperSize, metrics};
use crate::fonts::FontSet;
use crate::tints::{Rgb, ThemeTints, mix_colors};
use pulldown_cmark::Alignment;
use std::rc::Rc;

/// An element of a strip, positioned from the strip's top left corner.
pub(super) enum StripMark {
    Fill {
        x: f32,
        y: f32,
        width: f32,
        height: f32,
        colour: Rgb,
    },
    /// Text; `y` is its baseline.
    Piece {
        x: f32,
        y: f32,
        piece: LinePiece,
        tag: usize,
    },
    Picture {
        x: f32,
        y: f32,
        object: InlinePicture,
        tag: usize,
    },
    Task {
        x: f32,
        y: f32,
        done: bool,
        state: Option<char>,
        tag: usize,
    },
}

/// The background of a strip.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct StripGround {
    /// Adjacent strips with the same number share one background.
    id: usize,
    pub(super) x: f32,
    pub(super) width: f32,
    pub(super) colour: Rgb,
}

/// A strip of content that's never split between pages.
#[derive(Default)]
pub(super) struct PageStrip {
    /// Space above the strip, except at the top of a page.
    above: f32,
    pub(super) height: f32,
    pub(super) marks: Vec<StripMark>,
    pub(super) grounds: Vec<StripGround>,
    /// Whether it must be on the same page as the next strip.
    keep_with_next: bool,
    /// Whether it starts a new page.
    starts_page: bool,
    /// The table header, repeated above the strip at the top of a page.
    head: Option<Rc<PageStrip>>,
    /// Anchors for links.
    pub(super) places: Vec<String>,
    pub(super) outline: Option<(u8, String)>,
}

/// A strip placed on a page.
pub(super) struct PlacedStrip {
    pub(super) y: f32,
    /// Top of each background; a background shared with the strip before starts at that strip's end.
    pub(super) ground: Vec<f32>,
    pub(super) strip: Rc<PageStrip>,
    /// Whether it's a repeated table header.
    pub(super) is_repeated: bool,
}

/// Role of a part of the text, for screen readers.
pub(super) enum TextRole {
    Root,
    Heading(u8, String),
    Paragraph,
    Code,
    List(bool),
    Item,
    Bullet,
    Body,
    Table,
    Row,
    Head,
    Cell,
    Quote,
    Aside,
    Note,
    Picture(String),
    Formula(String),
}

/// A node of the document structure.
pub(super) struct StructureNode {
    pub(super) role: TextRole,
    pub(super) parts: Vec<usize>,
}

/// The finished layout.
pub(super) struct LaidPages<'a> {
    pub(super) pages: Vec<(Vec<PlacedStrip>, String)>,
    pub(super) nodes: Vec<StructureNode>,
    pub(super) letters: DocumentFonts<'a>,
    pub(super) size: (f32, f32),
}

pub(super) struct PageFlow<'a> {
    letters: DocumentFonts<'a>,
    tints: &'a ThemeTints,
    size: (f32, f32),
    strips: Vec<PageStrip>,
    titles: Vec<(usize, String)>,
    x: f32,
    width: f32,
    gap: f32,
    grounds: Vec<StripGround>,
    next_ground: usize,
    nodes: Vec<StructureNode>,
    open: Vec<usize>,
    places: Vec<String>,
    starts_page: bool,
    /// Whether paragraphs use the small style, for footnotes.
    small: bool,
    /// Whether the next block follows without a gap.
    tight: bool,
}

impl<'a> PageFlow<'a> {
    pub(super) fn new(fonts: &'a FontSet, tints: &'a ThemeTints, paper: PaperSize) -> PageFlow<'a> {
        let size = paper.size_in_points();
        PageFlow {
            letters: DocumentFonts::new(fonts),
            tints,
            size,
            strips: Vec::new(),
            titles: Vec::new(),
            x: 0.0,
            width: size.0 - 2.0 * metrics::SIDE_MARGIN_PT,
            gap: 0.0,
            grounds: Vec::new(),
            next_ground: 0,
            nodes: vec![StructureNode { role: TextRole::Root, parts: Vec::new() }],
            open: vec![0],
            places: Vec::new(),
            starts_page: false,
            small: false,
            tight: false,
        }
    }

    /// Lays out a note on a new page.
    pub(super) fn lay_out_note(&mut self, title: &str, place: &str, blocks: Vec<PdfBlock>) {
        self.starts_page = true;
        self.gap = 0.0;
        self.titles.push((self.strips.len(), title.to_owned()));
        self.places.push(place.to_owned());
        let mut blocks = blocks;
        // The title goes above the properties.
        let titled = |block: Option<&PdfBlock>| matches!(block, Some(PdfBlock::Heading { level: 1, .. }));
        if titled(blocks.get(1)) && matches!(blocks.first(), Some(PdfBlock::Table { .. })) {
            blocks.swap(0, 1);
        }
        if !titled(blocks.first()) {
            let style = WordStyle { colour: self.tints.ink, ..metrics::heading_style(1).0 };
            let items = vec![ParagraphItem::Text(title.to_owned(), style)];
            self.lay_out_block(PdfBlock::Heading {
                level: 1,
                items,
                words: title.to_owned(),
                place: format!("{place}#"),
            });
        }
        self.lay_out_blocks(blocks);
        self.gap = 0.0;
    }

    fn lay_out_blocks(&mut self, blocks: Vec<PdfBlock>) {
        for block in blocks {
            self.lay_out_block(block);
        }
    }

    /// Runs `what` with a new structure node open, so that content is added to it.
    fn within_node(&mut self, is: TextRole, what: impl FnOnce(&mut Self)) {
        let node = self.add_node(is);
        self.open.push(node);
        what(self);
        self.open.pop();
    }

    fn add_node(&mut self, is: TextRole) -> usize {
        let node = self.nodes.len();
        self.nodes.push(StructureNode { role: is, parts: Vec::new() });
        let around = self.open.last().copied().unwrap_or(0);
        self.nodes[around].parts.push(node);
        node
    }

    fn push_strip(&mut self, height: f32, marks: Vec<StripMark>, keep: bool) {
        let strip = PageStrip {
            above: std::mem::take(&mut self.gap),
            height,
            marks,
            grounds: self.grounds.clone(),
            keep_with_next: keep,
            starts_page: std::mem::take(&mut self.starts_page),
            head: None,
            places: std::mem::take(&mut self.places),
            outline: None,
        };
        self.strips.push(strip);
    }

    fn request_gap(&mut self, gap: f32) {
        if std::mem::take(&mut self.tight) {
            return;
        }
        self.gap = self.gap.max(gap);
    }

    /// Lays out lines of text. The first two lines stay together, and so do the last two.
    ///
    /// `keep` also keeps them with what follows.
    fn lay_out_lines(&mut self, lines: Vec<TextLine>, x: f32, tag: usize, keep: bool) {
        let count = lines.len();
        for (index, line) in lines.into_iter().enumerate() {
            let marks = line_marks(line.pieces, x, line.base, tag);
            let together = index + 1 < count && (index == 0 || index + 2 == count);
            self.push_strip(line.height, marks, together || keep);
        }
    }

    fn lay_out_block(&mut self, block: PdfBlock) {
        match block {
            PdfBlock::Place(name) => self.places.push(name),
            PdfBlock::Heading { level, items, words, place } => {
                let (_, leading, above) = metrics::heading_style(level);
                self.places.push(place);
                self.request_gap(above);
                let first = self.strips.len();
                let tag = self.add_node(TextRole::Heading(level.min(6), words.clone()));
                let lines = self.letters.break_lines(&items, self.width, leading);
                self.lay_out_lines(lines, self.x, tag, true);
                if let Some(strip) = self.strips.get_mut(first) {
                    strip.outline = Some((level, words));
                }
                self.gap = if level <= 2 { 7.0 } else { 4.0 };
            }
            PdfBlock::Text(items) => {
                self.request_gap(metrics::PARAGRAPH_GAP_PT);
                let leading = if self.small { metrics::SMALL_LINE_HEIGHT_PT } else { metrics::LINE_HEIGHT_PT };
                let items = if self.small { with_small_style(items) } else { items };
                let tag = self.add_node(TextRole::Paragraph);
                let lines = self.letters.break_lines(&items, self.width, leading);
                self.lay_out_lines(lines, self.x, tag, false);
                self.gap = metrics::PARAGRAPH_GAP_PT;
            }
            PdfBlock::Code { lines, ground } => self.lay_out_code(lines, ground),
            PdfBlock::Table { columns, rows } => self.lay_out_table(&columns, rows),
            PdfBlock::Picture(object) => self.lay_out_picture(object),
            PdfBlock::Rule => {
                self.request_gap(metrics::PARAGRAPH_GAP_PT * 1.6);
                let fill =
                    StripMark::Fill { x: self.x, y: 0.0, width: self.width, height: 0.6, colour: self.tints.line };
                self.push_strip(0.6, vec![fill], false);
                self.gap = metrics::PARAGRAPH_GAP_PT * 1.6;
            }
            PdfBlock::List { items, numbered } => self.lay_out_list(items, numbered),
            PdfBlock::Quote(body) => {
                self.request_gap(metrics::PARAGRAPH_GAP_PT);
                let bar = StripGround { id: 0, x: self.x, width: 2.4, colour: self.tints.line };
                self.lay_out_indented(14.0, 0.0, vec![bar], |flow| {
                    flow.within_node(TextRole::Quote, |flow| flow.lay_out_blocks(body))
                });
                self.gap = metrics::PARAGRAPH_GAP_PT;
            }
            PdfBlock::Callout { colour, title, body } => {
                self.request_gap(metrics::PARAGRAPH_GAP_PT);
                let ground = mix_colors(self.tints.paper, colour, 0.08);
                let whole = StripGround { id: 0, x: self.x, width: self.width, colour: ground };
                let bar = StripGround { id: 0, x: self.x, width: 2.6, colour };
                self.lay_out_indented(metrics::GROUND_PAD_PT + 4.0, metrics::GROUND_PAD_PT, vec![whole, bar], |flow| {
                    flow.within_node(TextRole::Aside, |flow| {
                        let tag = flow.add_node(TextRole::Paragraph);
                        let lines = flow.letters.break_lines(&title, flow.width, metrics::LINE_HEIGHT_PT);
                        flow.lay_out_lines(lines, flow.x, tag, !body.is_empty());
                        (flow.gap, flow.tight) = (2.0, true);
                        flow.lay_out_blocks(body);
                        flow.tight = false;
                    });
                });
                self.gap = metrics::PARAGRAPH_GAP_PT + 2.0;
            }
            PdfBlock::Card(body) => {
                self.request_gap(metrics::PARAGRAPH_GAP_PT);
                let bar = StripGround {
                    id: 0,
                    x: self.x,
                    width: 1.2,
                    colour: mix_colors(self.tints.accent, self.tints.paper, 0.5),
                };
                self.lay_out_indented(14.0, 0.0, vec![bar], |flow| {
                    flow.within_node(TextRole::Aside, |flow| flow.lay_out_blocks(body))
                });
                self.gap = metrics::PARAGRAPH_GAP_PT;
            }
            PdfBlock::Notes(notes) => {
                self.request_gap(22.0);
                let fill = StripMark::Fill { x: self.x, y: 0.0, width: 90.0, height: 0.6, colour: self.tints.muted };
                self.push_strip(0.6, vec![fill], true);
                self.gap = 7.0;
                self.small = true;
                for (number, body) in notes {
                    self.within_node(TextRole::Note, |flow| {
                        let bullet = format!("{number}");
                        let style = WordStyle { colour: flow.tints.muted, ..metrics::small_style() };
                        flow.lay_out_item(
                            vec![ParagraphItem::Text(bullet, style)],
                            None,
                            body,
                            metrics::SMALL_LINE_HEIGHT_PT,
                        );
                    });
                    self.gap = 2.0;
                }
                self.small = false;
            }
        }
    }

    /// Lays out indented content with its own backgrounds and padding at the top and bottom.
    fn lay_out_indented(&mut self, by: f32, pad: f32, grounds: Vec<StripGround>, what: impl FnOnce(&mut Self)) {
        let own = grounds.len();
        let narrow = self.width - by - pad < 60.0;
        let (x, width) = (self.x, self.width);
        for mut ground in grounds {
            self.next_ground += 1;
            ground.id = self.next_ground;
            self.grounds.push(ground);
        }
        if !narrow {
            self.x += by;
            self.width -= by + pad;
        }
        if pad > 0.0 {
            self.push_strip(pad - 2.0, Vec::new(), true);
        }
        let first = self.strips.len();
        what(self);
        if pad > 0.0 {
            self.gap = 0.0;
            if self.strips.len() > first
                && let Some(last) = self.strips.last_mut()
            {
                last.keep_with_next = true;
            }
            self.push_strip(pad - 1.0, Vec::new(), false);
        }
        (self.x, self.width) = (x, width);
        self.grounds.truncate(self.grounds.len() - own);
    }

    fn lay_out_list(&mut self, items: Vec<(ListBullet, Vec<PdfBlock>)>, numbered: bool) {
        // A nested list is as close as the items are.
        if self.open.last().is_some_and(|open| matches!(self.nodes[*open].role, TextRole::Body)) {
            self.gap = 3.0;
        }
        self.request_gap(3.0);
        self.within_node(TextRole::List(numbered), |flow| {
            for (bullet, body) in items {
                flow.within_node(TextRole::Item, |flow| {
                    let style = WordStyle { colour: flow.tints.muted, ..metrics::body_style() };
                    let (words, task) = match bullet {
                        ListBullet::Dot => (vec![ParagraphItem::Text("•".to_owned(), style)], None),
                        ListBullet::Number(number) => (vec![ParagraphItem::Text(format!("{number}."), style)], None),
                        ListBullet::Task { done, state } => (Vec::new(), Some((done, state))),
                    };
                    let leading = if flow.small { metrics::SMALL_LINE_HEIGHT_PT } else { metrics::LINE_HEIGHT_PT };
                    flow.lay_out_item(words, task, body, leading);
                });
                flow.gap = 3.0;
            }
        });
        self.gap = metrics::PARAGRAPH_GAP_PT;
    }

    fn lay_out_item(
        &mut self,
        bullet: Vec<ParagraphItem>,
        task: Option<(bool, Option<char>)>,
        body: Vec<PdfBlock>,
        leading: f32,
    ) {
        let (x, width) = (self.x, self.width);
        let wide = self.letters.measure_items(&bullet) + 5.0;
        let by = metrics::LIST_INDENT_PT.max(wide);
        if self.width - by > 60.0 {
            self.x += by;
            self.width -= by;
        }
        let first = self.strips.len();
        let tag = self.add_node(TextRole::Bullet);
        let gap = self.gap;
        self.within_node(TextRole::Body, |flow| flow.lay_out_blocks(body));
        if self.strips.len() == first {
            self.gap = gap;
            self.push_strip(leading, Vec::new(), false);
        }
        let line = self.letters.break_lines(&bullet, f32::INFINITY, leading).into_iter().next();
        if let Some(strip) = self.strips.get_mut(first) {
            // A paragraph at the start of an item has the gap of the item, not that of a paragraph.
            strip.above = gap;
            if let Some(line) = line.filter(|_| task.is_none()) {
                let at = if line.width > metrics::LIST_INDENT_PT - 5.0 { x } else { x + by - 6.0 - line.width };
                let at = if matches!(bullet.first(), Some(ParagraphItem::Text(text, _)) if text == "•") {
                    x + 5.0
                } else {
                    at
                };
                strip.marks.splice(0..0, line_marks(line.pieces, at, line.base, tag));
            }
            if let Some((done, state)) = task {
                strip.marks.insert(0, StripMark::Task { x: x + 2.0, y: (leading - 9.0) / 2.0 + 0.2, done, state, tag });
            }
        }
        (self.x, self.width) = (x, width);
    }

    fn lay_out_code(&mut self, lines: Vec<Vec<ParagraphItem>>, ground: bool) {
        self.request_gap(if ground { metrics::PARAGRAPH_GAP_PT } else { 3.0 });
        let colour = self.tints.sunken;
        let grounds = match ground {
            true => vec![StripGround { id: 0, x: self.x, width: self.width, colour }],
            false => Vec::new(),
        };
        let pad = if ground { metrics::GROUND_PAD_PT } else { 0.0 };
        let by = if ground { metrics::GROUND_PAD_PT } else { 2.0 };
        self.lay_out_indented(by, pad, grounds, |flow| {
            let tag = flow.add_node(TextRole::Code);
            let count = lines.len();
            for (index, line) in lines.into_iter().enumerate() {
                // Empty lines have the same height as others.
                let line = if line.is_empty() {
                    vec![ParagraphItem::Text(" ".to_owned(), metrics::code_style())]
                } else {
                    line
                };
                let wrapped = flow.letters.break_lines(&line, flow.width, metrics::CODE_LINE_HEIGHT_PT);
                let parts = wrapped.len();
                for (part, line) in wrapped.into_iter().enumerate() {
                    let x = flow.x;
                    let marks = line_marks(line.pieces, x, line.base, tag);
                    let near = index < 2 || index + 3 > count;
                    flow.push_strip(line.height, marks, part + 1 < parts || (near && index + 1 < count && index != 2));
                }
            }
        });
        self.gap = if ground { metrics::PARAGRAPH_GAP_PT + 2.0 } else { metrics::PARAGRAPH_GAP_PT };
    }

    fn lay_out_picture(&mut self, mut object: InlinePicture) {
        self.request_gap(metrics::PARAGRAPH_GAP_PT);
        let most = self.size.1 - metrics::TOP_MARGIN_PT - metrics::BOTTOM_MARGIN_PT - 40.0;
        let (room, high) = (self.width - 2.0 * object.pad, object.height + object.depth);
        let scale = (room / object.width.max(0.1)).min(most / high.max(0.1)).min(1.0);
        object.width *= scale;
        object.height *= scale;
        object.depth *= scale;
        object.pad *= scale;
        let is = match object.formula {
            true => TextRole::Formula(object.alt.clone()),
            false => TextRole::Picture(object.alt.clone()),
        };
        let tag = self.add_node(is);
        let x = self.x + ((self.width - object.width) / 2.0).max(0.0);
        let height = object.height + object.depth + 2.0 * object.pad;
        let y = object.pad;
        self.push_strip(height, vec![StripMark::Picture { x, y, object, tag }], false);
        self.gap = metrics::PARAGRAPH_GAP_PT;
    }

    fn lay_out_table(&mut self, columns: &[Alignment], mut rows: Vec<Vec<Vec<ParagraphItem>>>) {
        const TABLE_PAD_PT: f32 = 6.0;
        const TABLE_LEADING_PT: f32 = 13.0;
        let count = rows.iter().map(Vec::len).max().unwrap_or(0).min(64);
        if count == 0 {
            return;
        }
        self.request_gap(metrics::PARAGRAPH_GAP_PT);
        rows.iter_mut().for_each(|row| row.resize_with(count, Vec::new));
        let (mut natural, mut least) = (vec![0.0_f32; count], vec![0.0_f32; count]);
        for row in &rows {
            for (column, cell) in row.iter().enumerate() {
                natural[column] = natural[column].max(self.letters.measure_items(cell) + 2.0 * TABLE_PAD_PT + 0.5);
                least[column] = least[column].max(self.letters.widest_word(cell).min(120.0) + 2.0 * TABLE_PAD_PT + 0.5);
            }
        }
        let widths = column_widths(&natural, &least, self.width);
        let total: f32 = widths.iter().sum();
        let left = self.x;
        let limit = (self.size.1 - metrics::TOP_MARGIN_PT - metrics::BOTTOM_MARGIN_PT) * 0.6;
        let mut head: Option<Rc<PageStrip>> = None;
        let table = self.add_node(TextRole::Table);
        self.open.push(table);
        let last = rows.len() - 1;
        for (index, row) in rows.into_iter().enumerate() {
            let is_head = index == 0;
            if is_head && row.iter().all(Vec::is_empty) {
                continue;
            }
            let line = self.add_node(TextRole::Row);
            self.open.push(line);
            let mut cells: Vec<(f32, Alignment, usize, std::collections::VecDeque<TextLine>)> = Vec::new();
            let mut x = left;
            for (column, cell) in row.into_iter().enumerate() {
                let tag = self.add_node(if is_head { TextRole::Head } else { TextRole::Cell });
                let lines = self.letters.break_lines(&cell, widths[column] - 2.0 * TABLE_PAD_PT, TABLE_LEADING_PT);
                let align = columns.get(column).copied().unwrap_or(Alignment::None);
                cells.push((x, align, tag, lines.into()));
                x += widths[column];
            }
            self.open.pop();
            // A row that's too high for a page is split between its lines.
            loop {
                let (mut marks_here, mut height) = (Vec::new(), 0.0_f32);
                for (column, (x, align, tag, lines)) in cells.iter_mut().enumerate() {
                    let mut y = TABLE_PAD_PT - 2.0;
                    while let Some(line) =
                        lines.pop_front_if(|line| y == TABLE_PAD_PT - 2.0 || y + line.height <= limit)
                    {
                        let free = widths[column] - 2.0 * TABLE_PAD_PT - line.width;
                        let shift = match align {
                            Alignment::Right => free,
                            Alignment::Center => free / 2.0,
                            Alignment::Left | Alignment::None => 0.0,
                        };
                        marks_here.extend(line_marks(
                            line.pieces,
                            *x + TABLE_PAD_PT + shift.max(0.0),
                            y + line.base,
                            *tag,
                        ));
                        y += line.height;
                    }
                    height = height.max(y);
                }
                let done = cells.iter().all(|(.., lines)| lines.is_empty());
                height += TABLE_PAD_PT - 2.0;
                if done && (is_head || index < last) {
                    let colour = if is_head { self.tints.muted } else { self.tints.line };
                    let thick = if is_head { 0.8 } else { 0.5 };
                    let fill = StripMark::Fill { x: left, y: height - thick, width: total, height: thick, colour };
                    marks_here.push(fill);
                }
                // The header stays with the first row, and the last row isn't left alone on a page.
                self.push_strip(height, marks_here, is_head || index + 2 == last + 1 && index > 0 && last > 2);
                if let Some(strip) = self.strips.last_mut() {
                    strip.head.clone_from(&head);
                }
                if is_head {
                    head = self.strips.last().map(|strip| Rc::new(repeat_strip(strip)));
                }
                if done {
                    break;
                }
            }
        }
        self.open.pop();
        self.gap = metrics::PARAGRAPH_GAP_PT + 3.0;
    }

    /// Places the strips on pages.
    pub(super) fn into_pages(mut self) -> LaidPages<'a> {
        let bottom = self.size.1 - metrics::BOTTOM_MARGIN_PT;
        let room = bottom - metrics::TOP_MARGIN_PT;
        let mut pages: Vec<(Vec<PlacedStrip>, String)> = Vec::new();
        let mut page: Vec<PlacedStrip> = Vec::new();
        let (mut y, mut at, mut title) = (metrics::TOP_MARGIN_PT, 0, String::new());
        let strips: Vec<Rc<PageStrip>> = std::mem::take(&mut self.strips).into_iter().map(Rc::new).collect();
        let mut titles = std::mem::take(&mut self.titles).into_iter().peekable();
        while at < strips.len() {
            // Find the group that stays together: it ends at the first strip that needn't stay with the next.
            let mut end = at;
            let high = |strip: &Rc<PageStrip>| strip.above + strip.height;
            let mut own: f32 = high(&strips[at]);
            // A group longer than a page can't stay together, so the search ends there.
            while strips[end].keep_with_next && end + 1 < strips.len() && !strips[end + 1].starts_page {
                end += 1;
                own += high(&strips[end]);
                if own - strips[at].above > room {
                    break;
                }
            }
            let alone = own - strips[at].above;
            let whole = alone <= room;
            if !whole {
                end = at;
            }
            let needs = if whole { own } else { high(&strips[at]) };
            let fresh = strips[at].starts_page;
            if !page.is_empty() && (fresh || y + needs > bottom) {
                pages.push((std::mem::take(&mut page), title.clone()));
                y = metrics::TOP_MARGIN_PT;
            }
            while let Some((_, name)) = titles.next_if(|(first, _)| *first <= at) {
                title = name;
            }
            for strip in &strips[at..=end] {
                if !page.is_empty() && y + high(strip) > bottom {
                    pages.push((std::mem::take(&mut page), title.clone()));
                    y = metrics::TOP_MARGIN_PT;
                }
                if page.is_empty() {
                    if let Some(head) = &strip.head {
                        page.push(PlacedStrip {
                            y,
                            ground: vec![y; head.grounds.len()],
                            strip: head.clone(),
                            is_repeated: true,
                        });
                        y += head.height;
                    }
                } else {
                    y += strip.above;
                }
                let ground = strip.grounds.iter().map(|ground| {
                    let before = page.last().filter(|laid| laid.strip.grounds.contains(ground));
                    before.map_or(y, |laid| laid.y + laid.strip.height)
                });
                let ground = ground.collect();
                page.push(PlacedStrip { y, ground, strip: strip.clone(), is_repeated: false });
                y += strip.height;
            }
            at = end + 1;
        }
        if !page.is_empty() {
            pages.push((page, title));
        }
        LaidPages { pages, nodes: self.nodes, letters: self.letters, size: self.size }
    }
}

fn line_marks(pieces: Vec<LinePiece>, x: f32, y: f32, tag: usize) -> Vec<StripMark> {
    pieces.into_iter().map(|piece| StripMark::Piece { x: x + piece.x, y, piece, tag }).collect()
}

/// Copies a strip's content, to repeat it on another page.
fn repeat_strip(strip: &PageStrip) -> PageStrip {
    let marks = strip.marks.iter().map(|mark| match mark {
        StripMark::Fill { x, y, width, height, colour } => {
            StripMark::Fill { x: *x, y: *y, width: *width, height: *height, colour: *colour }
        }
        StripMark::Piece { x, y, piece, tag } => StripMark::Piece { x: *x, y: *y, piece: piece.clone(), tag: *tag },
        StripMark::Picture { x, y, object, tag } => {
            StripMark::Picture { x: *x, y: *y, object: object.clone(), tag: *tag }
        }
        StripMark::Task { x, y, done, state, tag } => {
            StripMark::Task { x: *x, y: *y, done: *done, state: *state, tag: *tag }
        }
    });
    PageStrip { height: strip.height, marks: marks.collect(), grounds: strip.grounds.clone(), ..PageStrip::default() }
}

fn with_small_style(items: Vec<ParagraphItem>) -> Vec<ParagraphItem> {
    let share = metrics::small_style().size / metrics::body_style().size;
    let smaller = |item| match item {
        ParagraphItem::Text(text, style) => ParagraphItem::Text(text, WordStyle { size: style.size * share, ..style }),
        item => item,
    };
    items.into_iter().map(smaller).collect()
}

/// Returns column widths: the natural ones if they fit.
///
/// Otherwise each column gets its minimum, and the remaining space is shared in proportion to what it would like beyond
/// that.
fn column_widths(natural: &[f32], least: &[f32], room: f32) -> Vec<f32> {
    let (wish, need): (f32, f32) = (natural.iter().sum(), least.iter().sum());
    if wish <= room {
        return natural.to_vec();
    }
    if need >= room {
        return least.iter().map(|least| least * room / need).collect();
    }
    let spare = (room - need) / (wish - need);
    natural.iter().zip(least).map(|(natural, least)| least + (natural - least) * spare).collect()
}

#[cfg(test)]
mod tests {
    use super::column_widths;

    #[test]
    fn columns_share_the_room() {
        assert_eq!(column_widths(&[50.0, 60.0], &[10.0, 10.0], 200.0), [50.0, 60.0]);
        assert_eq!(column_widths(&[100.0, 300.0], &[50.0, 50.0], 250.0), [75.0, 175.0]);
        assert_eq!(column_widths(&[400.0, 400.0], &[200.0, 200.0], 200.0), [100.0, 100.0]);
    }
}
