//! The theme as numbers: colors, spacing, corners, type. The only place that defines them; nothing here draws.
//!
//! Every text color has a contrast of at least 4.7 : 1 on every background, and 8 : 1 in high contrast (checked below).

use eframe::egui;
use egui::{Color32, CornerRadius, FontData, FontDefinitions, FontFamily, FontId, Margin, Shadow, Stroke, TextStyle};
use engine::{ColorTheme, ReducedMotion, Settings};
use std::cell::Cell;
use std::sync::Arc;
use text::markdown::dialect::CalloutKind;
use text::theme_file::{BaseTheme, ThemeFile};
use typeset::highlight::CodeHue;
use typeset::tints::{self, Rgb, ThemeTints};

const fn rgb([red, green, blue]: Rgb) -> Color32 {
    Color32::from_rgb(red, green, blue)
}

/// Colors of a theme.
#[derive(Debug, PartialEq)]
pub struct ThemeColors {
    /// Background of pages.
    pub paper: Color32,
    /// Background of menus, popups and dialogs.
    pub raised: Color32,
    /// Background of code and inputs.
    pub sunken: Color32,
    /// Primary text.
    pub ink: Color32,
    /// Secondary text.
    pub muted: Color32,
    /// Separators and borders.
    pub line: Color32,
    /// Links, focus, the caret.
    pub accent: Color32,
    /// Background of selections.
    pub accent_ground: Color32,
    /// Background of search matches.
    pub mark: Color32,
    /// Background of the current search match, which is also outlined.
    pub mark_strong: Color32,
    /// Success.
    pub ok: Color32,
    /// Stale or waiting state.
    pub warn: Color32,
    /// Errors.
    pub bad: Color32,
    /// Thinking steps of an agent; keywords in code.
    pub thought: Color32,
    /// Tool steps of an agent; numbers in code.
    pub tool: Color32,
    /// Background of highlighted text.
    pub lit: Color32,
    /// Background of a removed line.
    pub gone: Color32,
    /// Background of removed words in a line.
    pub gone_strong: Color32,
    /// Background of an added line.
    pub come: Color32,
    /// Background of added words in a line.
    pub come_strong: Color32,
}

impl ThemeColors {
    /// Returns the colors of a theme of the user's own: those that it doesn't set are of the theme that it's based on.
    fn from_file(file: &ThemeFile) -> ThemeColors {
        let base = if file.base == BaseTheme::Dark { &DARK } else { &LIGHT };
        let color = |name: &str, own: Color32| file.colors.get(name).map_or(own, |color| rgb(*color));
        ThemeColors {
            paper: color("paper", base.paper),
            raised: color("raised", base.raised),
            sunken: color("sunken", base.sunken),
            ink: color("ink", base.ink),
            muted: color("muted", base.muted),
            line: color("line", base.line),
            accent: color("accent", base.accent),
            accent_ground: color("accent_ground", base.accent_ground),
            mark: color("mark", base.mark),
            mark_strong: color("mark_strong", base.mark_strong),
            ok: color("ok", base.ok),
            warn: color("warn", base.warn),
            bad: color("bad", base.bad),
            thought: color("thought", base.thought),
            tool: color("tool", base.tool),
            lit: color("lit", base.lit),
            gone: color("gone", base.gone),
            gone_strong: color("gone_strong", base.gone_strong),
            come: color("come", base.come),
            come_strong: color("come_strong", base.come_strong),
        }
    }
}

/// Uses the colors of a theme of the user's own, or none.
pub fn use_custom_theme(ctx: &egui::Context, file: Option<&ThemeFile>) {
    let wanted = file.map(|file| (file.base == BaseTheme::Dark, ThemeColors::from_file(file)));
    let is_same = match (&wanted, CUSTOM_COLORS.get()) {
        (None, None) => true,
        (Some((dark, colors)), Some((is_dark, known))) => *dark == is_dark && colors == known,
        _ => false,
    };
    if is_same {
        return;
    }
    // Views keep the colors for as long as they like, so they live as long as the program. Only a change of theme by
    // the user makes new ones.
    CUSTOM_COLORS.set(wanted.map(|(dark, colors)| (dark, &*Box::leak(Box::new(colors)))));
    set_styles(ctx, APPEARANCE.get().2);
    ctx.request_repaint();
}

