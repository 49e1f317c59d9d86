//! Axis scales: conversion between values and positions, and ticks at round numbers, decades and dates.

use crate::figure::{AxisSpec, RequestedTicks};

/// The scale of one axis: maps values to positions in points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AxisScale {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) log: bool,
    pub(crate) from: f64,
    pub(crate) to: f64,
}

impl AxisScale {
    fn linear(&self, x: f64) -> f64 {
        if self.log { x.ln() } else { x }
    }

    /// Returns the position of a value.
    pub(crate) fn position(&self, x: f64) -> f64 {
        let (low, high) = (self.linear(self.low), self.linear(self.high));
        self.from + (self.linear(x) - low) / (high - low) * (self.to - self.from)
    }

    /// Returns the offset and factor that map values to positions, for many values at once. On a logarithmic scale they
    /// apply to the logarithm of the value.
    pub(crate) fn affine(self) -> (f64, f64) {
        let (low, high) = (self.linear(self.low), self.linear(self.high));
        let slope = (self.to - self.from) / (high - low);
        (self.from - low * slope, slope)
    }

    /// Returns the limits, slightly widened; on a logarithmic scale, their logarithms.
    pub(crate) fn padded_ends(self) -> [f64; 2] {
        let (low, high) = (self.linear(self.low), self.linear(self.high));
        let room = (high - low) / (self.to - self.from);
        [low - room, high + room]
    }

    /// Returns the value at a position.
    pub(crate) fn number(&self, at: f64) -> f64 {
        let (low, high) = (self.linear(self.low), self.linear(self.high));
        let x = low + (at - self.from) / (self.to - self.from) * (high - low);
        if self.log { x.exp() } else { x }
    }
}

/// A tick: its value and its label, which is empty for minor ticks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AxisTick {
    pub(crate) at: f64,
    pub(crate) label: String,
}

/// The ticks of an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TickLayout {
    pub(crate) ticks: Vec<AxisTick>,
    /// Multiplier common to all labels, such as "×10⁶"; empty if there's none.
    pub(crate) multiplier: String,
}

/// Lays out an axis' ticks: those that were requested, or about `wanted` round numbers.
pub(crate) fn layout_ticks(side: &AxisSpec, low: f64, high: f64, wanted: f64) -> TickLayout {
    let (from, to) = (low.min(high), low.max(high));
    let slack = (to - from) * 1e-9;
    let inside = |at: f64| at >= from - slack && at <= to + slack;
    let form = |at: f64, label: String| if side.form.is_empty() { label } else { format_with_pattern(&side.form, at) };
    if let Some(RequestedTicks { at, labels }) = &side.ticks {
        let all = at.iter().enumerate().filter(|(_, at)| inside(**at));
        let auto = |at: f64| form(at, format_short(at));
        let ticks: Vec<AxisTick> = all
            .map(|(number, at)| AxisTick { at: *at, label: labels.get(number).cloned().unwrap_or_else(|| auto(*at)) })
            .collect();
        // At high zoom, all requested ticks may be out of view.
        if !labels.is_empty() || ticks.len() > 1 || at.len() < 2 {
            return TickLayout { ticks, multiplier: String::new() };
        }
    }
    if side.dates {
        return TickLayout { ticks: date_ticks(from, to, wanted), multiplier: String::new() };
    }
    if side.scale == "log"
        && let Some(ticks) = decade_ticks(from, to, wanted)
    {
        let ticks = ticks.into_iter().map(|tick| match tick.label.is_empty() {
            true => tick,
            false => AxisTick { label: form(tick.at, tick.label), at: tick.at },
        });
        return TickLayout { ticks: ticks.collect(), multiplier: String::new() };
    }
    let mut marked = round_ticks(from, to, wanted, side.form.is_empty());
    if !side.form.is_empty() {
        marked.ticks.iter_mut().for_each(|tick| tick.label = format_with_pattern(&side.form, tick.at));
    }
    marked
}

/// Returns ticks at powers of ten, with minor ticks between them if there's room. `None` for fewer than two decades.
#[allow(clippy::cast_possible_truncation, reason = "exponents are small")]
fn decade_ticks(from: f64, to: f64, wanted: f64) -> Option<Vec<AxisTick>> {
    if !(from > 0.0 && to.is_finite()) {
        return None;
    }
    let (first, last) = ((from.log10() - 1e-9).ceil() as i32, (to.log10() + 1e-9).floor() as i32);
    if last <= first {
        return None;
    }
    let every = (f64::from(last - first + 1) / wanted.max(2.0)).ceil().max(1.0) as i32;
    let mut ticks = Vec::new();
    for power in first - 1..=last {
        let ten = 10_f64.powi(power);
        if power >= first && (power - first) % every == 0 {
            ticks.push(AxisTick { at: ten, label: format!("10{}", superscript_number(power)) });
        }
        if every == 1 && last - first < 9 {
            let small = (2..10_i32).map(|part| f64::from(part) * ten).filter(|at| *at >= from && *at <= to);
            ticks.extend(small.map(|at| AxisTick { at, label: String::new() }));
        }
    }
    Some(ticks)
}

