//! All tags of all volumes as a tree, with the number of notes for each. A click searches for the tag.

use super::panel_list::PanelList;
use super::search_panel::{GROUP_ROW_HEIGHT, paint_row_hover, show_panel_field, show_panel_status, show_panel_title};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Id, Rect, Sense, Ui, WidgetInfo, pos2, vec2};
use engine::Session;
use notebook::actions::PageAction;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use store::DocId;
use text::untrusted_text;
use ui::icons;
use ui::menus::{context_menu, menu_item};
use ui::text::counted;
use ui::theme::{self, InterCut, ThemeColors, size, space};
use ui::widgets::{self, paint_clipped_text};

/// A tag in the list.
struct ListedTag {
    /// The full tag as first written: `garden/herbs`.
    tag: String,
    /// The tag in lower case, by which it's folded.
    key: String,
    depth: u16,
    /// Number of notes with this tag or one below it.
    notes: usize,
    has_children: bool,
}

/// State of the tags panel.
#[derive(Default)]
pub(crate) struct TagsPanel {
    filter: String,
    /// The volumes and their link revisions that the tags were read from.
    made: Option<Vec<(DocId, u64)>>,
    tags: Vec<ListedTag>,
    folded: HashSet<String>,
    /// Visible tags, as indices into `tags`.
    rows: Vec<usize>,
    list: PanelList,
}

impl TagsPanel {
    /// Rebuilds the tags if links or properties of a note have changed.
    fn refresh(&mut self, session: &Session) {
        let stamp: Vec<(DocId, u64)> = session.volumes().map(|volume| (volume.id, volume.links.revision())).collect();
        if self.made.as_ref() == Some(&stamp) {
            return;
        }
        self.made = Some(stamp);
        let mut found: BTreeMap<Vec<String>, (String, BTreeSet<DocId>)> = BTreeMap::new();
        for volume in session.volumes() {
            let notes = volume.links.files().filter(|(_, path, _)| !agent::memory::is_memory(path));
            for (note, outline) in notes.filter_map(|(note, _, outline)| Some((note, outline?))) {
                for tag in &outline.tags {
                    let tag = tag.trim_matches('/');
                    let ends = tag.match_indices('/').map(|(at, _)| at).chain([tag.len()]);
                    for part in ends.map(|end| &tag[..end]).filter(|part| !part.is_empty()) {
                        let key = part.to_lowercase().split('/').map(ToOwned::to_owned).collect();
                        let entry = found.entry(key).or_insert_with(|| (part.to_owned(), BTreeSet::new()));
                        entry.1.insert(note);
                    }
                }
            }
        }
        self.tags = found
            .into_iter()
            .map(|(key, (tag, notes))| ListedTag {
                tag,
                depth: u16::try_from(key.len() - 1).unwrap_or(u16::MAX),
                key: key.join("/"),
                notes: notes.len(),
                has_children: false,
            })
            .collect();
        for place in 1..self.tags.len() {
            self.tags[place - 1].has_children = self.tags[place].depth > self.tags[place - 1].depth;
        }
        self.lay_rows();
    }