/// Colors of the light theme.
pub const LIGHT: ThemeColors = ThemeColors {
    paper: rgb(tints::LIGHT_TINTS.paper),
    raised: Color32::from_rgb(0xff, 0xff, 0xff),
    sunken: rgb(tints::LIGHT_TINTS.sunken),
    ink: rgb(tints::LIGHT_TINTS.ink),
    muted: rgb(tints::LIGHT_TINTS.muted),
    line: rgb(tints::LIGHT_TINTS.line),
    accent: rgb(tints::LIGHT_TINTS.accent),
    accent_ground: rgb(tints::LIGHT_TINTS.accent_ground),
    mark: rgb(tints::LIGHT_TINTS.mark),
    mark_strong: Color32::from_rgb(0xff, 0xef, 0xa8),
    ok: rgb(tints::LIGHT_TINTS.ok),
    warn: rgb(tints::LIGHT_TINTS.warn),
    bad: rgb(tints::LIGHT_TINTS.bad),
    thought: rgb(tints::LIGHT_TINTS.thought),
    tool: rgb(tints::LIGHT_TINTS.tool),
    lit: rgb(tints::LIGHT_TINTS.lit),
    gone: Color32::from_rgb(0xfd, 0xf0, 0xee),
    gone_strong: Color32::from_rgb(0xf6, 0xcd, 0xc8),
    come: Color32::from_rgb(0xed, 0xf6, 0xee),
    come_strong: Color32::from_rgb(0xc3, 0xe6, 0xca),
};

/// Colors of the dark theme.
pub const DARK: ThemeColors = ThemeColors {
    paper: rgb(tints::DARK_TINTS.paper),
    raised: Color32::from_rgb(0x1d, 0x20, 0x26),
    sunken: rgb(tints::DARK_TINTS.sunken),
    ink: rgb(tints::DARK_TINTS.ink),
    muted: rgb(tints::DARK_TINTS.muted),
    line: rgb(tints::DARK_TINTS.line),
    accent: rgb(tints::DARK_TINTS.accent),
    accent_ground: rgb(tints::DARK_TINTS.accent_ground),
    mark: rgb(tints::DARK_TINTS.mark),
    mark_strong: Color32::from_rgb(0x41, 0x35, 0x09),
    ok: rgb(tints::DARK_TINTS.ok),
    warn: rgb(tints::DARK_TINTS.warn),
    bad: rgb(tints::DARK_TINTS.bad),
    thought: rgb(tints::DARK_TINTS.thought),
    tool: rgb(tints::DARK_TINTS.tool),
    lit: rgb(tints::DARK_TINTS.lit),
    gone: Color32::from_rgb(0x2a, 0x1b, 0x1e),
    gone_strong: Color32::from_rgb(0x5c, 0x2c, 0x31),
    come: Color32::from_rgb(0x16, 0x27, 0x1c),
    come_strong: Color32::from_rgb(0x24, 0x52, 0x2f),
};

