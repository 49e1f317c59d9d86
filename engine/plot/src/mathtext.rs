//! Converts TeX between dollar signs to Unicode text: Greek letters, superscripts and subscripts.

use crate::scale::to_superscript;

const TEX_SYMBOLS: &[(&str, &str)] = &[
    ("alpha", "α"),
    ("beta", "β"),
    ("gamma", "γ"),
    ("delta", "δ"),
    ("epsilon", "ε"),
    ("varepsilon", "ε"),
    ("zeta", "ζ"),
    ("eta", "η"),
    ("theta", "θ"),
    ("iota", "ι"),
    ("kappa", "κ"),
    ("lambda", "λ"),
    ("mu", "μ"),
    ("nu", "ν"),
    ("xi", "ξ"),
    ("pi", "π"),
    ("rho", "ρ"),
    ("sigma", "σ"),
    ("tau", "τ"),
    ("upsilon", "υ"),
    ("phi", "φ"),
    ("varphi", "φ"),
    ("chi", "χ"),
    ("psi", "ψ"),
    ("omega", "ω"),
    ("Gamma", "Γ"),
    ("Delta", "Δ"),
    ("Theta", "Θ"),
    ("Lambda", "Λ"),
    ("Xi", "Ξ"),
    ("Pi", "Π"),
    ("Sigma", "Σ"),
    ("Phi", "Φ"),
    ("Psi", "Ψ"),
    ("Omega", "Ω"),
    ("times", "×"),
    ("cdot", "·"),
    ("pm", "±"),
    ("leq", "≤"),
    ("le", "≤"),
    ("geq", "≥"),
    ("ge", "≥"),
    ("neq", "≠"),
    ("approx", "≈"),
    ("infty", "∞"),
    ("partial", "∂"),
    ("sum", "∑"),
    ("int", "∫"),
    ("sqrt", "√"),
    ("degree", "°"),
    ("circ", "°"),
    ("rightarrow", "→"),
    ("to", "→"),
    ("propto", "∝"),
    ("nabla", "∇"),
    ("ell", "ℓ"),
    ("hbar", "ħ"),
    ("quad", " "),
];

/// Renders a text with the parts between dollar signs converted from TeX.
pub(crate) fn render_mathtext(text: &str) -> String {
    let parts: Vec<&str> = text.split('$').collect();
    if parts.len() < 3 || parts.len().is_multiple_of(2) {
        return text.to_owned();
    }
    parts
        .iter()
        .enumerate()
        .map(|(at, part)| if at % 2 == 1 { formula_to_unicode(part) } else { (*part).to_owned() })
        .collect()
}

fn formula_to_unicode(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        match letter {
            '\\' => {
                let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
                let (name, behind) = rest.split_at(end);
                rest = behind;
                match TEX_SYMBOLS.iter().find(|(known, _)| *known == name) {
                    Some((_, letter)) => out.push_str(letter),
                    // Functions keep their names; commands that only change the style are ignored.
                    None if ["mathrm", "mathbf", "mathit", "text", "left", "right"].contains(&name) => {}
                    None => out.push_str(name),
                }
            }
            '^' | '_' => {
                let inner = match rest.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
                    Some((inner, behind)) => {
                        rest = behind;
                        formula_to_unicode(inner)
                    }
                    None => {
                        let end = rest.chars().next().map_or(0, char::len_utf8);
                        let (inner, behind) = rest.split_at(end);
                        rest = behind;
                        inner.to_owned()
                    }
                };
                let moved: String =
                    inner.chars().map(if letter == '^' { to_superscript } else { to_subscript }).collect();
                let all = inner.chars().zip(moved.chars()).all(|(from, to)| from != to);
                if !all {
                    out.push(letter);
                }
                out.push_str(if all { &moved } else { &inner });
            }
            '{' | '}' => {}
            '-' => out.push('\u{2212}'),
            letter => out.push(letter),
        }
    }
    out
}

fn to_subscript(letter: char) -> char {
    let plain = "0123456789+-\u{2212}()aeijnox";
    let below = "₀₁₂₃₄₅₆₇₈₉₊₋₋₍₎ₐₑᵢⱼₙₒₓ";
    plain.chars().zip(below.chars()).find(|(from, _)| *from == letter).map_or(letter, |(_, to)| to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_words() {
        for (from, to) in [
            ("$\\alpha + x^2$", "α + x²"),
            ("price in $", "price in $"),
            ("$\\sin(x)$ of $10^{-3}$ m", "sin(x) of 10⁻³ m"),
            ("$x_1$, $x_{max}$", "x₁, x_max"),
            ("$", "$"),
            ("$\\", "$\\"),
            ("$^$", ""),
        ] {
            assert_eq!(render_mathtext(from), to);
        }
    }
}
