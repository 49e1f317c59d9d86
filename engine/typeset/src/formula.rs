//! Formulas: typeset in two dimensions, as MathML for browsers, or as a line of plain text where neither is possible.

mod layout;

pub use layout::{FORMULA_PADDING_EM, SetFormula};

use crate::failure::DrawFailure;
use pulldown_latex::config::{DisplayMode, RenderConfig};
use pulldown_latex::event::{Content, Event, Grouping, ScriptType, Visual};
use pulldown_latex::{Parser, Storage};
use std::panic::catch_unwind;

/// Maximum length of a formula in bytes; longer ones stay as source.
const MAX_FORMULA_BYTES: usize = 10_000;
/// Number of commands that can't nest too deeply.
const MAX_PLAIN_COMMANDS: usize = 200;

/// Returns whether a formula is safe for `pulldown-latex`, which limits neither depth nor macro expansion.
///
/// The other parser limits both. A formula that it doesn't know is accepted if it's short and defines nothing.
fn is_bounded(source: &str) -> bool {
    if source.len() > MAX_FORMULA_BYTES {
        return false;
    }
    let defines = ["\\def", "\\gdef", "\\edef", "\\xdef", "\\let", "\\futurelet", "newcommand", "providecommand"];
    let commands = source.bytes().filter(|byte| matches!(byte, b'\\' | b'^' | b'_' | b'{' | b'\'')).count();
    let is_plain = commands <= MAX_PLAIN_COMMANDS && !defines.iter().any(|word| source.contains(word));
    is_plain || catch_unwind(|| ratex_parser::parse(source).is_ok()).unwrap_or(false)
}

/// Maximum length of a short formula in bytes. Longer ones are typeset with limits on time and memory.
const MAX_SHORT_BYTES: usize = 160;

/// Returns whether a formula is typeset in less than a tenth of a millisecond: it's short and defines no macros.
///
/// Other formulas are typeset with limits on time and memory.
pub fn is_short(source: &str) -> bool {
    let multiplies = ["def", "let", "newcommand", "renewcommand", "providecommand", "*{", "futurelet", "mathchoice"];
    source.len() <= MAX_SHORT_BYTES && !multiplies.iter().any(|part| source.contains(part))
}

/// Converts a formula to MathML.
///
/// # Errors
/// Returns an error if the formula can't be parsed, is too long or nests too deeply.
pub fn to_mathml(source: &str, display: bool) -> Result<String, DrawFailure> {
    if source.len() > MAX_FORMULA_BYTES {
        return Err(DrawFailure::Limit(format!("The formula is longer than {} kB.", MAX_FORMULA_BYTES / 1_000)));
    }
    if !is_bounded(source) {
        return Err(DrawFailure::Limit("The formula is nested too deeply, or it is not understood.".to_owned()));
    }
    parse_to_mathml(source, display).ok_or_else(|| DrawFailure::Wrong("The formula is not understood.".to_owned()))
}

fn parse_to_mathml(source: &str, display: bool) -> Option<String> {
    let storage = Storage::new();
    let events: Vec<_> = Parser::new(source, &storage).collect();
    // The crate escapes text, but neither function names nor single characters (see below).
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

/// Converts a formula to a line of plain text: `a^2` becomes "a²", and a fraction "a/b".
///
/// Returns `None` if it can't be parsed or would lose its structure.
pub fn to_plain_line(source: &str) -> Option<String> {
    if !is_bounded(source) {
        return None;
    }
    let storage = Storage::new();
    let events: Vec<Event<'_>> = Parser::new(source, &storage).collect::<Result<_, _>>().ok()?;
    let mut line = FormulaLine { events: &events, at: 0 };
    let mut out = String::new();
    while line.at < events.len() {
        out.push_str(&line.next_element(0)?);
    }
    Some(out.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Maximum nesting depth of groups in plain text.
const MAX_GROUP_DEPTH: usize = 64;

struct FormulaLine<'a> {
    events: &'a [Event<'a>],
    at: usize,
}

impl FormulaLine<'_> {
    fn next_element(&mut self, depth: usize) -> Option<String> {
        if depth > MAX_GROUP_DEPTH {
            return None;
        }
        let event = self.events.get(self.at)?;
        self.at += 1;
        Some(match event {
            Event::Content(content) => content_text(content),
            Event::Begin(grouping) => {
                let (before, after) = match grouping {
                    Grouping::Normal => (None, None),
                    Grouping::LeftRight(before, after) => (*before, *after),
                    // Matrices and other environments don't fit on a line.
                    _ => return None,
                };
                let mut out = String::new();
                out.extend(before);
                while !matches!(self.events.get(self.at)?, Event::End) {
                    out.push_str(&self.next_element(depth + 1)?);
                }
                self.at += 1;
                out.extend(after);
                out
            }
            Event::Visual(Visual::SquareRoot) => format!("√{}", parenthesize(&self.next_element(depth + 1)?)),
            Event::Visual(Visual::Root) => {
                let (inner, index) = (self.next_element(depth + 1)?, self.next_element(depth + 1)?);
                format!("{}√{}", to_script(&index, SUPERSCRIPTS)?, parenthesize(&inner))
            }
            Event::Visual(Visual::Fraction(_)) => {
                let (above, below) = (self.next_element(depth + 1)?, self.next_element(depth + 1)?);
                format!("{}/{}", parenthesize(&above), parenthesize(&below))
            }
            Event::Visual(Visual::Negation) => format!("{}\u{338}", self.next_element(depth + 1)?),
            Event::Script { ty, .. } => {
                let base = self.next_element(depth + 1)?;
                let first = self.next_element(depth + 1)?;
                match ty {
                    ScriptType::Subscript => {
                        base + &to_script(&first, SUBSCRIPTS).unwrap_or_else(|| format!("_{}", parenthesize(&first)))
                    }
                    ScriptType::Superscript => {
                        base + &to_script(&first, SUPERSCRIPTS).unwrap_or_else(|| format!("^{}", parenthesize(&first)))
                    }
                    ScriptType::SubSuperscript => {
                        let second = self.next_element(depth + 1)?;
                        let below =
                            to_script(&first, SUBSCRIPTS).unwrap_or_else(|| format!("_{}", parenthesize(&first)));
                        let above =
                            to_script(&second, SUPERSCRIPTS).unwrap_or_else(|| format!("^{}", parenthesize(&second)));
                        base + &below + &above
                    }
                }
            }
            Event::Space { .. } => "\u{2009}".to_owned(),
            Event::StateChange(_) => String::new(),
            Event::End | Event::EnvironmentFlow(_) => return None,
        })
    }
}

