//! Folding headings loses nothing below them.

use super::*;

const TEXT: &str = "# Title\n\nIntro.\n\n## One\n\nFirst.\n\n### Inner\n\nDeep.\n\n## Two\n\nSecond.\n";

fn sees(window: &Driven, words: &[(&str, bool)]) {
    for (word, seen) in words {
        assert_eq!(window.query_all_by_label(word).next().is_some(), *seen, "{word}");
    }
}

#[test]
fn a_heading_is_folded_by_its_chevron() {
    let bench = Bench::new(&[("A.md", TEXT)]);
    let mut window = bench.opened();
    click_label(&mut window, "Fold One");
    sees(&window, &[("Intro.", true), ("First.", false), ("Inner", false), ("Deep.", false), ("Second.", true)]);
    window.get_by_label("Fold Title");
    click_label(&mut window, "Unfold One");
    sees(&window, &[("First.", true), ("Inner", true), ("Deep.", true)]);
    assert_eq!(text(&window).as_deref(), Some(TEXT));
}

#[test]
fn the_grip_beside_a_heading_leaves_its_chevron_free() {
    let bench = Bench::new(&[("A.md", TEXT)]);
    let mut window = bench.opened();
    // The narrower the window, the narrower the margin that both share.
    for width in [1280.0, 800.0, 640.0] {
        window.set_size(egui::vec2(width, 600.0));
        window.run();
        let chevron = window.get_by_label("Fold One").rect();
        window.hover_at(chevron.right_center() + egui::vec2(20.0, 0.0));
        window.run_steps(3);
        let chevron = window.get_by_label("Fold One").rect();
        let grips: Vec<egui::Rect> = window.query_all_by_label("Move block").map(|grip| grip.rect()).collect();
        assert!(!grips.is_empty() && chevron.height() > 27.9, "{width}: {chevron:?}");
        for grip in grips {
            assert!(grip.height() > 27.9, "{width}: {grip:?}");
            assert!(grip.right() <= chevron.left() + 0.5, "{width}: the grip {grip:?} lies on the chevron {chevron:?}");
        }
    }
}

#[test]
fn what_is_folded_away_is_not_deleted_unseen() {
    let bench = Bench::new(&[("A.md", TEXT)]);
    let mut window = bench.opened();
    let fold = |window: &mut Driven| {
        window.get_by_label("Fold One").click();
        window.run();
        sees(window, &[("First.", false)]);
    };
    for (at, key) in [(TEXT.find("\n\nFirst").unwrap(), Key::Delete), (TEXT.find("## Two").unwrap(), Key::Backspace)] {
        fold(&mut window);
        window.state_mut().place_caret(at);
        window.run();
        press(&mut window, NONE, key);
        sees(&window, &[("First.", true), ("Deep.", true)]);
        assert_eq!(text(&window).as_deref(), Some(TEXT), "{key:?}");
    }
    fold(&mut window);
    window.state_mut().place_caret(TEXT.find("\n\nFirst").unwrap());
    window.run();
    press(&mut window, NONE, Key::ArrowDown);
    assert_eq!(
        window.state().caret().map(|at| TEXT[at..].starts_with("wo\n") || TEXT[..at].contains("## ")),
        Some(true)
    );
    sees(&window, &[("First.", false)]);
    press(&mut window, CTRL, Key::F);
    type_text(&mut window, "deep");
    sees(&window, &[("First.", true)]);
}
