//! Calls as the tools' schemas let them through, and elements as the browser lists them.

use super::*;
use crate::page_gate::PageGate;
use crate::page_tree::{find_element, write_tree};
use serde_json::json;
use std::sync::Arc;

struct NothingOpen;

impl PagePolicy for NothingOpen {
    fn origin_of(&self, _: &str) -> Option<PageOrigin> {
        None
    }

    fn is_public(&self, _: IpAddr) -> bool {
        false
    }

    fn may_load_from(&self, _: &str) -> bool {
        false
    }

    fn listed_addresses(&self, _: &PageOrigin) -> Option<Vec<IpAddr>> {
        None
    }
}

#[test]
fn calls_are_read_from_their_arguments() {
    let read = |tool: &str, arguments: Value| {
        BrowserRequest::from_call(tool, arguments.as_object().expect("an object")).map_err(|why| why.to_string())
    };
    assert_eq!(
        read("browser_open", json!({"url": "http://a/"})),
        Ok(BrowserRequest::Open { url: "http://a/".to_owned() })
    );
    let whole = BrowserRequest::Read { form: PageForm::Tree, from_line: None };
    assert_eq!(read("browser_read", json!({})), Ok(whole));
    let act = json!({"action": "type", "ref": "e3", "text": "a"});
    let (element, text) = (Some("e3".to_owned()), Some("a".to_owned()));
    assert_eq!(read("browser_act", act), Ok(BrowserRequest::Act { action: PageAction::Type, element, text }));
    let go = BrowserRequest::Go { action: PageMove::ScrollDown, seconds: None };
    assert_eq!(read("browser_go", json!({"action": "scroll_down"})), Ok(go));
    for (tool, arguments) in [("browser_open", json!({})), ("browser_act", json!({"action": "fly"})), ("x", json!({}))]
    {
        assert!(read(tool, arguments).is_err_and(|why| why.starts_with("the arguments don't fit")), "{tool}");
    }
}

#[test]
fn a_tree_names_what_can_be_used() {
    let node = |id: u64, role: &str, name: &str, children: &[u64], more: Value| {
        json!({"nodeId": id.to_string(), "ignored": false, "role": {"value": role}, "name": {"value": name},
            "childIds": children.iter().map(u64::to_string).collect::<Vec<_>>(), "backendDOMNodeId": id + 100,
            "properties": more})
    };
    let states =
        json!([{"name": "focusable", "value": {"value": true}}, {"name": "checked", "value": {"value": "mixed"}}]);
    let link = json!([{"name": "url", "value": {"value": "http://a/b"}}]);
    // A list that names a node twice, or itself, ends all the same.
    let nodes = json!({"nodes": [
        node(1, "RootWebArea", "T", &[2, 3, 5, 7, 1], json!([])),
        node(2, "heading", "Head\nline", &[4], json!([{"name": "level", "value": {"value": 1}}])),
        node(4, "StaticText", "Head line", &[], json!([])),
        node(3, "generic", "", &[6, 8], json!([])),
        node(6, "checkbox", "Agree", &[], states),
        node(8, "StaticText", "words", &[], json!([])),
        node(5, "link", "More", &[9], link),
        node(9, "InlineTextBox", "More", &[], json!([])),
        node(7, "none", "hidden", &[], json!([])),
    ]});
    let mut tab = page_events::PageTab {
        number: 1,
        context: String::new(),
        target: String::new(),
        session: String::new(),
        gate: PageGate::open(Arc::new(NothingOpen)).expect("opened"),
        url: String::new(),
        is_loading: false,
        has_crashed: false,
        elements: Default::default(),
        last_element: 0,
    };
    let lines = write_tree(std::slice::from_ref(&nodes), &mut tab);
    let expected = [
        "- heading \"Head line\" (level 1)",
        "- checkbox \"Agree\" (checked: mixed) [e1]",
        "words",
        "- link \"More\" (to http://a/b) [e2]",
    ];
    assert_eq!(lines[..4], expected);
    assert_eq!(
        (find_element(&tab, "e2"), find_element(&tab, "[e1]"), find_element(&tab, "e9")),
        (Some(105), Some(106), None)
    );
    // Names stay the same when the tree is read again.
    assert_eq!(write_tree(&[nodes], &mut tab)[..4], expected);
    tab.gate.close();
}
