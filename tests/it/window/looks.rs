//! Each page in both themes, at the usual size and at 800 by 600: no control overlaps another or is too small to click,
//! everything is inside the window, and all text has the contrast that WCAG 2.2 requires for AA.

use super::*;
use egui::accesskit::NodeId;
use egui::{Color32, Pos2, Rect, Shape};
use egui_kittest::kittest::NodeT;
use engine::commands::CommandId;
use std::collections::HashMap;

const RAIN: &str = "---\ntags: [wet, grey]\ndue: 2026-11-20\n---\n# Rain\n\nSome [[Other|words]] about **rain**, \
                    `code`, #wet and [the web](https://example.org).\n\n> [!warning] Flood\n> It rose.\n\n- [ ] a \
                    task 📅 2026-11-20 🔁 every week\n- [x] done\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n```python\n\
                    # six\n6 * 7\n```\n\n```python\n1 / 0\n```\n\n## Below\n\nmore\n";
const BOOKS: &str = "views:\n  - type: table\n    name: First\n    order:\n      - file.name\n      - tags\n";
/// The minimum contrast of text. It's lower for text from 24 pixels on, or from 18.66 if it's bold.
const LEAST_CONTRAST: f32 = 4.5;
/// The minimum height of clickable controls in points.
const LEAST_HEIGHT: f32 = ui::theme::size::MIN_CLICK_HEIGHT;
/// The minimum width of clickable controls in points: WCAG 2.2, target size (minimum). The grip beside a block is
/// narrower, since blocks are moved by keys and by menu, too.
const LEAST_WIDTH: f32 = 24.0;
/// What two controls may share in points: the boxes of tasks are higher than the lines of text they are in.
const MOST_OVERLAP: f32 = 4.5;
/// How the names of controls begin that are there while the pointer is over their row, and may lie on the next one.
const BESIDE_A_ROW: [&str; 4] = ["Insert a cell below", "Move block", "Fold ", "Unfold "];
/// How the names of links in the text of an output begin. They are as high as its lines.
const LINK_IN_TEXT: &str = "Line ";

/// The roles of what is clicked. The text of notes, where a click places the caret, has other roles.
const CONTROL_ROLES: [Role; 15] = [
    Role::Button,
    Role::CheckBox,
    Role::ColumnHeader,
    Role::ComboBox,
    Role::GridCell,
    Role::Link,
    Role::ListBoxOption,
    Role::ListItem,
    Role::MenuItem,
    Role::MenuItemCheckBox,
    Role::MenuItemRadio,
    Role::RadioButton,
    Role::Switch,
    Role::Tab,
    Role::TreeItem,
];

