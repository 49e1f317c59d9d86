//! Connecting a model without an editor: through the card in the agent's panel, after a run that found none, and in the
//! settings; and switching the model at the message field.

use super::agent::{ask, asked, ended, model, shows, soon};
use super::*;
use egui_kittest::kittest::NodeT;

fn panel(bench: &Bench) -> Driven {
    let mut window = bench.opened();
    press(&mut window, Modifiers::COMMAND | Modifiers::ALT, Key::I);
    window
}

fn click(window: &mut Driven, label: &str) {
    window.get_by_label(label).click_accesskit();
    window.run_steps(3);
}

fn config(bench: &Bench) -> String {
    std::fs::read_to_string(bench.folder.path().join("workspace/config.yaml")).unwrap_or_default()
}

fn is_focused(window: &mut Driven, label: &str) -> bool {
    window.query_by_label(label).is_some_and(|control| control.is_focused())
}

const CARD: &str = "Connect a model to get started";

#[test]
fn a_model_is_connected_by_its_address_and_switched() {
    let (address, _) = model(|_, body| (format!("{} hears you.", body["model"]), Vec::new()));
    let bench = Bench::new(&[("Talk.md", "# Talk\n")]);
    let mut window = panel(&bench);
    until(&mut window, "the card is shown", |window| shows(window, CARD));
    for offer in ["Add an API key", "Other endpoint…", "Later", "Model: Choose a model"] {
        window.get_by_label(offer);
    }
    // The key is typed into a password field.
    click(&mut window, "Add an API key");
    window.get_by_label("OpenRouter");
    window.get_by_label("API key").focus();
    window.run();
    type_text(&mut window, "sk-planted");
    assert!(!shows(&mut window, "sk-planted"));
    click(&mut window, "Back");
    click(&mut window, "Other endpoint…");
    window.get_by_label("Base URL").focus();
    window.run();
    type_text(&mut window, "http://127.0.0.1:1");
    const KEY: &str = "API key, if it needs one";
    window.get_by_label(KEY).focus();
    window.run();
    type_text(&mut window, "sk-typed");
    click(&mut window, "Connect");
    until(&mut window, "it says why not", |window| shows(window, "127.0.0.1:1 cannot be reached"));
    let hidden = window.get_by_label(KEY).accesskit_node().value().unwrap_or_default();
    assert_eq!(hidden.chars().count(), 8, "the key needn't be pasted again");
    window.get_by_label(KEY).focus();
    window.run();
    press(&mut window, CTRL, Key::A);
    press(&mut window, NONE, Key::Delete);
    window.get_by_label("Base URL").focus();
    window.run();
    press(&mut window, CTRL, Key::A);
    type_text(&mut window, &address);
    click(&mut window, "Connect");
    until(&mut window, "its models are listed", |window| shows(window, "Use big"));
    click(&mut window, "Use big");
    click(&mut window, "Use this model");
    until(&mut window, "its name is shown", |window| shows(window, "Model: big"));
    assert!(!shows(&mut window, CARD));
    let written = config(&bench);
    assert!(written.contains("model: big") && written.contains(&format!("{address}/v1")), "{written}");
    ask(&mut window, "Do you hear me?");
    soon(&mut window, "it answers", ended);
    assert!(shows(&mut window, "\"big\" hears you."));

    click(&mut window, "Model: big");
    until(&mut window, "the others are listed", |window| shows(window, "Use m"));
    window.get_by_label("Connect another model…");
    click(&mut window, "Use m");
    until(&mut window, "it's the other one", |window| shows(window, "Model: m"));
    let kept = config(&bench);
    assert!(kept.contains("model: m\n") && kept.lines().count() == written.lines().count(), "{kept}");
}

#[test]
fn the_card_takes_the_keyboard_unless_a_message_is_typed() {
    let bench = Bench::new(&[("Talk.md", "# Talk\n")]);
    let mut window = panel(&bench);
    until(&mut window, "the first choice has the keyboard", |window| is_focused(window, "Add an API key"));
    press(&mut window, Modifiers::NONE, Key::Enter);
    until(&mut window, "the key's field has it", |window| is_focused(window, "API key"));
    type_text(&mut window, "sk-planted");
    assert!(!shows(&mut window, "sk-planted"));
    click(&mut window, "Back");
    until(&mut window, "back at the first choice", |window| is_focused(window, "Add an API key"));
    click(&mut window, "Other endpoint…");
    until(&mut window, "the address has it", |window| is_focused(window, "Base URL"));
    type_text(&mut window, "http://127.0.0.1:1");
    press(&mut window, Modifiers::NONE, Key::Enter);
    until(&mut window, "it says why not", |window| shows(window, "127.0.0.1:1 cannot be reached"));
    until(&mut window, "the address can be mended", |window| is_focused(window, "Base URL"));

    // With a message begun, the panel comes back where it was typed.
    click(&mut window, "Back");
    window.get_by_label("Message to the agent").focus();
    window.run();
    type_text(&mut window, "Are you there?");
    for _ in 0..2 {
        press(&mut window, Modifiers::COMMAND | Modifiers::ALT, Key::I);
    }
    until(&mut window, "the panel is back", |window| shows(window, "Look again"));
    window.run_steps(3);
    assert!(is_focused(&mut window, "Message to the agent"), "a message is being typed");
}

#[test]
fn a_small_context_is_told_and_changed() {
    let (address, _) = model(|_, _| ("Yes.".to_owned(), Vec::new()));
    let bench = Bench::new(&[("Talk.md", "# Talk\n")]);
    let mut window = asked(&bench, &address);
    let file = bench.folder.path().join("workspace/config.yaml");
    std::fs::write(&file, config(&bench).replace("context: 32000", "context: 4096")).expect("written");
    ask(&mut window, "Are you there?");
    soon(&mut window, "it has ended", ended);
    assert!(shows(&mut window, "Context is limited to 4k tokens"));
    click(&mut window, "Change");
    until(&mut window, "sizes are offered", |window| shows(window, "64k tokens"));
    click(&mut window, "64k tokens");
    until(&mut window, "it's larger", |window| !shows(window, "Context is limited"));
    assert!(config(&bench).contains("context: 65536"), "{}", config(&bench));
}

#[test]
fn the_card_is_put_away_and_settings_have_it() {
    let bench = Bench::new(&[("Talk.md", "# Talk\n")]);
    let mut window = panel(&bench);
    until(&mut window, "the card is shown", |window| shows(window, CARD));
    click(&mut window, "Later");
    until(&mut window, "it's gone", |window| !shows(window, CARD));
    window.get_by_label("Message to the agent");
    press(&mut window, CTRL, Key::Comma);
    window.get_by_role_and_label(Role::Tab, "Agents and models").click();
    window.run();
    click(&mut window, "Connect…");
    until(&mut window, "it's in the settings", |window| shows(window, CARD));
}

#[test]
fn a_run_that_finds_no_model_leads_to_the_card() {
    let bench = Bench::new(&[("Talk.md", "# Talk\n")]);
    let mut window = asked(&bench, "http://127.0.0.1:1");
    assert!(!shows(&mut window, CARD), "one was chosen");
    ask(&mut window, "Are you there?");
    soon(&mut window, "it has failed", |window| shows(window, "Connect a model"));
    assert!(shows(&mut window, "cannot be reached"));
    click(&mut window, "Connect a model");
    until(&mut window, "the card is shown", |window| shows(window, CARD));
}