/// Formats an integer in superscript.
pub(crate) fn superscript_number(power: i32) -> String {
    power.to_string().chars().map(to_superscript).collect()
}

/// Returns the superscript form of a character, or the character itself if there's none.
pub(crate) fn to_superscript(letter: char) -> char {
    let plain = "0123456789-\u{2212}+()n";
    let above = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁻⁺⁽⁾ⁿ";
    plain.chars().zip(above.chars()).find(|(from, _)| *from == letter).map_or(letter, |(_, to)| to)
}

#[allow(clippy::cast_possible_truncation, reason = "exponents are small")]
fn round_ticks(from: f64, to: f64, wanted: f64, apart: bool) -> TickLayout {
    let rough = (to - from) / wanted.clamp(2.0, 9.0);
    let ten = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|part| part * ten).find(|step| *step >= rough * 0.999);
    let Some(step) = step.filter(|step| step.is_normal()) else { return TickLayout::default() };
    let first = (from / step - 1e-9).ceil();
    let count = ((to / step + 1e-9).floor() - first).clamp(-1.0, 50.0);
    // Very large or small numbers show their power of ten once per axis, as in matplotlib.
    let large = from.abs().max(to.abs());
    let power = if large > 0.0 { large.log10().floor() as i32 } else { 0 };
    let times = if apart && !(-3..6).contains(&power) && step * 1e9 > large { power } else { 0 };
    let unit = 10_f64.powi(times);
    let scaled = step / unit;
    let places = (0..=12).find(|places| {
        let scaled = scaled * 10_f64.powi(*places);
        (scaled - scaled.round()).abs() < 1e-6 * scaled
    });
    let number = |at: i32| {
        let x = (first + f64::from(at)) * step;
        let label = match places {
            Some(places) => format!("{:.*}", places.unsigned_abs() as usize, x / unit),
            None => format!("{:e}", x),
        };
        let nought = label.trim_start_matches('-').chars().all(|c| c == '0' || c == '.');
        let label = if nought { label.trim_start_matches('-').to_owned() } else { with_minus(&label) };
        AxisTick { at: if nought { 0.0 } else { x }, label }
    };
    let ticks = (0..=count as i32).filter(|_| count >= 0.0).map(number).collect();
    let times = if times == 0 { String::new() } else { format!("×10{}", superscript_number(times)) };
    TickLayout { ticks, multiplier: times }
}

fn with_minus(text: &str) -> String {
    text.replacen('-', "\u{2212}", usize::from(text.starts_with('-')))
}

/// Formats a number in few characters.
pub(crate) fn format_short(x: f64) -> String {
    let text = format!("{x}");
    let text = if text.len() > 8 { format!("{x:.3e}") } else { text };
    with_minus(&text)
}

/// Formats a number with enough digits to distinguish values that are `step` apart.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "digits")]
pub(crate) fn format_with_step(x: f64, step: f64) -> String {
    if !x.is_finite() {
        return "nan".to_owned();
    }
    let places = (1.0 - step.abs().log10().floor()).clamp(0.0, 12.0);
    let large = x.abs();
    if large >= 1e15 || (large > 0.0 && large < 1e-9) || !step.is_normal() {
        return with_minus(&format!("{x:.4e}"));
    }
    let text = format!("{x:.*}", places as usize);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_owned() } else { with_minus(text) }
}

