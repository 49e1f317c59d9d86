//! A tool server asks the user to open a web page (`elicitation/create` with an address, or the error -32042) while a
//! run calls its tool. Nothing opens before the user agrees, and a page that may not be opened is refused.

use super::http_server::{Server, token};
use super::mcp_forms::{calling, decided, told};
use crate::program::{Done, House, finish, until};
use serde_json::json;

/// The address that the server wants to be opened.
pub(crate) const PAGE: &str = "https://accounts.example.com/in?id=7";

/// A server whose tool `trip` asks the user to open a page, and whose tool `plain` asks so for one that others could
/// read. Their result is what came back, without quotation marks. The tool `locked` fails until the file `opened` lies
/// beside `$1`, and says so when it does. What the server gets is in the file `$1`.
pub(crate) const PAGE_SERVER: &str = r#"
opened=${1%/*}/opened
id() { printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p'; }
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$(printf '%s' "$2" | tr -d '\n')"; }
say() { answer "$1" '{"content":[{"type":"text","text":"'"$2"'"}]}'; }
page() { printf '{"mode":"url","elicitationId":"%s","message":"Sign in","url":"%s"}' "$1" "$2"; }
ask() { printf '{"jsonrpc":"2.0","id":900,"method":"elicitation/create","params":%s}\n' "$(page e1 "$1")"; }
finished() {
    for _ in $(seq 400); do
        if [ -e "$opened" ]; then
            printf '{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e2"}}\n'
            return
        fi
        sleep 0.05
    done
}
while read -r line; do
    printf '%s\n' "$line" >>"$1"
    case "$line" in
    *'"initialize"'*) answer "$(id)" '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},
        "serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) answer "$(id)" '{"tools":[{"name":"trip","inputSchema":{"type":"object"}},
        {"name":"plain","inputSchema":{"type":"object"}},{"name":"locked","inputSchema":{"type":"object"}}]}' ;;
    *'"name":"trip"'*) asked=$(id); ask 'https://accounts.example.com/in?id=7' ;;
    *'"name":"plain"'*) asked=$(id); ask 'http://accounts.example.com/in' ;;
    *'"id":900'*) say "$asked" "$(printf '%s' "$line" | tr -d '"\\')" ;;
    *'"name":"locked"'*)
        if [ -e "$opened" ]; then
            say "$(id)" 'It is unlocked.'
        else
            printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32042,"message":"Sign in first",' "$(id)"
            printf '"data":{"elicitations":[%s]}}}\n' "$(page e2 'https://accounts.example.com/in?id=7')"
            finished &
        fi ;;
    esac
done"#;

/// Runs a command whose browser is a script that writes down what it opens.
fn browsing(house: &House, words: &[&str], input: &[u8]) -> Done {
    house.write("browser.sh", b"printf %s \"$1\" >opened.new && mv opened.new opened\n");
    let mut command = house.command(words);
    command.env("BROWSER", format!("sh {}", house.path("browser.sh").display()));
    finish(command, input)
}

#[test]
fn the_terminal_of_the_run_opens_a_page_after_a_yes() {
    let house = calling("own_trip", PAGE_SERVER);
    let ask = ["ask", "Call the tool", "--approve", "own_trip", "--json"];
    let done = browsing(&house, &ask, b"n\n").code(0);
    for part in ["own asks you:\nSign in", "open this page of https://accounts.example.com:", PAGE, "Open it? [y/N]"] {
        assert!(done.err.contains(part), "{part}: {}", done.err);
    }
    assert_eq!(told(&house), json!({"action": "decline"}));
    assert!(!house.path("opened").exists());

    let house = calling("own_trip", PAGE_SERVER);
    let done = browsing(&house, &ask, b"y\n").code(0);
    assert!(done.err.contains("The page opens in your browser"), "{}", done.err);
    assert_eq!(told(&house), json!({"action": "accept"}));
    until("the browser opens", || house.path("opened").exists());
    assert_eq!(String::from_utf8(house.read("opened")).expect("text"), PAGE);
    let log = String::from_utf8(house.read("server.log")).expect("text");
    assert!(log.contains(r#""elicitation":{"form":{},"url":{}}"#), "it offers both to servers: {log}");
}

#[test]
fn a_call_goes_on_when_the_user_has_finished_with_its_page() {
    let house = calling("own_locked", PAGE_SERVER);
    let ask = ["ask", "Call the tool", "--approve", "own_locked"];
    let done = browsing(&house, &ask, b"n\n").code(0);
    assert!(done.text().contains("wants you to open https://accounts.example.com/in?id=7 first"), "{}", done.text());
    assert!(!house.path("opened").exists());
    let house = calling("own_locked", PAGE_SERVER);
    let done = browsing(&house, &ask, b"y\n").code(0);
    assert!(done.text().contains("It is unlocked."), "{}{}", done.text(), done.err);
}

#[test]
fn a_person_without_a_terminal_is_told_the_page() {
    let house = calling("own_trip", PAGE_SERVER);
    let call = |tool: &str, more: &[&str]| browsing(&house, &[&["mcp", "call", "own", tool], more].concat(), b"y\n");
    call("locked", &[]).refused(2, "wants you to open https://accounts.example.com/in?id=7 first");
    for more in [&[][..], &["--yes"]] {
        assert!(call("trip", more).good().text().contains("action:cancel"));
    }
    let plain = call("plain", &[]).good().text();
    assert!(plain.contains("error") && plain.contains("it needs https"), "{plain}");
    assert!(!house.path("opened").exists());
}

#[test]
fn another_terminal_and_a_program_agree_to_a_page() {
    let house = calling("own_trip", PAGE_SERVER);
    decided(&house, |waits| {
        assert_eq!(waits["what"], "The tool server own asks you to open https://accounts.example.com: Sign in");
        let name = waits["name"].as_str().expect("a name");
        assert!(house.run(&["approvals"]).good().text().contains(PAGE));
        let other = json!({"page": "https://example.org/"}).to_string();
        assert_ne!(house.run(&["approvals", name, "--allow", "--arguments", &other]).code, 0);
        let done = browsing(&house, &["approvals", name, "--allow"], b"").code(0);
        assert!(done.err.contains("Open in your browser:\nhttps://accounts.example.com/in?id=7\n"), "{}", done.err);
    })
    .code(0);
    assert_eq!(told(&house), json!({"action": "accept"}));
    assert!(!house.path("opened").exists(), "a program may have sent the decision for a user elsewhere");

    let house = calling("own_trip", PAGE_SERVER);
    let approver = token(&house, "approver", &["--scopes", "read,approve"]);
    let server = Server::new(&house);
    decided(&house, |_| {
        let pending = server.get(&approver, "/api/v1/approvals/pending").code(200).json();
        assert_eq!(pending[0]["parameters"]["page"], PAGE, "{pending}");
        let path = format!("/api/v1/approvals/{}", pending[0]["action_id"].as_str().expect("an id"));
        server.post(&approver, &path, &json!({"approved": true})).code(200);
    })
    .code(0);
    assert_eq!(told(&house), json!({"action": "accept"}));
}
