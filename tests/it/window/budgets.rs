//! Content beyond a limit, in the window: it's named with the reason, the content around it is drawn, and no frame
//! waits for it.

use super::{Bench, text, until};
use egui_kittest::kittest::Queryable;
use std::time::{Duration, Instant};

const NOTE: &str = "Before.\n\n![](filters.svg)\n\n![](bomb.png)\n\n```mermaid\nflowchart LR\n  Cloud --> Rain\n```\n\n\
                    $\\sqrt{a}$ and the last line.\n";

#[test]
fn pictures_beyond_their_limits_are_named_with_the_reason() {
    let bench = Bench::new(&[("A.md", NOTE), ("filters.svg", &crate::budgets::filters())]);
    std::fs::write(bench.notes().join("bomb.png"), crate::budgets::bomb()).expect("written");
    let mut window = bench.opened();
    let mut slowest = Duration::ZERO;
    for label in [
        "filters.svg (not shown. It takes longer than",
        "bomb.png (not shown. It needs more than 256 MB of memory.)",
        "Diagram: flowchart LR",
        "and the last line.",
    ] {
        until(&mut window, label, |window| {
            let begun = Instant::now();
            window.step();
            slowest = slowest.max(begun.elapsed());
            window.query_all_by_label_contains(label).next().is_some()
        });
    }
    assert!(slowest < Duration::from_secs(2), "no frame waits for a drawing: {slowest:?}");
}

#[test]
fn a_character_in_a_very_long_nested_list_is_shown_soon() {
    let cycle: String = (0..190_000).map(|line| format!("{}- item\n", "  ".repeat(line % 40))).collect();
    let deep: String = (0..2_900).map(|line| format!("{}- item\n", "  ".repeat(line))).collect();
    for (name, list) in [("forty levels again and again", cycle), ("ever deeper", deep)] {
        let bench = Bench::new(&[("A.md", &list)]);
        let mut window = bench.opened();
        let middle = list.len() / 2;
        window.state_mut().place_caret(middle + list[middle..].find("item").expect("a word"));
        window.run();
        // CPU time, since other processes may have the machine for seconds.
        let begun = support::measure::thread_cpu();
        for letter in ["x", "y", "z"] {
            window.event(egui::Event::Text(letter.to_owned()));
            window.step();
        }
        let took = support::measure::thread_cpu() - begun;
        println!("{name}: {} MB, {took:?} for three characters", list.len() >> 20);
        until(&mut window, "it is there", |window| text(window).is_some_and(|text| text.len() == list.len() + 3));
        assert!(took < Duration::from_secs(3), "{name}: {took:?}");
    }
}
