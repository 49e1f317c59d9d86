// npm's `@modelcontextprotocol/inspector-cli` drives our server over standard input and output, and over HTTP with a
// token.
//
//   node inspector.mjs INSPECTOR PROGRAM WORKSPACE URL
//
// INSPECTOR is the inspector's script; MCP_TOKEN holds the token. The volume has the notes of .ci/mcp-conformance.
import { spawnSync } from "node:child_process";
import assert from "node:assert/strict";
import path from "node:path";

const [inspector, program, workspace, url] = process.argv.slice(2);
const HELLO = "note://notes/Hello.md";

/** Runs the inspector in its own folder, where it looks for its description; it must end with this code. */
function run(target, method, more, code) {
  const words = [inspector, ...target, "--method", method, ...more];
  const done = spawnSync(process.execPath, words, { encoding: "utf8", timeout: 60_000, cwd: path.dirname(inspector) });
  assert.equal(done.status, code, `${method} ${more.join(" ")}: ${done.error ?? ""}\n${done.stdout}\n${done.stderr}`);
  return code === 0 ? JSON.parse(done.stdout) : done.stderr;
}

function drive(name, target) {
  const good = (method, ...more) => run(target, method, more, 0);
  const refused = (wanted, method, ...more) => {
    const said = run(target, method, more, 1);
    assert(said.includes(wanted), said);
  };
  const { tools } = good("tools/list");
  const names = tools.map((tool) => tool.name);
  assert(names.includes("search_notes") && names.includes("read_note"), names.join());
  assert(!names.includes("edit_note"), "nothing allows writing");
  const call = ["tools/call", "--tool-name"];
  const read = good(...call, "read_note", "--tool-arg", "note=Hello.md");
  assert(!read.isError && read.structuredContent.text.startsWith("# Hello"), JSON.stringify(read));
  const nowhere = good(...call, "read_note", "--tool-arg", "note=Nowhere.md");
  assert(nowhere.isError && nowhere.content[0].text.includes("Nowhere.md"), JSON.stringify(nowhere));
  const { resources } = good("resources/list");
  assert(resources.some((one) => one.uri === HELLO), JSON.stringify(resources));
  const { resourceTemplates } = good("resources/templates/list");
  assert.deepEqual(resourceTemplates.map((one) => one.name), ["note", "attachment"]);
  assert(good("resources/read", "--uri", HELLO).contents[0].text.startsWith("# Hello"));
  refused("Nowhere", "resources/read", "--uri", "note://notes/Nowhere.md");
  const { prompts } = good("prompts/list");
  const asked = prompts.find((prompt) => prompt.name === "test_prompt_with_arguments");
  assert.deepEqual(asked?.arguments.map((argument) => argument.name), ["arg1", "arg2"], JSON.stringify(prompts));
  const get = ["prompts/get", "--prompt-name", "test_prompt_with_arguments", "--prompt-args"];
  const filled = good(...get, "arg1=one", "arg2=two");
  assert(filled.messages[0].content.text.includes("arg1='one', arg2='two'"), JSON.stringify(filled));
  refused("arg2", ...get, "arg1=one");
  console.log(`ok: ${name}: ${tools.length} tools, ${resources.length} resources, ${prompts.length} prompts`);
}

drive("standard input and output", [program, "--workspace", workspace, "mcp"]);
const header = (token) => ["--transport", "http", "--header", `Authorization: Bearer ${token}`];
drive("HTTP", [url, ...header(process.env.MCP_TOKEN)]);
const stranger = run([url, ...header("guessed")], "tools/list", [], 1);
assert(/401|[Uu]nauthorized|token/.test(stranger), stranger);
console.log("ok: HTTP: a token that nobody made is refused");
