// The coding agent opencode works in notes through our client of the Agent Client Protocol: two places of a note, of
// which one is taken back; what the policy refuses; and a `kill -9` in the middle, after which it goes on.
//
//   node opencode.mjs PROGRAM HOME MODEL
//
// HOME has a workspace `W` and a volume `notes`; `opencode` is on PATH, and its model is the one at MODEL.
import { spawn, spawnSync } from "node:child_process";
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";

const [program, home, model] = process.argv.slice(2);
const notes = path.join(home, "notes");
const session = "0123456789abcdef0123456789abcdef";
const rows = Array.from({ length: 12 }, (_, row) => `Line ${row + 1}.`).join("\n\n");
const before = `# Notes\n\nThe old pump.\n\n${rows}\n\nThe old valve.\n`;
const file = (name) => path.join(notes, name);
const read = (name) => fs.readFileSync(file(name), "utf8");
const ok = (what) => console.log(`ok: ${what}`);

/** The words of a call of our program. */
const words = (more) => ["--workspace", path.join(home, "W"), ...more];

/** Calls our program and returns what it prints; it must end with this code. */
function tracebook(more, { input = "", code = 0 } = {}) {
  const done = spawnSync(program, words(more), { input, encoding: "utf8", timeout: 120_000, cwd: home });
  assert.equal(done.status, code, `tracebook ${more.join(" ")}: ${done.error ?? ""}\n${done.stdout}\n${done.stderr}`);
  return done;
}

/** The lines of JSON that a call prints. */
function lines(more, how) {
  const { stdout } = tracebook([...more, "--json"], how);
  return stdout.trim().split("\n").map((line) => JSON.parse(line));
}

/** Asks opencode, and returns the steps. */
const ask = (text, more, how) => lines(["ask", `@opencode ${text}`, ...more], how);

/** The answer: what was said last. */
const answer = (steps) => steps.at(-1).content;

/** The workspace's notes on sessions of programs. */
const kept = () => JSON.parse(fs.readFileSync(path.join(home, "W", "program-sessions.json"), "utf8"));

/** Waits until something holds. */
async function until(what, holds) {
  const end = Date.now() + 60_000;
  while (!holds()) {
    assert(Date.now() < end, `${what}: it does not come`);
    await new Promise((go) => setTimeout(go, 50));
  }
}

/** Process ids of opencode that live. */
function alive() {
  const name = fs.realpathSync(spawnSync("sh", ["-c", "command -v opencode"], { encoding: "utf8" }).stdout.trim());
  const is = (id) => {
    try {
      return fs.readlinkSync(`/proc/${id}/exe`) === name;
    } catch {
      return false;
    }
  };
  return fs.readdirSync("/proc").filter((id) => /^\d+$/.test(id) && is(id));
}

function configure(approval) {
  const env = {
    OPENCODE_DISABLE_AUTOUPDATE: "1",
    OPENCODE_DISABLE_MODELS_FETCH: "1",
    OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
    OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
    OPENCODE_DISABLE_SHARE: "1",
    OPENCODE_PURE: "1",
  };
  const agents = { opencode: { env } };
  // JSON is YAML.
  fs.writeFileSync(path.join(home, "W", "config.yaml"), JSON.stringify({ acp_agents: agents, ...approval }));
}

/** Configures opencode itself as a person does, with the scripted model, and so that it fetches nothing. */
function prepareOpencode() {
  const folder = path.join(process.env.XDG_CONFIG_HOME, "opencode");
  fs.mkdirSync(path.join(folder, "node_modules"), { recursive: true });
  const scripted = {
    npm: "@ai-sdk/openai-compatible",
    name: "Scripted",
    options: { baseURL: `${model}/v1`, apiKey: "none" },
    models: { m: { name: "m", limit: { context: 32_000, output: 4_000 } } },
  };
  const config = {
    autoupdate: false,
    share: "disabled",
    lsp: false,
    formatter: false,
    model: "scripted/m",
    small_model: "scripted/m",
    enabled_providers: ["scripted"],
    provider: { scripted },
    permission: { edit: "ask", bash: "ask", external_directory: "ask" },
    experimental: { continue_loop_on_deny: true },
  };
  fs.writeFileSync(path.join(folder, "opencode.json"), JSON.stringify(config));
  // It installs its plugins' library here, unless these two say that it's there.
  const dependencies = { "@opencode-ai/plugin": "*" };
  fs.writeFileSync(path.join(folder, "package.json"), JSON.stringify({ dependencies }));
  const lock = { lockfileVersion: 3, packages: { "": { dependencies } } };
  fs.writeFileSync(path.join(folder, "package-lock.json"), JSON.stringify(lock));
}

