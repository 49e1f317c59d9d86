//! Finds results that are ignored without a reason, for tidy.

/// A comment that starts with this covers all similar lines further down in the file.
const FOR_ALL_BELOW: &str = "Here and below: ";

/// The lines of `let _ =` in `shipped` (the code without tests and texts) without a reason: not on their line, not in a
/// comment above them or above preceding ones, and not for all sends or writes of the file.
pub(super) fn results_ignored_without_reason(text: &str, shipped: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    // A long expression begins on the next line.
    let is_ignoring = |line: &str| line == "let _ =" || line.starts_with("let _ = ");
    let mut covers_alike = false;
    let mut found = Vec::new();
    let shipped: Vec<&str> = shipped.lines().map(str::trim).collect();
    for (at, line) in shipped.iter().copied().enumerate() {
        let Some(whole) = lines.get(at) else { break };
        covers_alike |= whole.starts_with("//") && whole.contains(FOR_ALL_BELOW);
        if !is_ignoring(line) {
            continue;
        }
        let before = lines[..at].iter().rev().find(|before| !before.starts_with("#[") && !is_ignoring(before));
        let expression = if line.ends_with('=') { shipped.get(at + 1).copied().unwrap_or_default() } else { line };
        let is_alike = ["send(", "write!(", "writeln!("].iter().any(|call| expression.contains(call));
        let is_explained = whole.contains("// ") || before.is_some_and(|before| before.starts_with("//"));
        let is_covered = covers_alike && is_alike;
        if !is_explained && !is_covered {
            found.push(at + 1);
        }
    }
    found
}

#[test]
fn an_ignored_result_needs_a_reason() {
    let found = |text: &str| results_ignored_without_reason(text, text);
    assert_eq!(found("a();\nlet _ = b();\n"), [2]);
    assert_eq!(found("// Why.\nlet _ = b();\nlet _ = c();\nd();\nlet _ = e(); // why\n"), [0; 0]);
    assert_eq!(found("// Here and below: why.\nlet _ = a.send(b);\nc();\nlet _ = a.send(b);\nlet _ = d();\n"), [5]);
    assert_eq!(found("// Why.\n#[cfg(unix)]\nlet _ = b();\n"), [0; 0]);
    assert_eq!(found("a();\nlet _ =\n    b();\n"), [2]);
    assert_eq!(found("// Here and below: why.\nlet _ =\n    a.send(b);\nc();\nlet _ =\n    a.send(b);\n"), [0; 0]);
    assert_eq!(found("// Here and below: why.\nlet _ = a.send(b);\nc();\nlet _ =\n    d();\n"), [4]);
}