/// Colors of the light theme with high contrast.
pub const LIGHT_HIGH_CONTRAST: ThemeColors = ThemeColors {
    paper: Color32::from_rgb(0xff, 0xff, 0xff),
    raised: Color32::from_rgb(0xff, 0xff, 0xff),
    sunken: Color32::from_rgb(0xf2, 0xf2, 0xf2),
    ink: Color32::from_rgb(0x00, 0x00, 0x00),
    muted: Color32::from_rgb(0x33, 0x3a, 0x42),
    line: Color32::from_rgb(0x76, 0x7b, 0x82),
    accent: Color32::from_rgb(0x12, 0x32, 0xa8),
    accent_ground: Color32::from_rgb(0xd0, 0xdb, 0xff),
    mark: Color32::from_rgb(0xff, 0xec, 0x9c),
    mark_strong: Color32::from_rgb(0xff, 0xd0, 0x33),
    ok: Color32::from_rgb(0x0b, 0x4f, 0x1b),
    warn: Color32::from_rgb(0x6b, 0x34, 0x00),
    bad: Color32::from_rgb(0x8f, 0x0d, 0x0d),
    thought: Color32::from_rgb(0x55, 0x24, 0x9e),
    tool: Color32::from_rgb(0x04, 0x4a, 0x58),
    lit: Color32::from_rgb(0xff, 0xe9, 0x80),
    gone: Color32::from_rgb(0xff, 0xea, 0xe7),
    gone_strong: Color32::from_rgb(0xff, 0xbd, 0xb5),
    come: Color32::from_rgb(0xe3, 0xf7, 0xe6),
    come_strong: Color32::from_rgb(0xa6, 0xe3, 0xb2),
};

/// Colors of the dark theme with high contrast.
pub const DARK_HIGH_CONTRAST: ThemeColors = ThemeColors {
    paper: Color32::from_rgb(0x00, 0x00, 0x00),
    raised: Color32::from_rgb(0x0c, 0x0d, 0x10),
    sunken: Color32::from_rgb(0x14, 0x16, 0x1a),
    ink: Color32::from_rgb(0xff, 0xff, 0xff),
    muted: Color32::from_rgb(0xcf, 0xd4, 0xda),
    line: Color32::from_rgb(0x80, 0x87, 0x90),
    accent: Color32::from_rgb(0xb4, 0xc3, 0xff),
    accent_ground: Color32::from_rgb(0x25, 0x34, 0x70),
    mark: Color32::from_rgb(0x4a, 0x3e, 0x10),
    mark_strong: Color32::from_rgb(0x5c, 0x48, 0x06),
    ok: Color32::from_rgb(0x92, 0xe6, 0xa6),
    warn: Color32::from_rgb(0xff, 0xc8, 0x80),
    bad: Color32::from_rgb(0xff, 0xab, 0xab),
    thought: Color32::from_rgb(0xd4, 0xc0, 0xff),
    tool: Color32::from_rgb(0x8d, 0xe6, 0xf5),
    lit: Color32::from_rgb(0x4a, 0x42, 0x14),
    gone: Color32::from_rgb(0x32, 0x0d, 0x10),
    gone_strong: Color32::from_rgb(0x70, 0x1d, 0x22),
    come: Color32::from_rgb(0x06, 0x26, 0x0f),
    come_strong: Color32::from_rgb(0x0f, 0x55, 0x22),
};

