//! Formulas as MathML, which browsers set by themselves.

use pulldown_latex::config::{DisplayMode, RenderConfig};
use pulldown_latex::event::{Content, Event};
use pulldown_latex::{Parser, Storage};

/// Longer formulas stay as they are.
const LONGEST: usize = 10_000;

/// A formula as MathML; `None` where it is not understood.
pub fn mathml(source: &str, display: bool) -> Option<String> {
    if source.len() > LONGEST {
        return None;
    }
    let storage = Storage::new();
    let events: Vec<_> = Parser::new(source, &storage).collect();
    // The crate escapes words, but neither the names of functions nor a sign that stands alone (see below).
    let wrong = |event: &Result<Event<'_>, _>| match event {
        Ok(Event::Content(Content::Function(name) | Content::Number(name))) => name.contains(['<', '>', '&']),
        Ok(_) => false,
        Err(_) => true,
    };
    if events.iter().any(wrong) {
        return None;
    }
    let display_mode = if display { DisplayMode::Block } else { DisplayMode::Inline };
    let mut out = String::new();
    let config = RenderConfig { display_mode, ..RenderConfig::default() };
    pulldown_latex::push_mathml(&mut out, events.into_iter(), config).ok()?;
    Some(out.replace("><</", ">&lt;</").replace(">&</", ">&amp;</").replace(">></", ">&gt;</"))
}

#[cfg(test)]
mod tests {
    use super::mathml;

    #[test]
    fn formulas_are_understood_or_left_alone() {
        let one = mathml("\\frac{a}{b} < 1", true).expect("a formula");
        assert!(one.starts_with("<math display=\"block\"") && one.contains("<mfrac>") && one.contains("&lt;"), "{one}");
        assert_eq!(mathml("\\frac{a", false), None);
        assert_eq!(mathml("\\nonsense", false), None);
        for evil in ["\\text{<script>x</script>}", "\\operatorname{<script>x}", "\\mathrm{<script>}", "<script>"] {
            let text = mathml(evil, false).unwrap_or_default();
            assert!(!text.contains("<script"), "{text}");
        }
    }
}
