//! The learning curve as a plot: a bar for the runs of each week or month, with the part that asked no model, and the
//! share that was done as a line.

use super::widgets;
use agent::learning_curve::{CurvePeriod, CurvePoint, learning_curve};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Pos2, Rect, Sense, Stroke, Ui, pos2, vec2};
use engine::Session;
use text::task::CalendarDay;
use ui::theme::{self, ThemeColors, space};
use ui::widgets::{paint_clipped_text, set_accessible_name};

/// Height of the plot, without the lines of text around it.
const PLOT_HEIGHT: f32 = 72.0;
/// Height of a line of text above or below the plot.
const CAPTION_HEIGHT: f32 = 20.0;
/// Maximum width of a period's bar, with the gap behind it.
const MAX_BAR_STEP: f32 = 36.0;
/// Names of the periods to choose from.
const PERIOD_NAMES: [&str; 2] = ["By week", "By month"];
const PERIODS: [CurvePeriod; 2] = [CurvePeriod::Week, CurvePeriod::Month];

/// The learning curve of all projects.
#[derive(Default)]
pub(super) struct LearningCurvePlot {
    /// Place of the chosen period in [`PERIODS`].
    period: usize,
    /// What the points were counted for: the revision of the runs, the day, and the period.
    made: Option<(u64, CalendarDay, usize)>,
    points: Vec<CurvePoint>,
}

impl LearningCurvePlot {
    fn refresh(&mut self, session: &Session) {
        let agents = session.agents();
        let today = CalendarDay(jiff::Timestamp::now().as_millisecond().div_euclid(86_400_000));
        let key = (agents.revision(), today, self.period);
        if self.made == Some(key) {
            return;
        }
        self.made = Some(key);
        let period = PERIODS.get(self.period).copied().unwrap_or_default();
        let runs = agents.runs().map(|(id, line)| ([id, agents.ancestors(id).last().copied().unwrap_or(id)], line));
        self.points = learning_curve(runs, period, today);
    }

    /// Draws the choice of the period, and the plot in the page's column.
    pub(super) fn show(&mut self, ui: &mut Ui, session: &Session) {
        widgets::row(ui, |ui| {
            self.period = widgets::filter_chips(ui, "Period", &PERIOD_NAMES, self.period).unwrap_or(self.period);
        });
        self.refresh(session);
        let (margin, width) = widgets::page_column(ui);
        let height = PLOT_HEIGHT + 2.0 * CAPTION_HEIGHT;
        let (area, response) = ui.allocate_exact_size(vec2(ui.available_width(), height), Sense::hover());
        let area = Rect::from_min_size(pos2(area.left() + margin, area.top()), vec2(width, height));
        let colours = ThemeColors::of(ui);
        let (Some(first), Some(last)) = (self.points.first(), self.points.last()) else {
            let none = "No run has ended yet.";
            paint_clipped_text(ui, area.min, width, none, &theme::caption(), colours.muted);
            set_accessible_name(&response, Role::Label, none);
            return;
        };
        let legend = "Runs, darker where no model was asked. Line: share that was done.";
        paint_clipped_text(ui, area.min, width, legend, &theme::caption(), colours.muted);
        let plot = Rect::from_min_size(area.min + vec2(0.0, CAPTION_HEIGHT), vec2(width, PLOT_HEIGHT));
        let step = (width / self.points.len() as f32).min(MAX_BAR_STEP);
        self.paint(ui, plot, step);
        let below = pos2(plot.left(), plot.bottom() + space::XS);
        let right = pos2(plot.left() + step * self.points.len() as f32, below.y);
        let style = theme::caption();
        if self.points.len() > 1 && right.x - below.x > 160.0 {
            ui.painter().text(below, Align2::LEFT_TOP, first.from.to_string(), style.font.clone(), colours.muted);
            ui.painter().text(right, Align2::RIGHT_TOP, last.from.to_string(), style.font, colours.muted);
        } else {
            paint_clipped_text(ui, below, width, &last.describe(), &style, colours.muted);
        }
        let lines: Vec<String> = self.points.iter().map(CurvePoint::describe).collect();
        set_accessible_name(&response, Role::Image, &format!("Learning curve\n{}", lines.join("\n")));
        let hovered = response.hover_pos().map(|at| ((at.x - plot.left()) / step).floor());
        let hovered = hovered.filter(|place| *place >= 0.0).and_then(|place| self.points.get(place as usize));
        if let Some(point) = hovered {
            response.on_hover_text(point.describe());
        }
    }

    fn paint(&self, ui: &Ui, plot: Rect, step: f32) {
        let (colours, painter) = (ThemeColors::of(ui), ui.painter());
        let most = self.points.iter().map(|point| point.runs).max().unwrap_or(0).max(1);
        let height = |count: u64| plot.height() * (count as f32 / most as f32);
        let mut line: Vec<Pos2> = Vec::new();
        for (place, point) in self.points.iter().enumerate() {
            let left = plot.left() + step * place as f32;
            let bar = |count: u64| {
                let top_left = pos2(left, plot.bottom() - height(count));
                Rect::from_min_max(top_left, pos2(left + (step - 2.0).max(1.0), plot.bottom()))
            };
            painter.rect_filled(bar(point.runs), 1.0, colours.accent_ground);
            painter.rect_filled(bar(point.without_model), 1.0, colours.accent);
            // Periods without runs have no share, and the line passes over them.
            if let Some(share) = point.done_share() {
                line.push(pos2(left + step / 2.0, plot.bottom() - plot.height() * share as f32));
            }
        }
        painter.hline(plot.x_range(), plot.bottom(), Stroke::new(1.0, colours.line));
        for at in &line {
            painter.circle_filled(*at, 2.0, colours.ok);
        }
        painter.line(line, Stroke::new(1.5, colours.ok));
    }
}
