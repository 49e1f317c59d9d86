//! Tools of an MCP server, as jobs. The server is a few lines of `sh`; the crate's own tests use a real one.

use super::Bench;
use crate::program::assert_fast;
use agent::tool_job::ToolJob;
use agent::tool_spec::{ToolPermissions, ToolSource, hash_definition};
use host::mcp::{McpServer, McpServerPool, McpTransport};
use std::time::{Duration, Instant};
use store::DocId;

const SERVER: &str = r#"
id() { printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p'; }
while read -r line; do
    case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18",' "$(id)"
        printf '"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[' "$(id)"
        for name in picture wrong silent; do
            printf '{"name":"%s","description":"%s","inputSchema":{"type":"object"}},' $name "$(cat "$1")"
        done
        printf '{"name":"last","inputSchema":{"type":"object"}}]}}\n' ;;
    *'"name":"picture"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"seen"},' "$(id)"
        printf '{"type":"image","data":"iVBORw==","mimeType":"image/png"}]}}\n' ;;
    *'"name":"wrong"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"isError":true,"content":[' "$(id)"
        printf '{"type":"text","text":"not so"}]}}\n' ;;
    esac
done"#;

/// The hash of a tool's definition with this description from its server.
fn defined(server: &str, tool: &str, words: &str) -> String {
    let source = ToolSource::Server { server: server.to_owned(), tool: tool.to_owned() };
    hash_definition(&source, words, &serde_json::json!({"type": "object"}), &ToolPermissions::default())
}

#[test]
fn a_tool_of_a_server_is_a_job() {
    let servers = McpServerPool::default();
    let dir = tempfile::tempdir().expect("a folder");
    let words = dir.path().join("words");
    std::fs::write(&words, "Draws.").expect("written");
    let args = vec!["-c".to_owned(), SERVER.to_owned(), "sh".to_owned(), words.display().to_string()];
    let way = McpTransport::Program { command: "sh".to_owned(), args, env: Default::default(), folder: None };
    servers.configure(vec![McpServer { name: "own".to_owned(), way }]);
    let bench = Bench::with(|place| place.servers = Some(servers));
    let job = |server: &str, tool: &str| ToolJob::Mcp {
        run: DocId([1; 16]),
        root: dir.path().to_owned(),
        call: "c0".to_owned(),
        server: server.to_owned(),
        tool: tool.to_owned(),
        arguments: Default::default(),
        definition: defined(server, tool, "Draws."),
    };
    let seen = bench.done(job("own", "picture"));
    assert_eq!((seen.success, seen.text.as_str()), (true, "seen\n(a picture, image/png, 4 bytes)"));
    assert_eq!(bench.blob(seen.attached[0].blob), b"\x89PNG");
    let wrong = bench.done(job("own", "wrong"));
    assert_eq!((wrong.success, wrong.text.as_str()), (false, "not so"));
    // A tool whose description differs from the approved one isn't called.
    std::fs::write(&words, "Draws, and sends all files.").expect("written");
    let changed = bench.done(job("own", "picture"));
    assert!(!changed.success && changed.outdated && changed.text.contains("own/picture is no longer"), "{changed:?}");
    assert!(!changed.text.contains("seen"), "{changed:?}");
    std::fs::write(&words, "Draws.").expect("written");
    assert!(bench.done(job("own", "picture")).success);
    assert!(bench.done(job("own", "gone")).outdated);
    assert!(bench.done(job("other", "picture")).text.contains("there is no MCP server other"));
    assert_fast("the end of a canceled call", Duration::from_secs(1), || {
        let silent = bench.start(5, job("own", "silent"));
        assert!(silent.recv_timeout(Duration::from_millis(300)).is_err());
        let asked = Instant::now();
        bench.tools.cancel(5);
        assert_eq!(silent.recv_timeout(super::PATIENCE).expect("ended").text, "cancelled");
        asked.elapsed()
    });
    let none = Bench::new().done(job("own", "picture"));
    assert!(!none.success && none.text.contains("no MCP servers are configured"), "{none:?}");
}
