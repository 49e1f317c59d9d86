//! Tasks: list items with a box, `- [ ] text`, and fields as the Tasks plugin or Dataview write them. Parses and
//! rewrites single lines; knows neither notes nor the current day.

use crate::recurrence::RecurrenceRule;
use serde::{Deserialize, Serialize};

/// A task of a note.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NoteTask {
    /// Byte offset of the task's line in the note.
    #[serde(rename = "o")]
    pub at: usize,
    /// The character in the box.
    #[serde(rename = "m")]
    pub mark: char,
    /// The task's text, without the fields.
    #[serde(rename = "t")]
    pub text: String,
    /// Due day.
    #[serde(rename = "d", skip_serializing_if = "Option::is_none")]
    pub due: Option<CalendarDay>,
    /// Day for which the task is scheduled.
    #[serde(rename = "s", skip_serializing_if = "Option::is_none")]
    pub scheduled: Option<CalendarDay>,
    /// First day on which the task can be done.
    #[serde(rename = "b", skip_serializing_if = "Option::is_none")]
    pub start: Option<CalendarDay>,
    /// Day on which the task was completed.
    #[serde(rename = "f", skip_serializing_if = "Option::is_none")]
    pub done: Option<CalendarDay>,
    /// Recurrence rule, such as `every week`.
    #[serde(rename = "r", skip_serializing_if = "Option::is_none")]
    pub repeat: Option<String>,
    /// Priority from 0, lowest, to 5, highest; 2 if it isn't given.
    #[serde(rename = "p")]
    pub priority: u8,
}

/// Priority of a task that doesn't state one.
pub const NORMAL_PRIORITY: u8 = 2;

const PRIORITY_MARKS: [(&str, &str, u8); 5] =
    [("🔺", "highest", 5), ("⏫", "high", 4), ("🔼", "medium", 3), ("🔽", "low", 1), ("⏬", "lowest", 0)];

/// A field: its emoji and its name in Dataview. If there are several emoji, the Tasks plugin reads them all, and writes
/// the first one.
type FieldNames = (&'static [&'static str], &'static str);

const DUE_FIELD: FieldNames = (&["📅", "📆", "🗓"], "due");
const SCHEDULED_FIELD: FieldNames = (&["⏳", "⌛"], "scheduled");
const START_FIELD: FieldNames = (&["🛫"], "start");
const DONE_FIELD: FieldNames = (&["✅"], "completion");
const CREATED_FIELD: FieldNames = (&["➕"], "created");
const CANCELLED_FIELD: FieldNames = (&["❌"], "cancelled");
const REPEAT_FIELD: FieldNames = (&["🔁"], "repeat");
const ID_FIELD: FieldNames = (&["🆔"], "id");
const BLOCKED_BY_FIELD: FieldNames = (&["⛔"], "dependsOn");
const ON_COMPLETION_FIELD: FieldNames = (&["🏁"], "onCompletion");

/// Length of a day such as `2024-05-06`.
const DAY_BYTES: usize = 10;

impl NoteTask {
    /// Parses the task in a line that begins at byte `at`. `None` if it has none.
    pub fn parse_line(line: &str, at: usize) -> Option<NoteTask> {
        let (mark, from) = parse_box(line)?;
        let mut rest = line[from..].to_owned();
        let mut day = |field| take_field(&mut rest, field).and_then(|value| CalendarDay::parse(&value));
        let (due, scheduled, start, done) = (day(DUE_FIELD), day(SCHEDULED_FIELD), day(START_FIELD), day(DONE_FIELD));
        day(CREATED_FIELD);
        day(CANCELLED_FIELD);
        let repeat = take_field(&mut rest, REPEAT_FIELD).map(|rule| rule.trim().to_owned());
        for field in [ID_FIELD, BLOCKED_BY_FIELD, ON_COMPLETION_FIELD] {
            take_field(&mut rest, field);
        }
        let mut priority = NORMAL_PRIORITY;
        for (emoji, name, number) in PRIORITY_MARKS {
            if rest.contains(emoji) {
                rest = rest.replace(emoji, " ");
                priority = number;
            }
            if find_dataview_field(&rest, "priority").is_some_and(|(_, value)| value.eq_ignore_ascii_case(name)) {
                priority = number;
            }
        }
        if let Some((range, _)) = find_dataview_field(&rest, "priority") {
            rest.replace_range(range, " ");
        }
        let text = rest.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(NoteTask { at, mark, text, due, scheduled, start, done, repeat, priority })
    }

