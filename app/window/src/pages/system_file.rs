//! A file of the read-only volume System, with a button that copies it into the workspace.

use agent::system_volume::{self, SYSTEM_READ_ONLY, SYSTEM_VOLUME_NAME};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Rect, Sense, Ui, pos2, vec2};
use notebook::actions::PageAction;
use ui::icons;
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{paint_clipped_text, set_accessible_name, text_button};

/// The page that shows a file of System.
pub(crate) struct SystemFilePage {
    path: String,
}

impl SystemFilePage {
    pub(crate) fn new(path: String) -> SystemFilePage {
        SystemFilePage { path }
    }

    pub(crate) fn show(&self, ui: &mut Ui, actions: &mut Vec<PageAction>) {
        let colours = ThemeColors::of(ui);
        let all = ui.available_rect_before_wrap();
        let width = size::NOTE_COLUMN_WIDTH.min(all.width() - 2.0 * space::XL).max(120.0);
        let left = all.left() + ((all.width() - width) / 2.0).max(space::S);
        let column = Rect::from_min_max(pos2(left, all.top() + space::L), pos2(left + width, all.bottom()));
        let mut child = ui::layout::part(ui, "system file", column, all);
        let title = format!("{SYSTEM_VOLUME_NAME}/{}", self.path);
        let (rect, response) = child.allocate_exact_size(vec2(width, size::MIN_CLICK_HEIGHT), Sense::hover());
        let heading = theme::heading(3);
        paint_clipped_text(&child, rect.left_center() - vec2(0.0, 13.0), width, &title, &heading, colours.ink);
        set_accessible_name(&response, Role::Heading, &title);
        let (rect, response) = child.allocate_exact_size(vec2(width, size::MIN_CLICK_HEIGHT), Sense::hover());
        let at = rect.left_center() + vec2(7.0, 0.0);
        child.painter().text(at, Align2::CENTER_CENTER, icons::LOCK, theme::icon_font(14.0), colours.muted);
        let at = rect.left_center() + vec2(space::XL, -10.0);
        paint_clipped_text(&child, at, width - space::XL, SYSTEM_READ_ONLY, &theme::small(), colours.muted);
        set_accessible_name(&response, Role::Label, SYSTEM_READ_ONLY);
        child.add_space(space::XS);
        if text_button(&mut child, "Copy to workspace", true).clicked() {
            actions.push(PageAction::CopySystemFile(self.path.clone()));
        }
        child.add_space(space::L);
        let text = system_volume::read(&self.path).unwrap_or_default();
        egui::ScrollArea::vertical().id_salt(&self.path).auto_shrink(false).show(&mut child, |ui| {
            let style = theme::code();
            let mut job = egui::text::LayoutJob::default();
            job.wrap.max_width = width;
            job.append(text, 0.0, ui::widgets::format(style.font, style.line, colours.ink));
            ui.add(egui::Label::new(job).selectable(true));
            ui.add_space(space::XL);
        });
    }
}
