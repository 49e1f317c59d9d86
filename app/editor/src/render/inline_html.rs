//! Inline HTML elements that only change how text looks. Their attributes have no effect. All other HTML is shown as
//! source.

use super::RowRenderer;
use std::ops::Range;

/// An inline HTML element that is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HtmlElement {
    Strong,
    Emphasis,
    Strike,
    Underline,
    Small,
    Key,
    Mark,
    Raised,
    Lowered,
}

impl HtmlElement {
    fn of(name: &str) -> Option<HtmlElement> {
        Some(match name {
            "b" | "strong" => HtmlElement::Strong,
            "i" | "em" => HtmlElement::Emphasis,
            "s" | "del" => HtmlElement::Strike,
            "u" | "ins" => HtmlElement::Underline,
            "small" => HtmlElement::Small,
            "kbd" => HtmlElement::Key,
            "mark" => HtmlElement::Mark,
            "sup" => HtmlElement::Raised,
            "sub" => HtmlElement::Lowered,
            _ => return None,
        })
    }
}

impl RowRenderer<'_> {
    /// Renders a tag: begins or ends an element, or breaks the line; other tags are shown as source.
    pub(super) fn inline_html(&mut self, html: &str, range: Range<usize>) {
        let inner = html.strip_prefix('<').and_then(|html| html.strip_suffix('>')).unwrap_or("");
        let (closes, name) = inner.strip_prefix('/').map_or((false, inner), |name| (true, name));
        let name = name.split(|letter: char| letter.is_whitespace() || letter == '/').next().unwrap_or_default();
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "br" => return self.push("\n", range, false),
            // Only their attributes would have an effect.
            "span" | "font" => return,
            _ => {}
        }
        match HtmlElement::of(&name) {
            Some(element) if !closes => {
                self.elements.push(element);
                self.count_element(element, true);
            }
            Some(element) if self.elements.contains(&element) => {
                // An end tag also closes the elements opened inside it.
                while let Some(open) = self.elements.pop() {
                    self.count_element(open, false);
                    if open == element {
                        break;
                    }
                }
            }
            _ => self.push(html, range, true),
        }
    }

    /// Closes the elements that a line of text left open.
    pub(super) fn close_elements(&mut self) {
        while let Some(open) = self.elements.pop() {
            self.count_element(open, false);
        }
    }

    fn count_element(&mut self, element: HtmlElement, opens: bool) {
        let count = match element {
            HtmlElement::Strong => &mut self.look.strong,
            HtmlElement::Emphasis => &mut self.look.emphasis,
            HtmlElement::Strike => &mut self.look.strike,
            HtmlElement::Underline => &mut self.look.underline,
            HtmlElement::Small => &mut self.look.small,
            HtmlElement::Key => &mut self.look.key,
            HtmlElement::Raised => &mut self.look.raised,
            HtmlElement::Lowered => &mut self.look.lowered,
            HtmlElement::Mark => return self.look.highlight = opens,
        };
        *count = if opens { *count + 1 } else { count.saturating_sub(1) };
    }
}