    /// Returns whether the task is completed or canceled.
    pub fn is_done(&self) -> bool {
        matches!(self.mark, 'x' | 'X' | '-')
    }

    /// Returns the day for an agenda: the due day, else the scheduled day, else the start day.
    pub fn agenda_day(&self) -> Option<CalendarDay> {
        self.due.or(self.scheduled).or(self.start)
    }
}

/// Returns the character in the box of a task's line, and where its text starts.
fn parse_box(line: &str) -> Option<(char, usize)> {
    let body = line.trim_start_matches([' ', '\t', '>']);
    let bullet = if body.starts_with(['-', '*', '+']) {
        1
    } else {
        let digits = body.bytes().take_while(u8::is_ascii_digit).count();
        (digits > 0 && digits < 10 && body[digits..].starts_with(['.', ')'])).then_some(digits + 1)?
    };
    let rest = body[bullet..].strip_prefix(' ')?.trim_start();
    let mut letters = rest.strip_prefix('[')?.chars();
    let mark = letters.next()?;
    let rest = letters.as_str().strip_prefix(']')?;
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then_some((mark, line.len() - rest.len()))
}

/// Removes a field from a line and returns its value: `📅 2024-05-06`, `[due:: 2024-05-06]` or `(due:: 2024-05-06)`.
fn take_field(line: &mut String, field: FieldNames) -> Option<String> {
    let (range, value) = find_field(line, field)?;
    line.replace_range(range, " ");
    Some(value)
}

/// Removes a field from a line, with the spaces before it.
fn drop_field(line: &mut String, field: FieldNames) {
    if let Some((range, _)) = find_field(line, field) {
        let blank = line[..range.start].trim_end().len();
        line.replace_range(blank..range.end, "");
    }
}

/// Finds a field. An emoji without a value is ordinary text.
fn find_field(line: &str, (emoji, name): FieldNames) -> Option<(std::ops::Range<usize>, String)> {
    let marks = emoji.iter().flat_map(|emoji| line.match_indices(emoji));
    let written = marks.filter_map(|(at, emoji)| {
        let rest = line[at + emoji.len()..].trim_start_matches('\u{fe0f}');
        let value = rest.trim_start();
        let from = line.len() - value.len();
        let length = field_value_length(value, name);
        (length > 0).then(|| (at..from + length, value[..length].to_owned()))
    });
    written.min_by_key(|(range, _)| range.start).or_else(|| find_dataview_field(line, name))
}

/// Returns the length of the value that follows a field's emoji; 0 if none does.
fn field_value_length(value: &str, name: &str) -> usize {
    if name == REPEAT_FIELD.1 {
        // The rule is several words, up to the next emoji or field.
        let is_end = |letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, ' ' | ','));
        value.find(is_end).unwrap_or(value.len())
    } else if [ID_FIELD, BLOCKED_BY_FIELD, ON_COMPLETION_FIELD].iter().any(|field| field.1 == name) {
        id_list_length(value)
    } else {
        value.get(..DAY_BYTES).filter(|day| CalendarDay::parse(day).is_some()).map_or(0, str::len)
    }
}

/// Returns the length of a list of ids such as `a1b2c3, d4e5f6`, or of one word.
fn id_list_length(value: &str) -> usize {
    let mut is_after_comma = false;
    let is_end = |letter: char| {
        let is_space = letter == ' ' && is_after_comma;
        is_after_comma = is_space || letter == ',';
        !(is_space || letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | ','))
    };
    let end = value.find(is_end).unwrap_or(value.len());
    value[..end].trim_end().len()
}