fn luminance(color: Color32) -> f32 {
    let linear = |value: u8| {
        let value = f32::from(value) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(color.r()) + 0.7152 * linear(color.g()) + 0.0722 * linear(color.b())
}

fn contrast(one: Color32, other: Color32) -> f32 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// Painted areas and texts, in order.
#[derive(Default)]
struct PaintedTexts {
    /// Filled areas from bottom to top; `None` is a picture with unknown colors.
    grounds: Vec<(Rect, Option<Color32>)>,
    /// The number of text rows that were compared with their background.
    rows: usize,
    /// Descriptions of texts with too little contrast.
    faint: Vec<String>,
}

impl PaintedTexts {
    fn ground_at(&self, at: Pos2) -> Option<Color32> {
        let mut color = Color32::BLACK;
        for (rect, painted) in &self.grounds {
            if rect.contains(at) {
                color = color.blend((*painted)?);
            }
        }
        Some(color)
    }

    fn look_at(&mut self, shape: &Shape, clip: Rect) {
        match shape {
            Shape::Vec(shapes) => shapes.iter().for_each(|shape| self.look_at(shape, clip)),
            Shape::Rect(rect) if rect.fill.a() > 0 && rect.blur_width == 0.0 => {
                let painted = rect.brush.is_none().then_some(rect.fill);
                self.grounds.push((rect.rect.intersect(clip), painted));
            }
            Shape::Mesh(mesh) => self.grounds.push((mesh.calc_bounds().intersect(clip), None)),
            Shape::Text(text) if text.opacity_factor > 0.99 => self.compare(text, clip),
            _ => {}
        }
    }

    fn compare(&mut self, text: &egui::epaint::TextShape, clip: Rect) {
        let job = &text.galley.job;
        let mut before = 0;
        for row in &text.galley.rows {
            let start = before;
            before += row.char_count_including_newline().0;
            let Some(place) = row.glyphs.iter().position(|glyph| !glyph.chr.is_whitespace()) else { continue };
            let at = text.pos + row.pos.to_vec2() + row.glyphs[place].logical_rect().center().to_vec2();
            let byte = job.text.char_indices().nth(start + place).map_or(0, |(byte, _)| byte);
            let section = job.sections.iter().find(|section| section.byte_range.contains(&byte.into()));
            let Some(style) = section.map(|section| &section.format) else { continue };
            let own = if style.color == Color32::PLACEHOLDER { text.fallback_color } else { style.color };
            let color = text.override_text_color.unwrap_or(own);
            let below = if style.background.a() > 0 { Some(style.background) } else { self.ground_at(at) };
            let (Some(below), true) = (below, clip.contains(at) && color.a() > 0) else { continue };
            let least = if style.font_id.size >= 24.0 { 3.0 } else { LEAST_CONTRAST };
            let found = contrast(below.blend(color), below);
            self.rows += 1;
            // The UI toolkit's own debug label isn't our text.
            if found < least && job.text != "Unaligned" {
                let words: String = row.text().chars().take(40).collect();
                self.faint.push(format!("“{words}” at {at:?}: {color:?} on {below:?} is {found:.2}"));
            }
        }
    }
}

/// Texts with too little contrast.
fn faint_texts(window: &Driven) -> Vec<String> {
    let mut seen = PaintedTexts::default();
    for clipped in &window.output().shapes {
        seen.look_at(&clipped.shape, clipped.clip_rect);
    }
    assert!(seen.rows > 5, "only {} rows of text were compared", seen.rows);
    seen.faint
}

/// A clickable control: its name, its place, and the part of it that can be clicked.
struct PlacedControl {
    role: Role,
    name: String,
    rect: Rect,
    clickable: Rect,
}

/// The visible controls of each layer. Roles and names are those that screen readers get.
fn placed_controls(window: &Driven) -> Vec<Vec<PlacedControl>> {
    let named: HashMap<NodeId, (Role, String)> = window
        .root()
        .children_recursive()
        .map(|node| {
            let node = node.accesskit_node();
            (node.locate().0, (node.role(), node.label().unwrap_or_default()))
        })
        .collect();
    window.ctx.viewport(|view| {
        let layers = view.prev_pass.widgets.layers();
        let controls = layers.map(|(_, layer)| {
            let clickable = layer.iter().filter(|it| it.sense.senses_click() && it.interact_rect.is_positive());
            let placed = clickable.filter_map(|it| {
                let (role, name) = named.get(&it.id.accesskit_id())?.clone();
                let is_control = CONTROL_ROLES.contains(&role);
                is_control.then_some(PlacedControl { role, name, rect: it.rect, clickable: it.interact_rect })
            });
            placed.collect::<Vec<_>>()
        });
        controls.collect()
    })
}

/// Controls that are too small to click.
fn small_controls(window: &Driven) -> Vec<String> {
    let layers = placed_controls(window);
    let count: usize = layers.iter().map(Vec::len).sum();
    assert!(count > 3, "only {count} controls were measured");
    let is_small = |control: &&PlacedControl| {
        let is_in_text = control.role == Role::Link && control.name.starts_with(LINK_IN_TEXT);
        let is_narrow = control.rect.width() < LEAST_WIDTH && control.name != "Move block";
        !is_in_text && (control.rect.height() < LEAST_HEIGHT - 0.1 || is_narrow)
    };
    let small = layers.iter().flatten().filter(is_small);
    small
        .map(|one| {
            let (size, at) = (one.rect.size(), one.rect.min);
            format!("{:?} “{}” is {:.1} by {:.1} at {at:?}", one.role, one.name, size.x, size.y)
        })
        .collect()
}

/// Controls that partly cover others. A control inside another, such as the cross of a tab, is none of them.
fn overlapping_controls(window: &Driven) -> Vec<String> {
    let mut faults = Vec::new();
    let is_beside_a_row = |one: &PlacedControl| BESIDE_A_ROW.iter().any(|name| one.name.starts_with(name));
    for mut layer in placed_controls(window) {
        layer.retain(|one| !is_beside_a_row(one));
        for (place, one) in layer.iter().enumerate() {
            for other in &layer[..place] {
                let both = one.clickable.intersect(other.clickable);
                let (rect, below) = (one.rect.expand(0.1), other.rect.expand(0.1));
                let is_on_it = rect.contains_rect(other.rect) || below.contains_rect(one.rect);
                if !is_on_it && both.is_positive() && both.width() > MOST_OVERLAP && both.height() > MOST_OVERLAP {
                    faults.push(format!("“{}” {:?} lies on “{}” {:?}", one.name, one.rect, other.name, other.rect));
                }
            }
        }
    }
    faults
}

fn look(window: &mut Driven, page: &str, faults: &mut Vec<String>) {
    window.run_steps(12);
    let size = window.ctx.content_rect().size();
    let theme = if window.ctx.global_style().visuals.dark_mode { "dark" } else { "light" };
    let name = format!("{page} {theme} {:.0}x{:.0}", size.x, size.y);
    if let Some(folder) = pictures_folder() {
        picture(window, &folder, &name.replace('.', "-"));
    }
    let found = faint_texts(window).into_iter().chain(small_controls(window)).chain(overlapping_controls(window));
    faults.extend(found.map(|fault| format!("{name}: {fault}")));
}

#[test]
fn every_page_can_be_read_and_hit_in_both_themes_and_in_a_small_window() {
    let bench = Bench::new(&[("Rain.md", RAIN), ("Other.md", "[[Rain]] [[Nowhere]]\n"), ("Books.base", BOOKS)]);
    super::source_control::commit_all(&bench);
    std::fs::write(bench.notes().join("Other.md"), "[[Rain]] [[Nowhere]] [[Rain]]\n").expect("written");
    std::fs::write(bench.notes().join("New.md"), "new\n").expect("written");
    let mut window = bench.opened();
    until(&mut window, "the repository is read", |window| window.query_by_label("Branch: main").is_some());
    until(&mut window, "the links are known", |window| session(window).volumes().all(engine::Volume::is_indexed));
    let files = |window: &Driven, name: &str| session(window).volumes().next().expect("a volume").files[name].id;
    let (rain, books) = (files(&window, "Rain.md"), files(&window, "Books.base"));
    window.state_mut().show(rain);
    until(&mut window, "the note is shown", |window| text(window).is_some_and(|text| text == RAIN));
    window.state_mut().send_command(Command::RunAll { note: rain });
    until(&mut window, "the cells have run", |window| {
        let note = session(window).note(rain).expect("the note is open");
        note.cells().all(|cell| note.latest_execution(cell).is_some_and(|run| run.status.is_final()))
    });
    let mut faults = Vec::new();
    window.set_size(egui::vec2(800.0, 600.0));
    window.run();
    // The title above the page is another heading with this name.
    let headings = window.query_all_by_role_and_label(Role::Heading, "Rain").map(|heading| heading.rect());
    let heading = headings.max_by(|one, other| one.top().total_cmp(&other.top())).expect("a heading");
    window.hover_at(heading.left_center() + egui::vec2(60.0, 0.0));
    look(&mut window, "note with the pointer over its heading", &mut faults);
    assert!(window.query_all_by_label("Move block").next().is_some(), "the grip is there");
    for dark in [false, true] {
        while window.ctx.global_style().visuals.dark_mode != dark {
            press(&mut window, CTRL_SHIFT, Key::L);
        }
        for size in [egui::vec2(1280.0, 800.0), egui::vec2(800.0, 600.0)] {
            window.set_size(size);
            window.state_mut().show(rain);
            look(&mut window, "note", &mut faults);
            let ctx = window.ctx.clone();
            for page in [
                CommandId::ViewRight,
                CommandId::AgentOpen,
                CommandId::NoteHistory,
                CommandId::NoteWriters,
                CommandId::ViewAgenda,
                CommandId::ViewGraph,
                CommandId::ViewTrash,
                CommandId::ViewSourceControl,
                CommandId::ViewMemory,
                CommandId::ViewTraces,
                CommandId::ViewBudget,
                CommandId::ViewSchedule,
                CommandId::ViewAgents,
                CommandId::ViewPlans,
                CommandId::ViewForks,
                CommandId::ViewPackages,
                CommandId::SyncStatus,
                CommandId::SyncMerges,
                CommandId::SyncLog,
                CommandId::AppWelcome,
                CommandId::ViewBroken,
            ] {
                window.state_mut().perform_command(&ctx, page);
                look(&mut window, page.as_str(), &mut faults);
                let change = window.query_by_label("Other.md, modified, not staged");
                if let Some(change) = change.filter(|_| page == CommandId::ViewSourceControl) {
                    change.click();
                    until(&mut window, "the diff", |window| {
                        window.query_all_by_label_contains("+[[Rain]]").next().is_some()
                    });
                    look(&mut window, "source control with a diff", &mut faults);
                }
            }
            if session(&window).settings().right_open {
                window.state_mut().perform_command(&ctx, CommandId::ViewRight);
            }
            window.state_mut().show(books);
            until(&mut window, "the table is shown", |window| window.query_by_label("First").is_some());
            look(&mut window, "collection", &mut faults);
            window.state_mut().show(rain);
            for overlay in [
                CommandId::AppSettings,
                CommandId::AppKeys,
                CommandId::PaletteOpen,
                CommandId::SwitcherOpen,
                CommandId::SearchOpen,
                CommandId::FolderOpen,
                CommandId::NoteRename,
                CommandId::ExportHtml,
                CommandId::FindReplace,
            ] {
                window.state_mut().perform_command(&ctx, overlay);
                look(&mut window, overlay.as_str(), &mut faults);
                let sections = if overlay == CommandId::AppSettings { super::reach::SETTINGS_SECTIONS } else { &[] };
                for section in sections {
                    window.get_by_role_and_label(Role::Tab, section).click();
                    look(&mut window, section, &mut faults);
                }
                press(&mut window, NONE, Key::Escape);
            }
        }
    }
    faults.sort();
    faults.dedup();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