    fn lay_rows(&mut self) {
        let filter = self.filter.trim().trim_start_matches('#').to_lowercase();
        let mut hidden: Option<&str> = None;
        self.rows.clear();
        for (place, tag) in self.tags.iter().enumerate() {
            if !filter.is_empty() {
                self.rows.extend(tag.key.contains(&filter).then_some(place));
                continue;
            }
            if hidden.is_some_and(|above| tag.key.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))) {
                continue;
            }
            hidden = self.folded.contains(&tag.key).then_some(&tag.key);
            self.rows.push(place);
        }
    }

    /// Draws the panel.
    pub(crate) fn show(&mut self, ui: &mut Ui, session: &Session, actions: &mut Vec<PageAction>) {
        self.refresh(session);
        show_panel_title(ui, "Tags");
        let field = show_panel_field(ui, Id::unique("tags filter"), &mut self.filter, "Filter tags", &mut false);
        if field.changed() {
            self.lay_rows();
        }
        let top = self.tags.iter().filter(|tag| tag.depth == 0).count();
        let status = match (self.tags.len(), self.rows.len()) {
            (0, _) => "No note has a tag. Write #tag in a note, or list tags in its properties.".to_owned(),
            (_, 0) => format!("No tag contains “{}”.", self.filter.trim()),
            (all, _) if all == top => counted(all, "tag"),
            (all, _) => format!("{}, {} of them nested", counted(all, "tag"), all - top),
        };
        show_panel_status(ui, &status, false);
        let (mut list, mut folded) = (std::mem::take(&mut self.list), None);
        list.hides_choice = true;
        list.show(
            ui,
            "tags",
            self.rows.len(),
            |_| GROUP_ROW_HEIGHT,
            |ui, row, rect| {
                if self.show_tag(ui, self.rows[row], rect, actions) {
                    folded = Some(self.rows[row]);
                }
            },
        );
        self.list = list;
        if let Some(place) = folded {
            let key = self.tags[place].key.clone();
            if !self.folded.remove(&key) {
                self.folded.insert(key);
            }
            self.lay_rows();
            ui.ctx().request_repaint();
        }
    }

    /// Draws a tag. Returns whether to fold or unfold it.
    fn show_tag(&self, ui: &Ui, place: usize, rect: Rect, actions: &mut Vec<PageAction>) -> bool {
        let colours = ThemeColors::of(ui);
        let tag = &self.tags[place];
        let is_flat = !self.filter.trim().is_empty();
        let response = ui.interact(rect, ui.scope_id().with(("tag", &tag.key)), Sense::click());
        paint_row_hover(ui, rect, &response);
        let name = format!("#{}, {}", tag.tag, counted(tag.notes, "note"));
        response.widget_info(|| WidgetInfo::labeled(Role::TreeItem, true, untrusted_text::escape_line(&name)));
        let middle = rect.center().y;
        let indent = if is_flat { 0.0 } else { space::L * f32::from(tag.depth.min(8)) };
        let left = rect.left() + indent;
        let mut folds = false;
        if tag.has_children && !is_flat {
            let is_open = !self.folded.contains(&tag.key);
            ui.ctx().accesskit_node_builder(response.id, |node| node.set_expanded(is_open));
            let area = Rect::from_min_size(pos2(left, rect.top()), vec2(space::XL, rect.height()));
            let caret = ui.interact(area, response.id.with("fold"), Sense::click());
            let verb = if is_open { "Collapse" } else { "Expand" };
            widgets::set_accessible_name(&caret, Role::Button, &format!("{verb} #{}", tag.tag));
            widgets::paint_focus_ring(ui, &caret, theme::CONTROL_CORNER);
            let icon = if is_open { icons::CARET_DOWN } else { icons::CARET_RIGHT };
            let at = pos2(left + 11.0, middle);
            let colour = if caret.hovered() { colours.ink } else { colours.muted };
            ui.painter().text(at, Align2::CENTER_CENTER, icon, theme::icon_font(12.0), colour);
            folds = caret.clicked();
        }
        let at = pos2(rect.right() - space::S, middle);
        let number = ui.painter().text(
            at,
            Align2::RIGHT_CENTER,
            ui::text::format_thousands(tag.notes),
            theme::tabular_font(12.0),
            colours.muted,
        );
        let x = left + space::XL;
        let style = theme::TypeStyle { font: theme::inter_font(InterCut::Regular, 13.0), line: 20.0 };
        let own = if is_flat { tag.tag.as_str() } else { tag.tag.rsplit('/').next().unwrap_or(&tag.tag) };
        let hash = if tag.depth == 0 || is_flat { "#" } else { "" };
        let wide = paint_clipped_text(ui, pos2(x, middle - 10.0), size::ICON_SIZE, hash, &style, colours.muted);
        let x = x + wide;
        paint_clipped_text(ui, pos2(x, middle - 10.0), number.left() - space::S - x, own, &style, colours.ink);
        let mut searches = response.clicked() && !folds;
        context_menu(&response, "Tag menu", |ui| {
            searches |= menu_item(ui, "Search", None, true);
            if menu_item(ui, "Copy", None, true) {
                ui.ctx().copy_text(format!("#{}", tag.tag));
            }
        });
        if searches {
            actions.push(PageAction::SearchFor(format!("tag:{}", tag.tag)));
        }
        folds
    }
}