/// Finds the Dataview field with this name. Returns its range and value.
fn find_dataview_field(line: &str, name: &str) -> Option<(std::ops::Range<usize>, String)> {
    for (open, close) in [('[', ']'), ('(', ')')] {
        let mark = format!("{open}{name}::");
        if let Some(at) = line.find(&mark) {
            let from = at + mark.len();
            let end = from + line[from..].find(close)?;
            return Some((at..end + 1, line[from..end].trim().to_owned()));
        }
    }
    None
}

/// Toggles a task's line on the day `today`. Returns the new line, and the line of the next occurrence, which belongs
/// above it.
pub fn toggle_line(line: &str, today: CalendarDay) -> Option<(String, Option<String>)> {
    let (mark, _) = parse_box(line)?;
    let task = NoteTask::parse_line(line, 0)?;
    let open = line.find('[')? + 1;
    let mut changed = line.to_owned();
    if task.is_done() {
        changed.replace_range(open..open + mark.len_utf8(), " ");
        drop_field(&mut changed, DONE_FIELD);
        return Some((changed, None));
    }
    changed.replace_range(open..open + mark.len_utf8(), "x");
    // The completion day is written in the style of the line's other fields, and omitted if there are none.
    let fields = [DUE_FIELD, SCHEDULED_FIELD, START_FIELD, CREATED_FIELD, REPEAT_FIELD];
    let emoji = fields.iter().any(|(emoji, _)| emoji.iter().any(|emoji| line.contains(emoji)));
    let named = fields.iter().any(|(_, name)| find_dataview_field(line, name).is_some());
    let field = match (emoji, named) {
        (true, _) => format!(" {} {today}", DONE_FIELD.0[0]),
        (false, true) => format!(" [{}:: {today}]", DONE_FIELD.1),
        (false, false) => String::new(),
    };
    let id = changed.trim_end().rfind(" ^").filter(|at| !changed[at + 2..].trim_end().contains(' '));
    let end = id.unwrap_or(changed.trim_end().len());
    changed.insert_str(end, &field);
    let next = task.repeat.as_deref().and_then(|rule| {
        let rule = RecurrenceRule::parse(rule)?;
        let base = if rule.when_done { today } else { task.agenda_day().unwrap_or(today) };
        let next_day = rule.next_day(base)?;
        let step = |day: CalendarDay| CalendarDay(next_day.0 + day.0 - task.agenda_day().unwrap_or(day).0);
        let mut next = line.to_owned();
        next.replace_range(open..open + mark.len_utf8(), " ");
        if let Some(at) = next.trim_end().rfind(" ^").filter(|at| !next[at + 2..].trim_end().contains(' ')) {
            next.truncate(at); // a block's name belongs to one block
        }
        // So does a task's id, and what blocked this one doesn't block the next one.
        for field in [ID_FIELD, BLOCKED_BY_FIELD] {
            drop_field(&mut next, field);
        }
        let days = [(DUE_FIELD, task.due), (SCHEDULED_FIELD, task.scheduled), (START_FIELD, task.start)];
        for (field, day) in days.into_iter().filter_map(|(field, day)| Some((field, day?))) {
            let (range, _) = find_field(&next, field)?;
            let old = day.to_string();
            let at = range.start + next[range.clone()].find(&old)?;
            next.replace_range(at..at + old.len(), &step(day).to_string());
        }
        Some(next)
    });
    Some((changed, next))
}

/// A calendar day, in days since 1970-01-01.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CalendarDay(pub i64);

impl CalendarDay {
    /// Parses a day such as `2024-05-06`. Text after it, such as a time, is ignored.
    pub fn parse(text: &str) -> Option<CalendarDay> {
        let text = text.trim().get(..10)?;
        let mut parts = text.split('-').map(|part| part.parse::<i64>().ok());
        let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
        let of = CalendarDay::from_date(year, month, day);
        ((1..=12).contains(&month) && of.date() == (year, month, day)).then_some(of)
    }

