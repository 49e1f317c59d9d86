// An editor made with the official SDK of the Agent Client Protocol, `@agentclientprotocol/sdk`, drives
// `tracebook acp`.
//
//   node editor.mjs PROGRAM HOME MODEL
//
// HOME has a workspace `W` and a volume `notes`; MODEL is the address of the scripted model. ACP_MODULES is the folder
// in which npm has installed the SDK.
import { spawn } from "node:child_process";
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const sdk = path.join(process.env.ACP_MODULES, "node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js");
const acp = await import(pathToFileURL(sdk));
const { agent, client } = acp.methods;
const [program, home, model] = process.argv.slice(2);
const notes = path.join(home, "notes");
const ok = (what) => console.log(`ok: ${what}`);

const test = { wire: "openai", base_url: `${model}/v1`, model: "m", context: 32_000 };
const llm = { default_provider: "test", prefer_local: false, providers: { test } };
// JSON is YAML.
fs.writeFileSync(path.join(home, "W", "config.yaml"), JSON.stringify({ llm }));
fs.writeFileSync(path.join(notes, "a.md"), "# A\n");

/** Starts the server and lets `work` use it: it gets the connection, what was told, and how to decide questions. */
async function edit(work) {
  const server = spawn(program, ["--workspace", path.join(home, "W"), "acp"], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((end) => server.on("exit", end));
  const told = [];
  const questions = [];
  const wrong = [];
  let decide = () => assert.fail("nothing is to be asked");
  const app = acp
    .client({ name: "an editor" })
    .onNotification(client.session.update, ({ params }) => void told.push(params))
    .onRequest(client.session.requestPermission, ({ params }) => {
      questions.push(params);
      const kind = decide(params);
      const option = params.options.find((one) => one.kind === kind);
      if (!option) wrong.push(`no option ${kind}: ${JSON.stringify(params.options)}`);
      return { outcome: { outcome: "selected", optionId: option?.optionId ?? "" } };
    });
  const updates = (kind) => told.map(({ update }) => update).filter((update) => update.sessionUpdate === kind);
  const said = () => updates("agent_message_chunk").map((update) => update.content.text).join("");
  const stream = acp.ndJsonStream(Writable.toWeb(server.stdin), Readable.toWeb(server.stdout));
  await app.connectWith(stream, async (to) => {
    const hello = await to.request(agent.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
      clientInfo: { name: "editor", version: "1" },
    });
    assert.equal(hello.protocolVersion, acp.PROTOCOL_VERSION);
    await work({ to, hello, told, questions, updates, said, decides: (way) => (decide = way) });
  });
  server.stdin.destroy();
  assert.equal(await Promise.race([ended, new Promise((go) => setTimeout(go, 20_000, "it goes on"))]), 0);
  assert.deepEqual(wrong, []);
}

const prompt = (sessionId, text) => ({ sessionId, prompt: [{ type: "text", text }] });

/** Waits until something holds. */
async function until(what, holds) {
  const end = Date.now() + 30_000;
  while (!holds()) {
    assert(Date.now() < end, `${what}: it does not come`);
    await new Promise((go) => setTimeout(go, 20));
  }
}

let session;
await edit(async ({ to, hello, questions, updates, said, decides }) => {
  assert.equal(hello.agentInfo.name, "tracebook");
  assert.equal(hello.agentCapabilities.loadSession, true);
  ok("initialize");
  const nowhere = to.request(agent.session.new, { cwd: "/nowhere", mcpServers: [] });
  await assert.rejects(nowhere, /no volume of the workspace/);
  const made = await to.request(agent.session.new, { cwd: notes, mcpServers: [] });
  session = made.sessionId;
  assert.equal(made.modes.currentModeId, "default");
  assert(made.modes.availableModes.length > 1, JSON.stringify(made.modes));
  ok("session/new, refused outside of the volumes");

  decides(() => "allow_once");
  const ended = await to.request(agent.session.prompt, prompt(session, "do:report"));
  assert.equal(ended.stopReason, "end_turn");
  assert.equal(fs.readFileSync(path.join(notes, "report.md"), "utf8"), "# Report\n\nFine.\n");
  assert(said().endsWith("The report is written."), said());
  assert.equal(questions.length, 1, JSON.stringify(questions));
  assert.equal(questions[0].toolCall.kind, "execute");
  assert.equal(questions[0].toolCall.rawInput.command, "head -1 report.md");
  const titles = updates("tool_call").map((call) => call.title);
  assert.deepEqual(titles, ["Write report.md", "Run head -1 report.md"]);
  const results = updates("tool_call_update").filter((update) => update.status === "completed");
  const diff = { type: "diff", path: path.join(notes, "report.md"), newText: "# Report\n\nFine.\n" };
  assert.deepEqual(results[0].content[0], diff);
  assert(JSON.stringify(results[1].content).includes("# Report"), JSON.stringify(results[1]));
  ok("session/prompt writes a note; session/request_permission is answered with yes");

  decides(() => "reject_once");
  const denied = await to.request(agent.session.prompt, prompt(session, "do:shell"));
  assert.equal(denied.stopReason, "end_turn");
  assert.equal(questions.length, 2);
  const last = updates("tool_call_update").at(-1);
  assert.equal(last.status, "failed", JSON.stringify(last));
  assert(!JSON.stringify(last).includes("# A"), JSON.stringify(last));
  ok("session/request_permission is answered with no, and the command does not run");

  const begun = said().length;
  const running = to.request(agent.session.prompt, prompt(session, "do:wait"));
  await until("the answer begins", () => said().length > begun);
  await to.notify(agent.session.cancel, { sessionId: session });
  assert.equal((await running).stopReason, "cancelled");
  // The session is free for the next prompt.
  assert.equal((await to.request(agent.session.prompt, prompt(session, "do:recall"))).stopReason, "end_turn");
  assert(said().endsWith("I was asked report, shell, wait, recall."), said());
  ok("session/cancel ends the turn, and the session goes on");
});

await edit(async ({ to, told, questions, updates, said }) => {
  const { sessions } = await to.request(agent.session.list, { cwd: notes });
  assert.deepEqual([sessions[0].sessionId, sessions[0].cwd], [session, notes]);
  await assert.rejects(to.request(agent.session.load, { sessionId: "f".repeat(32), cwd: notes, mcpServers: [] }));
  assert.equal(told.length, 0);
  await to.request(agent.session.load, { sessionId: session, cwd: notes, mcpServers: [] });
  const asked = updates("user_message_chunk").map((update) => update.content.text);
  assert.deepEqual(asked, ["do:report", "do:shell", "do:wait", "do:recall"]);
  assert(said().includes("The report is written."), said());
  assert(updates("tool_call").some((call) => call.title === "Write report.md"));
  assert(told.every((one) => one.sessionId === session));
  assert.equal((await to.request(agent.session.prompt, prompt(session, "do:recall"))).stopReason, "end_turn");
  assert(said().endsWith("I was asked report, shell, wait, recall, recall."), said());
  assert.deepEqual(questions, []);
  ok("session/load tells it all again to another editor, and it goes on");
});
