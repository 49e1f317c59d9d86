//! Scrolls the control that gets the keyboard into sight. Tab and arrow keys also lead to controls that are scrolled
//! out of sight, and egui leaves them there.

use eframe::egui;
use egui::accesskit::{Action, ActionRequest, TreeId};
use egui::{Event, Id, Ui, WidgetRect};

/// Maximum height of what is scrolled into sight, in points. Notes and other large areas scroll by themselves.
const MAX_CONTROL_HEIGHT: f32 = 200.0;
/// Number of frames after a key in which the keyboard goes to another control because of it.
const FRAMES_AFTER_KEY: u8 = 3;

/// Follows the keyboard from control to control.
#[derive(Default)]
pub struct FocusInSight {
    focused: Option<Id>,
    /// Frames left in which a change of the focus is due to a key. A click is always in sight.
    frames_left: u8,
}

/// Returns whether a control is scrolled out of sight, or partly so.
fn is_cut(control: &WidgetRect) -> bool {
    let (whole, seen) = (control.rect, control.interact_rect.expand(1.0));
    let is_whole = seen.top() <= whole.top() && whole.bottom() <= seen.bottom();
    whole.height() <= MAX_CONTROL_HEIGHT && !(is_whole && seen.x_range().contains(whole.center().x))
}

impl egui::Plugin for FocusInSight {
    fn debug_name(&self) -> &'static str {
        "focus in sight"
    }

    fn on_begin_pass(&mut self, ui: &mut Ui) {
        let ctx = ui.ctx();
        let is_by_key = self.frames_left > 0;
        let is_key = |event: &Event| matches!(event, Event::Key { pressed: true, .. });
        self.frames_left = match ctx.input(|input| input.events.iter().any(is_key)) {
            true => FRAMES_AFTER_KEY,
            false => self.frames_left.saturating_sub(1),
        };
        let focused = ctx.memory(|memory| memory.focused());
        if focused == std::mem::replace(&mut self.focused, focused) || !is_by_key {
            return;
        }
        let Some(id) = focused else { return };
        if ctx.viewport(|view| view.prev_pass.widgets.get(id).is_some_and(is_cut)) {
            // Its scroll area does the rest when the control is drawn.
            let request = ActionRequest {
                action: Action::ScrollIntoView,
                target_tree: TreeId::ROOT,
                target_node: id.accesskit_id(),
                data: None,
            };
            ctx.input_mut(|input| input.events.push(Event::AccessKitActionRequest(request)));
        }
    }
}