    /// Returns the day of a date (proleptic Gregorian calendar; H. Hinnant's `days_from_civil`).
    pub fn from_date(year: i64, month: i64, day: i64) -> CalendarDay {
        let year = if month <= 2 { year - 1 } else { year };
        let era = year.div_euclid(400);
        let of_era = year - era * 400;
        let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        CalendarDay(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
    }

    /// Returns year, month and day.
    pub fn date(self) -> (i64, i64, i64) {
        let days = self.0 + 719_468;
        let era = days.div_euclid(146_097);
        let of_era = days - era * 146_097;
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let shifted = (5 * of_year + 2) / 153;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        (year + era * 400 + i64::from(month <= 2), month, of_year - (153 * shifted + 2) / 5 + 1)
    }

    /// Returns the weekday, 0 for Monday to 6 for Sunday.
    pub fn weekday(self) -> i64 {
        (self.0 + 3).rem_euclid(7)
    }

    /// Returns the day this many months later, or the last day of that month if it's shorter.
    pub fn add_months(self, count: i64) -> CalendarDay {
        let (year, month, day) = self.date();
        let months = year * 12 + month - 1 + count;
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        let next = if month == 12 {
            CalendarDay::from_date(year + 1, 1, 1)
        } else {
            CalendarDay::from_date(year, month + 1, 1)
        };
        CalendarDay(CalendarDay::from_date(year, month, day).0.min(next.0 - 1))
    }
}

impl std::fmt::Display for CalendarDay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (year, month, day) = self.date();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

/// Group of the agenda that a task belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgendaSlot {
    /// The task's day is before today.
    Overdue,
    /// The task's day is today.
    Today,
    /// The task's day is after today.
    Upcoming,
    /// The task has no day.
    Someday,
    /// The task is completed.
    Done,
}

impl AgendaSlot {
    /// Returns the group of `task` on the day `today`.
    pub fn of(task: &NoteTask, today: CalendarDay) -> AgendaSlot {
        match task.agenda_day() {
            _ if task.is_done() => AgendaSlot::Done,
            None => AgendaSlot::Someday,
            Some(day) if day < today => AgendaSlot::Overdue,
            Some(day) if day == today => AgendaSlot::Today,
            Some(_) => AgendaSlot::Upcoming,
        }
    }