function twoPlaces() {
  const steps = ask("do:two", ["--session", session, "--approve", "agent_permission"]);
  assert.equal(answer(steps), "Both are changed.");
  const permission = steps.find((step) => step.toolName === "agent_permission");
  assert(permission && JSON.stringify(permission).includes("+The new pump."), JSON.stringify(steps));
  assert.equal(read("a.md"), before.replaceAll("old", "new"));
  ok("opencode edits a note in two places, allowed by a rule");
  const [run] = lines(["runs"]);
  assert.deepEqual([run.agent, run.standing], ["opencode", "done"]);
  const { changes } = lines(["runs", run.id])[0];
  assert.equal(changes.length, 1, JSON.stringify(changes));
  const listed = tracebook(["runs", run.id]).stdout;
  assert(listed.includes("hunk 0\n") && listed.includes("hunk 1\n") && !listed.includes("hunk 2\n"), listed);
  assert.equal(listed.match(/^change /gm).length, 1, listed);
  const [change] = listed.match(/(?<=^change )\d+/m);
  tracebook(["runs", run.id, "--undo", "--change", change, "--hunk", "1"]);
  assert.equal(read("a.md"), before.replace("old pump", "new pump"), "only the second place is taken back");
  assert(tracebook(["runs", run.id]).stdout.includes("1 of 2 hunks reverted"));
  ok("one of its two hunks is taken back, the other stays");
  tracebook(["runs", run.id, "--undo"]);
  assert.equal(read("a.md"), before);
  ok("the rest of the run is taken back");
}

function refusals() {
  // A person says no to both.
  const denied = ask("do:refused", [], { input: "n\nn\n" });
  assert.equal(answer(denied), "I was refused.");
  const [inside, outside] = denied.filter((step) => step.toolName === "agent_permission").map((step) => step.params);
  assert(inside?.action.endsWith("b.md") && inside.kind === "edit", JSON.stringify(denied));
  assert(outside?.input.filepath === path.join(home, "outside.md"), JSON.stringify(denied));
  assert.equal(read("b.md"), before);
  ok("an edit that a person denies is not made");
  assert(!fs.existsSync(path.join(home, "outside.md")));
  ok("a file outside of the volume is not written");
  // The configuration's rule is stronger than what is allowed with the question.
  configure({ approval: { deny: ["agent_permission"] } });
  const ruled = ask("do:refused", ["--approve", "agent_permission"]);
  assert(JSON.stringify(ruled).includes("denies it"), JSON.stringify(ruled));
  assert.equal(read("b.md"), before);
  assert.deepEqual(lines(["runs", "last"])[0].changes, []);
  ok("an edit that the configuration's policy denies is not made, whatever the question allows");
  // So is a rule about our own tool: opencode doesn't do by itself what that may not. Outside, a person is asked.
  configure({ approval: { deny: ["write_file: b.md"] } });
  const own = JSON.stringify(ask("do:refused", ["--approve", "agent_permission"], { input: "n\nn\n" }));
  assert(own.includes("write_file: b.md") && own.includes("denies it"), own);
  assert(own.includes("is outside of what tools may reach"), own);
  assert.equal(read("b.md"), before);
  assert(!fs.existsSync(path.join(home, "outside.md")));
  ok("a rule that allows the question allows neither what write_file may not do nor a file outside");
  configure({});
}

async function killed() {
  const more = ["--session", session, "--approve", "agent_permission"];
  const [first] = kept().filter((one) => one.conversation === session);
  assert(first?.id.startsWith("ses_"), JSON.stringify(kept()));
  const how = { stdio: ["ignore", "pipe", "inherit"], cwd: home, detached: true };
  const child = spawn(program, words(["ask", "@opencode do:slow", ...more, "--json"]), how);
  const gone = new Promise((end) => child.on("exit", (code, signal) => end(signal)));
  let printed = "";
  child.stdout.on("data", (text) => (printed += text));
  await until("opencode reports its edit and asks the model again", () => printed.includes('"I begin.'));
  assert(alive().length > 0, "opencode works");
  process.kill(-child.pid, "SIGKILL");
  assert.equal(await gone, "SIGKILL");
  assert.equal(read("c.md"), before.replaceAll("old", "new"));
  await until("no opencode is left", () => alive().length === 0);
  ok("after kill -9 of our program, no opencode is left");
  const resumed = lines(["runs", "last", "--resume"]);
  assert(JSON.stringify(resumed).includes("I go on after two, slow, slow."), JSON.stringify(resumed));
  ok("the run that was killed goes on in the same session of opencode");
  assert.equal(answer(ask("do:recall", more)), "I was asked two, slow, slow, recall.");
  const now = kept().filter((one) => one.conversation === session);
  assert.deepEqual(now.map((one) => one.id), [first.id]);
  ok("the next message goes on in it, too");
  // What was changed before the kill is the run's.
  const slow = lines(["runs"]).find((run) => run.prompt.includes("do:slow"));
  tracebook(["runs", slow.id, "--undo"]);
  assert.equal(read("c.md"), before);
  ok("what it changed before the kill is taken back");
}

prepareOpencode();
configure({});
for (const name of ["a.md", "b.md", "c.md"]) fs.writeFileSync(file(name), before);
tracebook(["open", notes]);
twoPlaces();
refusals();
await killed();
assert.deepEqual(alive(), [], "no opencode is left");
