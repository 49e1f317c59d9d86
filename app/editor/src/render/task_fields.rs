//! Fields of tasks such as `📅 2026-11-20` and `🔁 every week`: where they are in a text, and their icons.

use text::task::CalendarDay;
use ui::icons;

/// Emoji of the Tasks plugin that stand before a day, and before the rule of a recurrence.
const FIELD_MARKS: [(&str, &str); 10] = [
    ("📅", icons::CALENDAR),
    ("📆", icons::CALENDAR),
    ("🗓", icons::CALENDAR),
    ("⏳", icons::HOURGLASS),
    ("⌛", icons::HOURGLASS),
    ("🛫", icons::ARROW_RIGHT),
    ("✅", icons::CHECK),
    ("➕", icons::PLUS),
    ("❌", icons::X),
    (REPEAT_MARK, icons::SYNC),
];
const REPEAT_MARK: &str = "🔁";
/// Length of a day such as `2026-11-20`.
const DAY_BYTES: usize = 10;

/// A field of a task in a text, as byte offsets.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TaskField {
    pub(super) start: usize,
    /// End of the emoji; the value follows.
    pub(super) mark_end: usize,
    pub(super) end: usize,
    /// The emoji.
    pub(super) mark: &'static str,
    pub(super) icon: &'static str,
}

/// Returns the first field in a task's text. An emoji without a value is ordinary text.
pub(super) fn first_field(text: &str) -> Option<TaskField> {
    text.char_indices().find_map(|(start, _)| {
        let (mark, icon) = *FIELD_MARKS.iter().find(|(mark, _)| text[start..].starts_with(*mark))?;
        let rest = text[start + mark.len()..].trim_start_matches('\u{fe0f}');
        let mark_end = text.len() - rest.len();
        let value = rest.trim_start_matches(' ');
        let from = text.len() - value.len();
        let length = if mark == REPEAT_MARK { rule_length(value) } else { day_length(value) };
        (length > 0).then_some(TaskField { start, mark_end, end: from + length, mark, icon })
    })
}

fn day_length(value: &str) -> usize {
    value.get(..DAY_BYTES).filter(|day| CalendarDay::parse(day).is_some()).map_or(0, str::len)
}

/// The rule is several words, up to the next emoji or field.
fn rule_length(value: &str) -> usize {
    let is_end = |letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, ' ' | ','));
    let end = value.find(is_end).unwrap_or(value.len());
    value[..end].trim_end().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_a_mark_and_a_value() {
        let found = |text: &'static str| {
            first_field(text).map(|field| (&text[field.start..field.mark_end], &text[field.mark_end..field.end]))
        };
        assert_eq!(found("sow 📅 2026-11-20 #x"), Some(("📅", " 2026-11-20")));
        assert_eq!(found("⏳\u{fe0f}2026-11-20"), Some(("⏳\u{fe0f}", "2026-11-20")));
        assert_eq!(found("sow 🗓\u{fe0f} 2026-11-20"), Some(("🗓\u{fe0f}", " 2026-11-20")));
        assert_eq!(found("🔁 every 2 weeks 📅 2026-11-20"), Some(("🔁", " every 2 weeks")));
        assert_eq!(found("✅ all done, ➕ 2026-01-02"), Some(("➕", " 2026-01-02")), "a mark alone is text");
        for text in ["", "📅", "📅 soon", "📅 2026-13-45", "📅 2026-1-é", "🔁 ", "2026-11-20"] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