thread_local! {
    /// The user's appearance settings: high contrast, text size of notes, reduced motion. Thread-local, since only one
    /// thread draws.
    static APPEARANCE: Cell<(bool, f32, bool)> = const { Cell::new((false, 1.0, false)) };
    /// The colors of the user's own theme, and whether it's dark.
    static CUSTOM_COLORS: Cell<Option<(bool, &'static ThemeColors)>> = const { Cell::new(None) };
}

/// Returns whether motion is reduced.
pub fn is_motion_reduced() -> bool {
    APPEARANCE.get().2
}

/// Returns the text size of notes relative to the rest.
pub fn text_scale() -> f32 {
    APPEARANCE.get().1
}

impl ThemeColors {
    /// Returns the colors of the current theme.
    pub fn of(ui: &egui::Ui) -> &'static ThemeColors {
        ThemeColors::for_dark_mode(ui.visuals().dark_mode)
    }

    /// Returns the colors of the dark or the light theme.
    pub fn for_dark_mode(dark: bool) -> &'static ThemeColors {
        // High contrast is a need, and a theme a taste.
        if let Some((_, colors)) = CUSTOM_COLORS.get().filter(|(is_dark, _)| *is_dark == dark && !APPEARANCE.get().0) {
            return colors;
        }
        match (dark, APPEARANCE.get().0) {
            (false, false) => &LIGHT,
            (true, false) => &DARK,
            (false, true) => &LIGHT_HIGH_CONTRAST,
            (true, true) => &DARK_HIGH_CONTRAST,
        }
    }

    /// Returns the color of another person at a note. The same name, which is shown next to it, always has the same
    /// color.
    pub fn person_color(&self, name: &str) -> Color32 {
        let all = [self.tool, self.thought, self.warn, self.ok, self.bad];
        all[name.bytes().fold(0, |sum, byte| sum * 31 % 101 + usize::from(byte)) % all.len()]
    }

    /// Returns the color of a kind of callout.
    pub fn callout_color(&self, kind: CalloutKind) -> Color32 {
        match kind {
            CalloutKind::Note => self.accent,
            CalloutKind::Abstract | CalloutKind::Info | CalloutKind::Todo | CalloutKind::Tip => self.tool,
            CalloutKind::Success => self.ok,
            CalloutKind::Question | CalloutKind::Warning => self.warn,
            CalloutKind::Failure | CalloutKind::Danger | CalloutKind::Bug => self.bad,
            CalloutKind::Example => self.thought,
            CalloutKind::Quote => self.muted,
        }
    }

    /// Returns the color of highlighted code.
    pub fn code_color(&self, hue: CodeHue) -> Color32 {
        match hue {
            CodeHue::Keyword => self.thought,
            CodeHue::Text => self.ok,
            CodeHue::Comment => self.muted,
            CodeHue::Number => self.tool,
            CodeHue::Name => self.accent,
        }
    }

    /// Returns the colors for typeset content: diagrams and pages.
    pub fn tints(&self) -> ThemeTints {
        let rgb = |colour: Color32| [colour.r(), colour.g(), colour.b()];
        ThemeTints {
            paper: rgb(self.paper),
            sunken: rgb(self.sunken),
            ink: rgb(self.ink),
            muted: rgb(self.muted),
            line: rgb(self.line),
            accent: rgb(self.accent),
            accent_ground: rgb(self.accent_ground),
            mark: rgb(self.mark),
            lit: rgb(self.lit),
            ok: rgb(self.ok),
            warn: rgb(self.warn),
            bad: rgb(self.bad),
            thought: rgb(self.thought),
            tool: rgb(self.tool),
        }
    }

    /// Returns the background of a hovered control: about halfway between its background and the line color.
    pub fn hover_color(&self, ground: Color32) -> Color32 {
        ground.lerp_to_gamma(self.line, 0.55)
    }

    /// Returns the background of a pressed control, and of the name of a key. The line color itself is too close to
    /// that of text in high contrast.
    pub fn pressed_color(&self) -> Color32 {
        self.sunken.lerp_to_gamma(self.line, 0.75)
    }
}

/// Spacing scale in points; no other distances are used.
pub mod space {
    /// Smallest step of the scale.
    pub const XS: f32 = 4.0;
    /// Second step, twice the first.
    pub const S: f32 = 8.0;
    /// Third step.
    pub const M: f32 = 12.0;
    /// Fourth step; indentation of a quote.
    pub const L: f32 = 16.0;
    /// Fifth step; indentation of a list item.
    pub const XL: f32 = 24.0;
    /// Sixth step.
    pub const XXL: f32 = 32.0;
    /// Largest step.
    pub const XXXL: f32 = 48.0;
}

