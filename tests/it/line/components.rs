//! Generated components: proposed by an agent, read and approved by the user, previewed in a frame that reaches
//! nothing. `.ci/companion` runs hostile ones in a real browser.

use super::agents;
use super::companion::{Browser, link};
use super::http_server::{Server, token};
use crate::program::House;
use serde_json::{Value, json};

const CHART: &str = "customElements.define('my-chart', class extends HTMLElement {\n  async connectedCallback() {\n    \
                     this.textContent = await tracebook.value('status');\n  }\n});";

fn chart(script: &str) -> Value {
    json!({"tagName": "my-chart", "script": script, "styles": "my-chart { color: teal }",
        "data": {"note": "Boat.md", "properties": ["status", "length"]}})
}

fn house() -> House {
    let note = "---\nstatus: afloat\nlength: 7.5\nsecret: keelhaul\n---\n# Boat\n";
    let house = House::with(&[("Boat.md", note)]);
    house.write("notes/components/my-chart.json", chart(CHART).to_string().as_bytes());
    house
}

#[test]
fn an_agent_proposes_a_component_and_the_proposal_is_undone() {
    let model = agents::model(|turn, body| match turn {
        0 => {
            let wrong = json!({"tagName": "my-chart", "script": " ", "styles": ""});
            (String::new(), vec![("propose_component", wrong)])
        }
        1 => {
            let said = body["messages"].to_string();
            assert!(said.contains("customElements.define"), "the refusal says what is missing: {said}");
            (String::new(), vec![("propose_component", chart(CHART))])
        }
        _ => ("Proposed.".to_owned(), Vec::new()),
    });
    let house = agents::house(&model, &[("Boat.md", "# Boat\n")]);
    house.run(&["ask", "show my boat"]).good();
    let file: Value = serde_json::from_slice(&house.read("notes/components/my-chart.json")).expect("JSON");
    assert_eq!(file, chart(CHART));
    let listed = house.json(&["components"]);
    assert_eq!((&listed[0]["tagName"], &listed[0]["approved"]), (&json!("my-chart"), &json!(false)));
    house.run(&["runs", "last", "--undo"]).good();
    assert!(!house.path("notes/components/my-chart.json").exists(), "what was made is undone");
    assert_eq!(house.json(&["components"]), json!([]));
}