    /// Returns the heading of the group.
    pub fn title(self) -> &'static str {
        match self {
            AgendaSlot::Overdue => "Overdue",
            AgendaSlot::Today => "Today",
            AgendaSlot::Upcoming => "Upcoming",
            AgendaSlot::Someday => "No date",
            AgendaSlot::Done => "Done",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> CalendarDay {
        CalendarDay::parse(text).expect("a day")
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(day("1970-01-01"), CalendarDay(0));
        assert_eq!(day("2024-02-29").0 + 1, day("2024-03-01").0);
        assert_eq!(day("2024-05-06").weekday(), 0);
        assert_eq!(CalendarDay::parse("2023-02-29"), None);
        assert_eq!(CalendarDay::parse("2023-13-01"), None);
        assert_eq!(day("2024-01-31").add_months(1), day("2024-02-29"));
        for number in (-800_000..800_000).step_by(97) {
            let (year, month, of) = CalendarDay(number).date();
            assert_eq!(CalendarDay::from_date(year, month, of), CalendarDay(number));
        }
    }

    #[test]
    fn tasks_with_their_fields() {
        let task = NoteTask::parse_line("  - [ ] Pay ⏫ the rent 📅 2024-05-06 🔁 every month ⏳ 2024-05-01", 7)
            .expect("a task");
        let (due, scheduled) = (Some(day("2024-05-06")), Some(day("2024-05-01")));
        let repeat = Some("every month".to_owned());
        let text = "Pay the rent".to_owned();
        assert_eq!(
            task,
            NoteTask { at: 7, mark: ' ', text, due, scheduled, repeat, priority: 4, ..NoteTask::default() }
        );
        let task = NoteTask::parse_line("1. [x] A [due:: 2024-05-06] (priority:: low) b [completion::2024-05-07]", 0)
            .expect("one");
        assert_eq!((task.due, task.done, task.priority), (Some(day("2024-05-06")), Some(day("2024-05-07")), 1));
        assert_eq!((task.text.as_str(), task.is_done()), ("A b", true));
        for line in ["- [] a", "-[ ] a", "- [ab] a", "- [ ]a", "[ ] a", "- a", "", "- [ä", "- "] {
            assert_eq!(NoteTask::parse_line(line, 0), None, "{line}");
        }
        assert_eq!(NoteTask::parse_line("> * [ä] q", 0).map(|task| task.mark), Some('ä'));
    }

    #[test]
    fn a_box_is_clicked() {
        let today = day("2024-05-10");
        let click = |line: &str| toggle_line(line, today).expect("a task");
        assert_eq!(click("- [ ] a"), ("- [x] a".to_owned(), None));
        assert_eq!(click("- [x] a"), ("- [ ] a".to_owned(), None));
        assert_eq!(click("- [ ] a 📅 2024-05-06 ^id").0, "- [x] a 📅 2024-05-06 ✅ 2024-05-10 ^id");
        assert_eq!(click("- [x] a 📅 2024-05-06 ✅ 2024-05-10").0, "- [ ] a 📅 2024-05-06");
        assert_eq!(click("- [ ] a [due:: 2024-05-06]").0, "- [x] a [due:: 2024-05-06] [completion:: 2024-05-10]");
        let next = |line: &str| click(line).1.expect("it comes again");
        assert_eq!(next("* [ ] a 🔁 every week 📅 2024-05-06 ^id"), "* [ ] a 🔁 every week 📅 2024-05-13");
        let done = "- [ ] a 🔁 every 3 days when done 📅 2024-05-06";
        assert_eq!(next(done), "- [ ] a 🔁 every 3 days when done 📅 2024-05-13");
        assert_eq!(next("- [ ] a [repeat:: every month] [due:: 2024-01-31]"), {
            "- [ ] a [repeat:: every month] [due:: 2024-02-29]"
        });
        assert_eq!(next("- [ ] a 🔁 every friday 📅 2024-05-10"), "- [ ] a 🔁 every friday 📅 2024-05-17");
        assert_eq!(next("- [ ] a 🔁 every weekday 📅 2024-05-10"), "- [ ] a 🔁 every weekday 📅 2024-05-13");
        let two = "- [ ] a 🔁 every week ⏳ 2024-05-04 📅 2024-05-06";
        assert_eq!(next(two), "- [ ] a 🔁 every week ⏳ 2024-05-11 📅 2024-05-13");
        assert_eq!(click("- [ ] a 🔁 whenever").1, None);
        let last = "- [ ] a 🔁 every month on the last Friday 🗓️ 2024-05-31";
        assert_eq!(next(last), "- [ ] a 🔁 every month on the last Friday 🗓️ 2024-06-28");
        let ids = "- [ ] a 🆔 b-1 ⛔ c2, d_3 🔁 every week 🏁 delete 📆 2024-05-06";
        assert_eq!(next(ids), "- [ ] a 🔁 every week 🏁 delete 📆 2024-05-13");
        let task = NoteTask::parse_line(ids, 0).expect("a task");
        assert_eq!((task.text.as_str(), task.due), ("a", Some(day("2024-05-06"))));
        assert_eq!(click("- [x] ✅ reap").0, "- [ ] ✅ reap", "a mark without a day is text");
        let mixed = "- [ ] ✅ or ❌ for each 📅 soon 📅 2024-05-06";
        let task = NoteTask::parse_line(mixed, 0).expect("a task");
        assert_eq!((task.text.as_str(), task.due), ("✅ or ❌ for each 📅 soon", Some(day("2024-05-06"))));
        assert_eq!(click(&click(mixed).0).0, mixed);
    }
}