fn content_text(content: &Content<'_>) -> String {
    match content {
        Content::Text(text) | Content::Number(text) => (*text).to_owned(),
        Content::Function(name) => format!("{name}\u{2009}"),
        Content::Ordinary { content, .. } | Content::LargeOp { content, .. } | Content::Delimiter { content, .. } => {
            content.to_string()
        }
        Content::BinaryOp { content, .. } => format!(" {content} "),
        Content::Relation { content, .. } => {
            let mut buffer = [0; 8];
            format!(" {} ", String::from_utf8_lossy(content.encode_utf8_to_buf(&mut buffer)))
        }
        Content::Punctuation(sign) => format!("{sign} "),
    }
}

/// Puts anything longer than a word in parentheses.
fn parenthesize(text: &str) -> String {
    let text = text.trim();
    let whole = text.chars().all(char::is_alphanumeric) || (text.starts_with('(') && text.ends_with(')'));
    if whole { text.to_owned() } else { format!("({text})") }
}

const SUPERSCRIPTS: (&str, &str) = ("0123456789+-−=()niTxyabcdekmprt′", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿⁱᵀˣʸᵃᵇᶜᵈᵉᵏᵐᵖʳᵗ′");
const SUBSCRIPTS: (&str, &str) = ("0123456789+-−=()aeijknmprtx", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎ₐₑᵢⱼₖₙₘₚᵣₜₓ");

/// Converts a text to superscript or subscript characters; `None` if one of them doesn't exist.
fn to_script(text: &str, (plain, small): (&str, &str)) -> Option<String> {
    let text = text.chars().filter(|c| !c.is_whitespace());
    text.map(|c| plain.chars().position(|known| known == c).and_then(|at| small.chars().nth(at))).collect()
}

#[cfg(test)]
mod tests {
    use super::{to_mathml, to_plain_line};

    #[test]
    fn formulas_fit_on_a_line() {
        assert_eq!(to_plain_line("E = mc^2").as_deref(), Some("E = mc²"));
        assert_eq!(to_plain_line("\\frac{a+1}{b_{12}} \\leq \\sqrt{x}").as_deref(), Some("(a + 1)/b₁₂ ≤ √x"));
        assert_eq!(to_plain_line("\\sum_{i=1}^n \\alpha_i").as_deref(), Some("∑ᵢ₌₁ⁿαᵢ"));
        assert_eq!(to_plain_line("\\begin{pmatrix}1&2\\end{pmatrix}"), None);
        assert_eq!(to_plain_line("\\nonsense"), None);
    }

    #[test]
    fn depth_is_limited() {
        for part in [
            "{",
            "\\frac",
            "\\sqrt",
            "\\sqrt{",
            "x^",
            "\\left(",
            "\\mathbf",
            "\\hat",
            "\\overset",
            "\\frac1",
            "\\binom",
            "x_{",
        ] {
            let deep = part.repeat(10_000 / part.len());
            assert_eq!((to_mathml(&deep, true).ok(), to_plain_line(&deep)), (None, None), "{part}");
        }
        let grows = (b'b'..=b'k').map(|name| {
            let (name, before) = (char::from(name), char::from(name - 1));
            format!("\\def\\{name}{{{}}}", format!("\\{before}").repeat(10))
        });
        let bomb = format!("\\def\\a{{\\frac}}{}\\k", grows.collect::<String>());
        assert_eq!((to_mathml(&bomb, true).ok(), to_plain_line(&bomb)), (None, None));
        assert!(to_mathml(&"\\frac{a}{b}+".repeat(100), true).is_ok());
    }

    #[test]
    fn formulas_are_understood_or_left_alone() {
        let one = to_mathml("\\frac{a}{b} < 1", true).expect("a formula");
        assert!(one.starts_with("<math display=\"block\"") && one.contains("<mfrac>") && one.contains("&lt;"), "{one}");
        assert_eq!(to_mathml("\\frac{a", false).ok(), None);
        assert_eq!(to_mathml("\\nonsense", false).ok(), None);
        for evil in ["\\text{<script>x</script>}", "\\operatorname{<script>x}", "\\mathrm{<script>}", "<script>"] {
            let text = to_mathml(evil, false).unwrap_or_default();
            assert!(!text.contains("<script"), "{text}");
        }
    }
}
