//! The window at half and three times its usual scale, and on screens with a fraction of a pixel per point: every page
//! is drawn, and no control overlaps another.

use super::*;
use egui::accesskit::NodeId;
use egui_kittest::kittest::NodeT;
use engine::commands::CommandId;
use std::collections::HashMap;

/// A clickable control.
struct ScaledControl {
    label: String,
    rect: egui::Rect,
    /// The part that can be seen and clicked. The rest is scrolled out of sight.
    visible: egui::Rect,
}

fn controls(window: &Driven) -> Vec<ScaledControl> {
    let visible: HashMap<NodeId, egui::Rect> = window.ctx.viewport(|view| {
        let widgets = view.prev_pass.widgets.layers().flat_map(|(_, layer)| layer.iter());
        widgets.map(|widget| (widget.id.accesskit_id(), widget.interact_rect)).collect()
    });
    let roles = [Role::Button, Role::RadioButton, Role::Switch, Role::Tab];
    let mut found = Vec::new();
    for role in roles {
        for node in window.query_all_by_role(role) {
            let (rect, node) = (node.rect(), node.accesskit_node());
            let visible = visible.get(&node.locate().0).copied().unwrap_or(rect);
            found.push(ScaledControl { label: node.label().unwrap_or_default(), rect, visible });
        }
    }
    // Toasts float over other controls and disappear by themselves; scrolled controls may be only partly visible.
    let floats =
        |label: &str| label.starts_with("Dismiss") || label.starts_with("Bring back") || label.starts_with("Show:");
    found.retain(|control| !floats(&control.label) && control.rect.is_positive());
    found
}

fn apart(window: &mut Driven, page: &str, scale: f32) {
    if let Some(folder) = pictures_folder() {
        picture(window, &folder, &format!("{} at {:.0}", page.replace('.', " "), scale * 100.0));
    }
    let all = controls(window);
    assert!(!all.is_empty(), "{page} at {scale} has no control");
    let inside = window.ctx.content_rect().x_range().expand(1.0);
    let is_cut = |rect: &egui::Rect| !inside.contains(rect.left()) || !inside.contains(rect.right());
    // At three times the scale, pages are wider than the window.
    if let Some(ScaledControl { label, rect, .. }) = all.iter().find(|one| scale < 2.0 && is_cut(&one.rect)) {
        panic!("{page} at {scale}: “{label}” {rect:?} isn't inside {inside:?}");
    }
    for (place, one) in all.iter().enumerate() {
        for other in &all[..place] {
            let both = one.visible.intersect(other.visible);
            let over = both.is_positive() && both.width() > 1.0 && both.height() > 1.0;
            let (label, below) = (&one.label, &other.label);
            assert!(!over, "{page} at {scale}: “{label}” {:?} lies on “{below}” {:?}", one.visible, other.visible);
        }
    }
}

/// A window on a note that was edited, so that its history has two versions.
fn edited() -> (Bench, Driven) {
    let note = "# Rain\n\nSome words about rain.\n\n- [ ] a task\n\n```python\n1+1\n```\n";
    let bench = Bench::new(&[("Rain.md", note), ("Other.md", "[[Rain]]\n")]);
    let mut window = bench.opened();
    window.state_mut().place_caret(note.find("words").expect("a word"));
    window.run();
    type_text(&mut window, "many ");
    until(&mut window, "all is saved", |window| session(window).is_saved());
    (bench, window)
}

/// Goes through pages and overlays.
fn look_at_pages(window: &mut Driven, scale: f32) {
    let ctx = window.ctx.clone();
    apart(window, "the note", scale);
    for page in [
        CommandId::ViewRight,
        CommandId::NoteHistory,
        CommandId::NoteWriters,
        CommandId::ViewAgenda,
        CommandId::ViewGraph,
        CommandId::ViewTrash,
        CommandId::ViewSourceControl,
    ] {
        window.state_mut().perform_command(&ctx, page);
        window.run_steps(8);
        if page.as_str().starts_with("note.") {
            until(window, page.as_str(), |window| window.query_by_label("Authors").is_some());
            window.run_steps(8);
        }
        apart(window, page.as_str(), scale);
    }
    press(window, NONE, Key::Escape);
    window.state_mut().perform_command(&ctx, CommandId::ViewRight);
    window.run();
    for overlay in [
        CommandId::AppSettings,
        CommandId::AppKeys,
        CommandId::PaletteOpen,
        CommandId::SwitcherOpen,
        CommandId::FolderOpen,
    ] {
        window.state_mut().perform_command(&ctx, overlay);
        window.run_steps(4);
        assert!(!controls(window).is_empty(), "{overlay} at {scale}");
        press(window, NONE, Key::Escape);
    }
}

#[test]
fn nothing_lies_on_another_at_any_scale() {
    let (_bench, mut window) = edited();
    let ctx = window.ctx.clone();
    for (step, scale) in [(CommandId::ViewSmaller, 0.5), (CommandId::ViewLarger, 3.0)] {
        while (session(&window).settings().scale - scale).abs() > 0.01 {
            window.state_mut().perform_command(&ctx, step);
            window.run();
        }
        look_at_pages(&mut window, scale);
    }
}

#[test]
fn nothing_is_cut_off_on_a_screen_with_fractional_scaling() {
    let (_bench, mut window) = edited();
    for scale in [1.25, 1.5] {
        window.input_mut().viewports.entry(egui::ViewportId::ROOT).or_default().native_pixels_per_point = Some(scale);
        window.run();
        assert_eq!(window.ctx.pixels_per_point(), scale);
        look_at_pages(&mut window, scale);
    }
}