/// Widths and heights in points.
pub mod size {
    /// Maximum width of a note's column.
    pub const NOTE_COLUMN_WIDTH: f32 = 720.0;
    /// Maximum width of tables and outputs that extend beyond the column.
    pub const WIDE_BLOCK_WIDTH: f32 = 1040.0;
    /// Height of the toolbar above the note.
    pub const TOOLBAR_HEIGHT: f32 = 36.0;
    /// Width of the rail at the left edge.
    pub const ACTIVITY_RAIL_WIDTH: f32 = 44.0;
    /// Height of the status bar.
    pub const STATUS_BAR_HEIGHT: f32 = MIN_CLICK_HEIGHT;
    /// Width of the command palette.
    pub const PALETTE_WIDTH: f32 = 640.0;
    /// Width of a dialog.
    pub const DIALOG_WIDTH: f32 = 480.0;
    /// Minimum height of clickable elements.
    pub const MIN_CLICK_HEIGHT: f32 = 28.0;
    /// Width of the gutter at the left of a cell.
    pub const CELL_GUTTER_WIDTH: f32 = 20.0;
    /// Width of the focus ring.
    pub const FOCUS_RING_WIDTH: f32 = 2.0;
    /// Size of an icon next to text.
    pub const ICON_SIZE: f32 = 16.0;
}

/// Corner radius of controls.
pub const CONTROL_CORNER: CornerRadius = CornerRadius::same(6);
/// Corner radius of cards and popups.
pub const CARD_CORNER: CornerRadius = CornerRadius::same(10);

/// Number of output lines beyond which an output is collapsed.
pub const MAX_UNFOLDED_OUTPUT_LINES: usize = 24;

/// A step of the type scale: a font and its line height.
#[derive(Clone, Debug)]
pub struct TypeStyle {
    /// The font and its size in points.
    pub font: FontId,
    /// Line height in points.
    pub line: f32,
}

/// Font styles of Inter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InterCut {
    /// Upright, weight 400.
    Regular,
    /// Upright, weight 600.
    SemiBold,
    /// Upright, weight 700.
    Bold,
    /// Italic, weight 400.
    Italic,
    /// Italic, weight 700.
    BoldItalic,
}

impl InterCut {
    fn family(self) -> FontFamily {
        match self {
            InterCut::Regular => FontFamily::Proportional,
            InterCut::SemiBold => named_family("semibold"),
            InterCut::Bold => named_family("bold"),
            InterCut::Italic => named_family("italic"),
            InterCut::BoldItalic => named_family("bold italic"),
        }
    }
}

fn named_family(name: &'static str) -> FontFamily {
    FontFamily::Name(Arc::from(name))
}

/// Returns Inter in a style and size.
pub fn inter_font(cut: InterCut, points: f32) -> FontId {
    FontId::new(points, cut.family())
}

/// Body text: 15 points, line height 24, scaled by the user's text size.
pub fn body() -> TypeStyle {
    TypeStyle { font: inter_font(InterCut::Regular, 15.0 * text_scale()), line: (24.0 * text_scale()).round() }
}

/// Small text: 13 points, line height 20.
pub fn small() -> TypeStyle {
    TypeStyle { font: inter_font(InterCut::Regular, 13.0), line: 20.0 }
}

/// Caption text: 12 points, line height 16.
pub fn caption() -> TypeStyle {
    TypeStyle { font: inter_font(InterCut::Regular, 12.0), line: 16.0 }
}

/// Heading of level 1 to 6. Levels from 4 on differ by weight and color rather than size.
pub fn heading(level: u8) -> TypeStyle {
    let (points, line) = match level {
        1 => (28.0, 36.0),
        2 => (22.0, 30.0),
        3 => (18.0, 26.0),
        _ => (15.0, 24.0),
    };
    TypeStyle { font: inter_font(InterCut::SemiBold, points * text_scale()), line: (line * text_scale()).round() }
}

/// Code: 13.5 points, line height 21.
pub fn code() -> TypeStyle {
    TypeStyle { font: FontId::new(13.5 * text_scale(), FontFamily::Monospace), line: (21.0 * text_scale()).round() }
}

/// Returns whether a font is the code font.
pub fn is_mono(font: &FontId) -> bool {
    match &font.family {
        FontFamily::Monospace => true,
        FontFamily::Proportional => false,
        FontFamily::Name(name) => name.starts_with("mono"),
    }
}

/// Returns the italic code font, for comments.
pub fn code_italic_font() -> FontId {
    FontId::new(13.5 * text_scale(), named_family("mono italic"))
}