/// Formats a number with a pattern such as `%.1f%%`, `${x:,.0f}` or `{:.2f}`. Other patterns are returned unchanged.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "digits")]
fn format_with_pattern(form: &str, x: f64) -> String {
    let found = if let Some(open) = form.find('{') {
        form[open..].find('}').map(|close| {
            let inner = &form[open + 1..open + close];
            (open, open + close + 1, inner.split_once(':').map_or("", |(_, spec)| spec))
        })
    } else {
        form.find('%').and_then(|open| {
            let rest = &form[open + 1..];
            let kind = rest.find(|c: char| c.is_ascii_alphabetic())?;
            Some((open, open + kind + 2, &rest[..=kind]))
        })
    };
    let Some((open, end, spec)) = found else { return form.to_owned() };
    let comma = spec.contains(',');
    let kind = spec.chars().last().filter(char::is_ascii_alphabetic).or(spec.ends_with('%').then_some('%'));
    let places: Option<usize> = spec.split_once('.').and_then(|(_, rest)| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok().map(|places: usize| places.min(12))
    });
    let number = match kind {
        Some('d' | 'i') => format!("{x:.0}"),
        Some('e') => format!("{x:.*e}", places.unwrap_or(6)),
        Some('f') => format!("{x:.*}", places.unwrap_or(6)),
        Some('%') => format!("{:.*}%", places.unwrap_or(6), x * 100.0),
        _ => format_short(x),
    };
    let number = if comma { group_thousands(&number) } else { with_minus(&number) };
    format!("{}{number}{}", &form[..open], &form[end..]).replace("%%", "%")
}

/// Formats a number with commas between thousands.
fn group_thousands(number: &str) -> String {
    let (sign, rest) = number.strip_prefix('-').map_or(("", number), |rest| ("\u{2212}", rest));
    let (whole, part) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    let mut out = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + part
}

const SECONDS_PER_DAY: f64 = 86_400.0;

/// Converts days since 1970 to year, month and day, after Howard Hinnant's `civil_from_days`.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}

/// Returns the days since 1970 of a month's first day; `month` may be outside 1 to 12.
fn days_to_month_start(year: i64, month: i64) -> i64 {
    let (year, month) = (year + (month - 1).div_euclid(12), (month - 1).rem_euclid(12) + 1);
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let yoe = year.rem_euclid(400);
    let doy = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5;
    era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468
}

/// Formats a time in seconds since 1970, with the precision that `step` (in seconds) requires.
#[allow(clippy::cast_possible_truncation, reason = "within some thousand years")]
pub(crate) fn format_date(seconds: f64, step: f64) -> String {
    if !(-1e12..1e12).contains(&seconds) {
        return format_short(seconds);
    }
    let whole = (seconds + 1e-6).floor();
    let (year, month, day) = civil_from_days((whole / SECONDS_PER_DAY).floor() as i64);
    let left = whole.rem_euclid(SECONDS_PER_DAY) as i64;
    let (hour, minute, second) = (left / 3_600, left / 60 % 60, left % 60);
    match step {
        step if step >= 360.0 * SECONDS_PER_DAY => format!("{year:04}"),
        step if step >= 28.0 * SECONDS_PER_DAY => format!("{year:04}-{month:02}"),
        step if step >= SECONDS_PER_DAY => format!("{year:04}-{month:02}-{day:02}"),
        step if step >= 3_600.0 => format!("{month:02}-{day:02} {hour:02}"),
        step if step >= 60.0 => format!("{day:02} {hour:02}:{minute:02}"),
        _ => format!("{hour:02}:{minute:02}:{second:02}"),
    }
}

