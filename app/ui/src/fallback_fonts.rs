//! Fallback fonts for characters that neither the bundled text fonts nor the system's fonts have. Emoji come from a
//! bundled font; scripts without any font are reported.

use eframe::egui;
use egui::epaint::text::{FallbackRequest, FontInsert, FontPriority, FontProvider, InsertFontFamily};
use egui::{Context, FontData};
use engine::Settings;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use unicode_script::{Script, UnicodeScript};

const EMOJI_FONT: &[u8] = include_bytes!("../../../assets/fonts/NotoEmoji-Regular.ttf");

/// Names of scripts without a font, collected since the last call of [`UnshownScripts::take`].
#[derive(Clone, Default)]
pub struct UnshownScripts(Arc<Mutex<BTreeSet<&'static str>>>);

impl UnshownScripts {
    /// Returns a message about the scripts that have no font, and settings that remember what it names: each font is
    /// named once in a workspace. `None` if there's nothing new.
    pub fn take_news(&self, settings: &Settings) -> Option<(String, Settings)> {
        let mut scripts = self.take();
        scripts.retain(|script| !settings.named_fonts.iter().any(|named| named == missing_font(script)));
        if scripts.is_empty() {
            return None;
        }
        let mut settings = settings.clone();
        let fonts: BTreeSet<&str> = scripts.iter().map(|script| missing_font(script)).collect();
        settings.named_fonts.extend(fonts.into_iter().map(str::to_owned));
        Some((describe_unshown(&scripts), settings))
    }

    /// Takes the names of scripts that have no font, such as "Hangul".
    fn take(&self) -> BTreeSet<&'static str> {
        self.0.lock().map(|mut scripts| std::mem::take(&mut *scripts)).unwrap_or_default()
    }
}

/// Adds the bundled emoji font as a fallback, and records scripts without a font. Call this after the system's fonts
/// are set up, since the first font that has a character draws it.
pub fn install_fallback_fonts(ctx: &Context) -> UnshownScripts {
    let unshown = UnshownScripts::default();
    ctx.add_font_provider(Arc::new(BundledEmoji));
    ctx.add_font_provider(Arc::new(unshown.clone()));
    unshown
}

/// Returns whether a character is in a Unicode block that the emoji font covers.
fn is_emoji_block(letter: char) -> bool {
    matches!(letter, '\u{203c}'..='\u{2bff}' | '\u{3030}'..='\u{3299}' | '\u{1f000}'..='\u{1faff}')
        && letter.script() == Script::Common
}

struct BundledEmoji;

impl FontProvider for BundledEmoji {
    fn font_for(&self, request: &FallbackRequest<'_>) -> Option<FontInsert> {
        if !request.cluster.chars().next().is_some_and(is_emoji_block) {
            return None;
        }
        let family = InsertFontFamily { family: request.family.clone(), priority: FontPriority::Lowest };
        Some(FontInsert::new("NotoEmoji-Regular", FontData::from_static(EMOJI_FONT), vec![family]))
    }
}

impl FontProvider for UnshownScripts {
    fn font_for(&self, request: &FallbackRequest<'_>) -> Option<FontInsert> {
        let script = request.cluster.chars().next()?.script();
        if !matches!(script, Script::Common | Script::Inherited | Script::Unknown)
            && let Ok(mut scripts) = self.0.lock()
        {
            scripts.insert(script.full_name());
        }
        None
    }
}

/// Returns the package of fonts that has a script; where packages aren't known, the name of the script.
fn missing_font(script: &str) -> &str {
    match script {
        _ if !cfg!(target_os = "linux") => script,
        "Han" | "Hiragana" | "Katakana" | "Hangul" | "Bopomofo" => "fonts-noto-cjk",
        _ => "fonts-noto-core",
    }
}

/// Returns a message about scripts that can't be shown, and what to install.
fn describe_unshown(scripts: &BTreeSet<&'static str>) -> String {
    let names: Vec<&str> = scripts.iter().map(|name| if *name == "Han" { "Chinese" } else { name }).collect();
    let mut text = format!("Your fonts have no characters for {}. They appear as boxes.", names.join(", "));
    if cfg!(target_os = "linux") {
        let packages: BTreeSet<&str> = scripts.iter().map(|script| missing_font(script)).collect();
        let packages = Vec::from_iter(packages).join(" and ");
        text += &format!(" Install {packages} (Debian, Ubuntu) or a similar font, then start Tracebook again.");
    } else {
        text += " Install a font that has them, then start Tracebook again.";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(text: &str) -> (Context, UnshownScripts) {
        let ctx = Context::default();
        let unshown = install_fallback_fonts(&ctx);
        let mut output = ctx.run_ui(egui::RawInput::default(), |ui| {
            ui.label(text);
        });
        // The test paints nothing.
        output.textures_delta.clear();
        (ctx, unshown)
    }

    #[test]
    fn emoji_are_drawn_and_scripts_without_a_font_are_named() {
        let (ctx, unshown) = drawn("📅 ⏳ 🔁 🛫 🧠 🥇");
        assert!(unshown.take().is_empty(), "no script is missed");
        let font = egui::FontId::default();
        let shown = |letter| ctx.fonts_mut(|fonts| fonts.has_glyph(&font, letter));
        assert!("📅⏳🔁🛫🧠🥇".chars().all(shown));
        let (_, unshown) = drawn("한글 漢字");
        let scripts = unshown.take();
        assert_eq!(scripts.iter().copied().collect::<Vec<_>>(), ["Han", "Hangul"]);
        assert!(unshown.take().is_empty(), "it is said once");
        let says = describe_unshown(&scripts);
        assert!(says.contains("Chinese, Hangul"), "{says}");
        assert_eq!(says.contains("fonts-noto-cjk (Debian"), cfg!(target_os = "linux"), "{says}");
    }
}
