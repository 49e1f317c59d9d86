//! Sanitizes raw HTML in notes: a few elements are kept without their attributes, and everything else is shown as text.

use super::escape_html;

/// Elements that only change how text looks.
const ALLOWED_ELEMENTS: &[&str] = &[
    "abbr", "b", "br", "cite", "code", "del", "em", "i", "ins", "kbd", "mark", "q", "s", "samp", "small", "strong",
    "sub", "sup", "u", "var", "wbr",
];
/// Allowed elements without an end tag.
const VOID_ELEMENTS: &[&str] = &["br", "wbr"];

/// Elements that are left out, since only their attributes would have an effect.
const PLAIN_ELEMENTS: &[&str] = &["center", "div", "font", "span"];

/// The open elements of raw HTML.
#[derive(Default)]
pub(super) struct RawHtml {
    open: Vec<&'static str>,
    /// Number of open elements by name.
    counts: std::collections::HashMap<&'static str, usize>,
}

impl RawHtml {
    /// Sanitizes a piece of HTML.
    pub(super) fn sanitize(&mut self, html: &str) -> String {
        let mut out = String::new();
        let mut rest = html;
        while let Some(start) = rest.find('<') {
            out.push_str(&escape_text(&rest[..start]));
            rest = &rest[start..];
            if let Some(comment) = rest.strip_prefix("<!--") {
                rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
                continue;
            }
            let Some(end) = rest.find('>') else { break };
            match self.sanitize_element(&rest[1..end]) {
                Some(element) => out.push_str(&element),
                None => out.push_str(&escape_html(&rest[..=end])),
            }
            rest = &rest[end + 1..];
        }
        out.push_str(&escape_text(rest));
        out
    }

    fn sanitize_element(&mut self, inner: &str) -> Option<String> {
        let (closing, name) = inner.strip_prefix('/').map_or((false, inner), |name| (true, name));
        let name = name.split(|letter: char| letter.is_whitespace() || letter == '/').next()?.to_ascii_lowercase();
        if PLAIN_ELEMENTS.contains(&name.as_str()) {
            return Some(String::new());
        }
        let known = ALLOWED_ELEMENTS.iter().find(|known| **known == name)?;
        if VOID_ELEMENTS.contains(known) {
            return Some(if closing { String::new() } else { format!("<{known}>") });
        }
        if !closing {
            self.open.push(known);
            *self.counts.entry(known).or_insert(0) += 1;
            return Some(format!("<{known}>"));
        }
        // An end tag also closes the elements opened inside; one without a start tag is dropped. The count avoids a
        // search, because there may be many such end tags.
        self.counts.get(known).filter(|count| **count > 0)?;
        let at = self.open.iter().rposition(|open| open == known)?;
        for open in &self.open[at..] {
            self.counts.entry(open).and_modify(|count| *count = count.saturating_sub(1));
        }
        Some(self.open.drain(at..).rev().map(|open| format!("</{open}>")).collect())
    }

    /// Closes all open elements and returns their end tags.
    pub(super) fn close_all(&mut self) -> String {
        self.counts.clear();
        self.open.drain(..).rev().map(|open| format!("</{open}>")).collect()
    }
}

/// Escapes text so that it can't form elements; entities stay as they are.
fn escape_text(text: &str) -> String {
    text.replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\0', "\u{FFFD}")
}

#[cfg(test)]
mod tests {
    use super::RawHtml;

    #[test]
    fn harmless_elements_pass_and_others_are_text() {
        let write = |html: &str| {
            let mut raw = RawHtml::default();
            let out = raw.sanitize(html);
            out + &raw.close_all()
        };
        assert_eq!(write("<kbd>a</kbd><BR/>&amp;"), "<kbd>a</kbd><br>&amp;");
        assert_eq!(write("<b onclick=x>a"), "<b>a</b>");
        assert_eq!(write("<mark style=\"a\">b</mark><br class=c />"), "<mark>b</mark><br>");
        assert_eq!(write("<span style=\"color: red\">a</span><font/>b< b>"), "ab&lt; b&gt;");
        assert_eq!(write("<b title=\"<script>\">a</b>"), "<b>&quot;&gt;a</b>");
        assert_eq!(write("<script>a</script>"), "&lt;script&gt;a&lt;/script&gt;");
        assert_eq!(write("<u>a<b>c</u>"), "<u>a<b>c</b></u>");
        assert_eq!(write("<!-- <b> -->x<!-- y"), "x");
        assert_eq!(write("a <img src=x onerror=y"), "a &lt;img src=x onerror=y");
    }
}