#[test]
fn what_is_approved_is_what_was_read() {
    let house = house();
    let listed = house.json(&["components"]);
    let id = listed[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!((&listed[0]["approved"], &listed[0]["path"]), (&json!(false), &json!("components/my-chart.json")));
    let shown = house.run(&["components", "my-chart"]).good().text();
    for part in ["not approved", CHART, "my-chart { color: teal }", "reads status, length of Boat.md", "--approve"] {
        assert!(shown.contains(part), "does not say “{part}”: {shown}");
    }
    let one = house.json(&["components", &id]);
    assert_eq!(one["values"], json!({"status": "afloat", "length": 7.5}), "nothing else of the note");
    house.run(&["components", &id[..12], "--approve"]).good();
    assert_eq!(house.json(&["components"])[0]["approved"], true);

    // One changed byte is another component.
    house.write("notes/components/my-chart.json", chart(&CHART.replace("status", "length")).to_string().as_bytes());
    let changed = house.json(&["components"]);
    assert_eq!(changed[0]["approved"], false, "{changed}");
    house.run(&["components", &id, "--approve"]).refused(2, "may have changed since");
    house.write("notes/components/my-chart.json", chart(CHART).to_string().as_bytes());
    assert_eq!(house.json(&["components"])[0]["approved"], true, "it's the one that was read");
    house.run(&["components", "my-chart", "--revoke"]).good();
    assert_eq!(house.json(&["components"])[0]["approved"], false);

    // What isn't a component is named; the others are there.
    for (name, text) in [
        ("broken.json", "{"),
        ("evil.json", &*json!({"tagName": "x-y><script>", "script": "1"}).to_string()),
        ("long.json", &*"x".repeat(600 << 10)),
    ] {
        house.write(&format!("notes/components/{name}"), text.as_bytes());
    }
    let all = house.run(&["components"]).code(0);
    let errors = all.err.clone();
    assert!(all.text().lines().count() == 1 && all.text().contains("my-chart"), "{}", all.text());
    for name in ["broken.json", "evil.json", "long.json"] {
        assert!(errors.contains(&format!("components/{name} is no component")), "{name}: {errors}");
    }
    house.run(&["components", "--approve"]).refused(2, "say which component");
    house.run(&["components", "nothing"]).refused(2, "no component nothing");
}

#[test]
fn a_preview_is_shown_once_approved_in_a_frame_that_reaches_nothing() {
    let house = house();
    let server = Server::new(&house);
    let browser = Browser::new(&server, &server.pair);
    let id = house.json(&["components"])[0]["id"].as_str().expect("an id").to_owned();
    let (page, frame) = (format!("/components/{id}"), format!("/components/{id}/frame"));
    assert!(String::from_utf8_lossy(&browser.get("/").code(200).body).contains(&page), "the start page leads to it");
    assert!(String::from_utf8_lossy(&browser.get("/components").code(200).body).contains("not approved"));
    let shown = browser.get(&page).code(200);
    let text = String::from_utf8_lossy(&shown.body).into_owned();
    assert!(text.contains("Render preview") && !text.contains("<iframe"), "{text}");
    assert!(
        text.contains("customElements.define(&#39;my-chart&#39;") || text.contains("customElements.define('my-chart'")
    );
    browser.get(&frame).refused_page(403, "isn't approved");
    // Who may only read approves nothing; no more does another site.
    let reader = link(&house, &["--scopes", "read"]);
    let reader = Browser::new(&server, &reader);
    reader.post(&page, &[("decision", "approve")]).refused_page(403, "lacks the scope `approve`");
    assert!(!String::from_utf8_lossy(&reader.get(&page).code(200).body).contains("Render preview"));
    server
        .send("", "POST", &page, &[("Cookie", &browser.cookie), ("Origin", "http://evil.example")], "decision=approve")
        .refused_page(403, "other sites");
    browser.post(&page, &[("decision", "dance")]).refused_page(422, "doesn't say");
    browser.post(&format!("/components/{}", &id[..12]), &[("decision", "approve")]).refused_page(404, "no component");
    assert_eq!(house.json(&["components"])[0]["approved"], false);

    browser.post(&page, &[("decision", "approve")]).code(303);
    let shown = browser.get(&page).code(200);
    let text = String::from_utf8_lossy(&shown.body).into_owned();
    assert!(text.contains("<iframe class=\"component\" sandbox=\"allow-scripts\""), "{text}");
    assert!(text.contains("afloat") && !text.contains("keelhaul"), "only the named values: {text}");
    let policy = shown.header("Content-Security-Policy").expect("a policy");
    assert!(policy.contains("frame-src 'self'") && policy.contains("default-src 'none'"), "{policy}");
    let inside = browser.get(&frame).code(200);
    let policy = inside.header("Content-Security-Policy").expect("a policy");
    for part in ["default-src 'none'", "connect-src 'none'", "sandbox allow-scripts", "form-action 'none'", "'nonce-"] {
        assert!(policy.contains(part), "{part}: {policy}");
    }
    assert!(!policy.contains("allow-same-origin") && !policy.contains("unsafe-eval"), "{policy}");
    let text = String::from_utf8_lossy(&inside.body).into_owned();
    assert!(text.contains("<my-chart></my-chart>") && !text.contains("afloat"), "values come by message: {text}");
    assert!(!text.contains(CHART), "a script can't end the element that holds it: {text}");
    // It's no page of its own, and nothing for whom isn't paired or has a token only.
    let top = [("Cookie", browser.cookie.as_str()), ("Sec-Fetch-Dest", "document")];
    server.send("", "GET", &frame, &top, "").refused_page(403, "inside of its page only");
    server.get("", &frame).code(401);
    server.get(&token(&house, "program", &["--scopes", "read"]), &frame).code(401);

    // Changed: asked again.
    house.write("notes/components/my-chart.json", chart("alert(1)").to_string().as_bytes());
    browser.get(&frame).refused_page(404, "may have changed");
    let new = house.json(&["components"])[0]["id"].as_str().expect("an id").to_owned();
    browser.get(&format!("/components/{new}/frame")).refused_page(403, "isn't approved");
    browser.get("/components/..%2f..%2fetc").refused_page(404, "no component");
}