/// Returns ticks at round dates and times.
#[allow(clippy::cast_possible_truncation, reason = "within some thousand years")]
fn date_ticks(from: f64, to: f64, wanted: f64) -> Vec<AxisTick> {
    if !(from > -1e11 && to < 1e11 && to > from) {
        return Vec::new();
    }
    let rough = (to - from) / (wanted * 0.8).clamp(2.0, 8.0);
    let seconds = [1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1_800.0, 3_600.0, 7_200.0, 10_800.0, 21_600.0, 43_200.0];
    let label = |at: f64, step: f64| AxisTick { at, label: format_date(at, step) };
    if let Some(step) = seconds.into_iter().find(|step| *step >= rough) {
        let first = (from / step).ceil();
        let count = ((to / step).floor() - first).clamp(-1.0, 60.0) as i32;
        return (0..=count).map(|at| label((first + f64::from(at)) * step, step)).collect();
    }
    let (year, month, _) = civil_from_days((from / SECONDS_PER_DAY).floor() as i64);
    let (last_year, last_month, _) = civil_from_days((to / SECONDS_PER_DAY).floor() as i64);
    let inside = |tick: &AxisTick| tick.at >= from && tick.at <= to;
    let days = rough / SECONDS_PER_DAY;
    if days <= 16.0 {
        let every: i32 = [1, 2, 4, 7, 15].into_iter().find(|every| f64::from(*every) >= days).unwrap_or(15);
        let mut ticks = Vec::new();
        for at in 0..=(last_year - year) * 12 + last_month - month {
            let (first, next) = (days_to_month_start(year, month + at), days_to_month_start(year, month + at + 1));
            // Skips the last days of a month, which would be too close to the first of the next.
            let last = if every == 1 { next } else { next - i64::from(every) / 2 };
            let all = (first..last).step_by(every.unsigned_abs() as usize);
            ticks.extend(all.map(|day| label(day as f64 * SECONDS_PER_DAY, SECONDS_PER_DAY)).filter(inside));
        }
        return ticks;
    }
    let months = days / 30.5;
    if let Some(every) = [1_i64, 2, 3, 4, 6].into_iter().find(|every| *every as f64 >= months * 0.99) {
        let count = (last_year - year) * 12 + 12;
        let all = (0..=count).filter(|at| at % every == 0);
        return all
            .map(|at| label(days_to_month_start(year, 1 + at) as f64 * SECONDS_PER_DAY, 28.0 * SECONDS_PER_DAY))
            .filter(inside)
            .collect();
    }
    let years = (days / 366.0).max(1.0);
    let ten = 10_f64.powf(years.log10().floor());
    let every = [1.0, 2.0, 5.0, 10.0].into_iter().map(|part| part * ten).find(|every| *every >= years).unwrap_or(ten);
    let first = (year as f64 / every).floor() as i64;
    let all = (0..60).map(|at| (first + at) * every as i64).take_while(|year| *year <= last_year);
    all.map(|year| label(days_to_month_start(year, 1) as f64 * SECONDS_PER_DAY, 366.0 * SECONDS_PER_DAY))
        .filter(inside)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(side: &AxisSpec, low: f64, high: f64) -> Vec<String> {
        let all = layout_ticks(side, low, high, 6.0).ticks.into_iter().map(|tick| tick.label);
        all.filter(|label| !label.is_empty()).collect()
    }

    #[test]
    fn ticks_are_round() {
        let (plain, log) = (AxisSpec::default(), AxisSpec { scale: "log".to_owned(), ..AxisSpec::default() });
        assert_eq!(says(&plain, 0.0, 1.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(says(&plain, -1.1, 1.1), ["\u{2212}1.0", "\u{2212}0.5", "0.0", "0.5", "1.0"]);
        assert_eq!(says(&plain, 0.0, 1234.0), ["0", "250", "500", "750", "1000"]);
        assert_eq!(says(&log, 1.0, 1000.0), ["10⁰", "10¹", "10²", "10³"]);
        assert_eq!(says(&plain, f64::NAN, 1.0), Vec::<String>::new());
        assert_eq!(says(&plain, 1.0, 1.0), Vec::<String>::new());
        let large = layout_ticks(&plain, 0.0, 5e7, 6.0);
        assert_eq!((large.ticks[1].label.as_str(), large.multiplier.as_str()), ("1", "×10⁷"));
    }

    #[test]
    fn forms_are_pythons() {
        let formed = |form: &str, x: f64| format_with_pattern(form, x);
        assert_eq!(formed("%.1f%%", 12.34), "12.3%");
        assert_eq!(formed("${x:,.0f}", 1_234_567.0), "$1,234,567");
        assert_eq!(formed("{:.0%}", 0.25), "25%");
        assert_eq!(formed("%d km", 5.0), "5 km");
        assert_eq!(formed("no form", 5.0), "no form");
        assert_eq!(
            (format_with_step(0.123_456, 0.01), format_with_step(3.0, 0.001), format_with_step(-0.0001, 0.1)),
            ("0.123".into(), "3".into(), "0".into())
        );
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (days, said) in [(0, (1970, 1, 1)), (11_016, (2000, 2, 29)), (19_723, (2024, 1, 1)), (-1, (1969, 12, 31))] {
            assert_eq!(civil_from_days(days), said);
            assert_eq!(days_to_month_start(said.0, said.1) + said.2 - 1, days);
        }
        let side = AxisSpec { dates: true, ..AxisSpec::default() };
        let year = 1_704_067_200.0; // 2024
        assert_eq!(says(&side, year, year + 364.0 * SECONDS_PER_DAY)[..2], ["2024-01", "2024-04"]);
        assert_eq!(says(&side, year, year + 5.0 * SECONDS_PER_DAY)[..2], ["2024-01-01", "2024-01-03"]);
        assert_eq!(says(&side, year, year + 3_600.0)[1], "01 00:30");
        assert_eq!(says(&side, year, year + 12.0 * 365.0 * SECONDS_PER_DAY)[0], "2025");
        assert_eq!(says(&side, f64::NAN, year), Vec::<String>::new());
    }
}