/// Returns a font with tabular figures, for durations and tables.
pub fn tabular_font(points: f32) -> FontId {
    FontId::new(points, named_family("tabular"))
}

/// Returns the icon font of `icons.rs`.
pub fn icon_font(points: f32) -> FontId {
    FontId::new(points, named_family("icons"))
}

/// Returns the bundled fonts, which take precedence over egui's own fonts for rare characters.
fn font_definitions() -> FontDefinitions {
    let mut fonts = FontDefinitions::default();
    let rest: Vec<String> =
        fonts.families.get(&FontFamily::Proportional).cloned().unwrap_or_default().into_iter().collect();
    let mut add = |family: FontFamily, files: &[(&str, &'static [u8])]| {
        let mut names: Vec<String> = Vec::new();
        for (name, bytes) in files {
            fonts.font_data.entry((*name).to_owned()).or_insert_with(|| Arc::new(FontData::from_static(bytes)));
            names.push((*name).to_owned());
        }
        names.extend(rest.iter().cloned());
        fonts.families.insert(family, names);
    };
    macro_rules! file {
        ($name:literal) => {
            ($name, include_bytes!(concat!("../../../assets/fonts/", $name, ".ttf")).as_slice())
        };
    }
    let regular = file!("Inter-Regular");
    add(FontFamily::Proportional, &[regular]);
    add(InterCut::SemiBold.family(), &[file!("Inter-SemiBold")]);
    add(InterCut::Bold.family(), &[file!("Inter-Bold")]);
    add(InterCut::Italic.family(), &[file!("Inter-Italic")]);
    add(InterCut::BoldItalic.family(), &[file!("Inter-BoldItalic")]);
    add(named_family("tabular"), &[file!("InterTabular-Regular"), regular]);
    add(FontFamily::Monospace, &[file!("JetBrainsMono-Regular"), regular]);
    add(named_family("mono italic"), &[file!("JetBrainsMono-Italic"), regular]);
    add(named_family("icons"), &[file!("Phosphor-Regular")]);
    fonts
}

/// Installs the fonts and both themes. Call this once at startup.
pub fn install_theme(ctx: &egui::Context) {
    ctx.set_fonts(font_definitions());
    set_styles(ctx, false);
    ctx.options_mut(|options| {
        options.fallback_theme = egui::Theme::Light;
        // The command table has keys for these, and the program must save before it closes.
        options.zoom_with_keyboard = false;
        options.quit_shortcuts.clear();
        // A press places the caret in a row; releasing the button must not take the focus away again.
        options.input_options.surrender_focus_on = egui::SurrenderFocusOn::Presses;
    });
}

/// Applies the user's appearance settings.
pub fn apply_settings(ctx: &egui::Context, settings: &Settings) {
    let theme = match settings.theme {
        // A theme of the user's own is dark or light itself.
        _ if CUSTOM_COLORS.get().is_some_and(|(dark, _)| dark) => egui::ThemePreference::Dark,
        _ if CUSTOM_COLORS.get().is_some() => egui::ThemePreference::Light,
        ColorTheme::System => egui::ThemePreference::System,
        ColorTheme::Light => egui::ThemePreference::Light,
        ColorTheme::Dark => egui::ThemePreference::Dark,
    };
    if ctx.options(|options| options.theme_preference) != theme {
        ctx.set_theme(theme);
        ctx.request_repaint();
    }
    if ctx.zoom_factor() != settings.scale {
        ctx.set_zoom_factor(settings.scale);
    }
    let is_calm = match settings.reduce_motion {
        ReducedMotion::System => ctx.data(|data| data.get_temp(system_motion_id())).unwrap_or(false),
        ReducedMotion::On => true,
        ReducedMotion::Off => false,
    };
    let look = (settings.contrast, settings.text_scale, is_calm);
    if APPEARANCE.replace(look) != look {
        set_styles(ctx, is_calm);
        ctx.request_repaint();
    }
}

/// Sets how the system looks, for settings that follow it. Its theme is used where the event loop doesn't know it, as
/// on Linux. Any thread may call this.
pub fn set_system_look(ctx: &egui::Context, is_dark: bool, reduces_motion: bool) {
    let theme = if is_dark { egui::Theme::Dark } else { egui::Theme::Light };
    ctx.options_mut(|options| options.fallback_theme = theme);
    ctx.data_mut(|data| data.insert_temp(system_motion_id(), reduces_motion));
    ctx.request_repaint();
}

fn system_motion_id() -> egui::Id {
    egui::Id::unique("the system reduces motion")
}

fn set_styles(ctx: &egui::Context, calm: bool) {
    for (theme, dark) in [(egui::Theme::Light, false), (egui::Theme::Dark, true)] {
        ctx.style_mut_of(theme, |old| {
            // Glyph rendering options are kept, since otherwise all laid-out text would be outdated.
            let options = old.visuals.text_options;
            *old = egui_style(dark);
            old.visuals.text_options = options;
            if calm {
                old.animation_time = 0.0;
            }
        });
    }
}

fn egui_style(dark: bool) -> egui::Style {
    let colours = ThemeColors::for_dark_mode(dark);
    let mut style = egui::Style { visuals: egui_visuals(colours, dark), animation_time: 0.12, ..Default::default() };
    style.text_styles = [
        (TextStyle::Small, caption().font),
        (TextStyle::Body, small().font),
        (TextStyle::Button, small().font),
        (TextStyle::Monospace, code().font),
        (TextStyle::Heading, heading(3).font),
    ]
    .into();
    let spacing = &mut style.spacing;
    spacing.item_spacing = egui::vec2(space::S, space::XS);
    spacing.button_padding = egui::vec2(space::S, space::XS);
    spacing.interact_size = egui::vec2(size::MIN_CLICK_HEIGHT, size::MIN_CLICK_HEIGHT);
    spacing.window_margin = Margin::same(16);
    // Of tooltips and lists; menus have a frame of their own.
    spacing.menu_margin = Margin::symmetric(8, 6);
    spacing.scroll = egui::style::ScrollStyle {
        bar_width: 8.0,
        floating_width: 4.0,
        dormant_handle_opacity: 0.12,
        active_handle_opacity: 0.25,
        interact_handle_opacity: 0.5,
        ..egui::style::ScrollStyle::floating()
    };
    spacing.scroll.fade.strength = 0.0;
    spacing.scroll.kinetic.rubber_band = false;
    style.scroll_animation = egui::style::ScrollAnimation::none();
    style.interaction.tooltip_delay = 0.6;
    style.url_in_tooltip = true;
    style
}

fn egui_visuals(colours: &ThemeColors, dark: bool) -> egui::Visuals {
    let mut visuals = if dark { egui::Visuals::dark() } else { egui::Visuals::light() };
    visuals.weak_text_color = Some(colours.muted);
    visuals.hyperlink_color = colours.accent;
    visuals.faint_bg_color = colours.sunken;
    visuals.extreme_bg_color = colours.sunken;
    visuals.text_edit_bg_color = Some(colours.sunken);
    visuals.code_bg_color = colours.sunken;
    visuals.warn_fg_color = colours.warn;
    visuals.error_fg_color = colours.bad;
    visuals.panel_fill = colours.paper;
    visuals.window_fill = colours.raised;
    visuals.window_stroke = Stroke::new(1.0, colours.line);
    visuals.window_corner_radius = CARD_CORNER;
    visuals.menu_corner_radius = CARD_CORNER;
    visuals.window_shadow = floating_shadow(dark);
    visuals.popup_shadow = floating_shadow(dark);
    visuals.selection.bg_fill = colours.accent_ground;
    // The ring of a focused field, and the color of selected text.
    visuals.selection.stroke = Stroke::new(size::FOCUS_RING_WIDTH, colours.accent);
    visuals.text_cursor.stroke = Stroke::new(2.0, colours.accent);
    visuals.interact_cursor = Some(egui::CursorIcon::PointingHand);
    visuals.button_frame = true;
    visuals.indent_has_left_vline = false;
    let widgets = &mut visuals.widgets;
    for (state, ground, text) in [
        (&mut widgets.noninteractive, colours.paper, colours.ink),
        (&mut widgets.inactive, colours.sunken, colours.ink),
        (&mut widgets.hovered, colours.hover_color(colours.sunken), colours.ink),
        (&mut widgets.active, colours.pressed_color(), colours.ink),
        (&mut widgets.open, colours.sunken, colours.ink),
    ] {
        state.bg_fill = ground;
        state.weak_bg_fill = ground;
        state.bg_stroke = Stroke::NONE;
        state.fg_stroke = Stroke::new(1.0, text);
        state.corner_radius = CONTROL_CORNER;
        state.expansion = 0.0;
    }
    widgets.noninteractive.bg_stroke = Stroke::new(1.0, colours.line);
    // A focused widget counts as active.
    widgets.active.bg_stroke = Stroke::new(size::FOCUS_RING_WIDTH, colours.accent);
    visuals
}

/// Shadow of menus, popups and dialogs.
pub fn floating_shadow(dark: bool) -> Shadow {
    Shadow { offset: [0, 8], blur: 24, spread: 0, color: Color32::from_black_alpha(if dark { 110 } else { 36 }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance(colour: Color32) -> f32 {
        let linear = |value: u8| {
            let value = f32::from(value) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(colour.r()) + 0.7152 * linear(colour.g()) + 0.0722 * linear(colour.b())
    }

    fn contrast(one: Color32, other: Color32) -> f32 {
        let (a, b) = (luminance(one), luminance(other));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn every_text_can_be_read() {
        for (colours, least) in [(&LIGHT, 4.7), (&DARK, 4.7), (&LIGHT_HIGH_CONTRAST, 8.0), (&DARK_HIGH_CONTRAST, 8.0)] {
            let grounds = [colours.paper, colours.raised, colours.sunken];
            assert!(luminance(colours.lit) > 0.0 && colours.tints().css_variables().contains("--lit:#"));
            let texts = [colours.ink, colours.muted, colours.accent, colours.ok, colours.warn, colours.bad];
            for ground in grounds {
                for text in texts.into_iter().chain([colours.thought, colours.tool]) {
                    let found = contrast(text, ground);
                    assert!(found >= least, "{text:?} on {ground:?}: {found}");
                }
            }
            // Links, code and marks may also be selected, found, highlighted, removed or added: at least the AA level
            // of WCAG. Differing words are compared with plain text.
            let marked = [colours.accent_ground, colours.mark, colours.mark_strong, colours.lit];
            for ground in marked.into_iter().chain([colours.gone, colours.come]) {
                for text in texts.into_iter().chain([colours.thought, colours.tool]) {
                    let found = contrast(text, ground);
                    assert!(found >= 4.5, "{text:?} on {ground:?}: {found}");
                }
            }
            for ground in [colours.gone_strong, colours.come_strong] {
                let found = contrast(colours.ink, ground);
                assert!(found >= 4.5, "{:?} on {ground:?}: {found}", colours.ink);
            }
            // Meaningful colors other than text: the focus ring, outlines of marks.
            for ground in grounds.into_iter().chain(marked) {
                let found = contrast(colours.accent, ground);
                assert!(found >= 3.0, "the ring on {ground:?}: {found}");
            }
            for (text, ground) in [
                (colours.accent, colours.accent_ground),
                (colours.muted, colours.accent_ground),
                (colours.muted, colours.hover_color(colours.paper)),
                (colours.ink, colours.hover_color(colours.sunken)),
                (colours.ink, colours.pressed_color()),
                (colours.accent, colours.hover_color(colours.paper)),
                (colours.paper, colours.accent),
            ] {
                let found = contrast(text, ground);
                assert!(found >= 4.5, "{text:?} on {ground:?}: {found}");
            }
        }
    }
}
