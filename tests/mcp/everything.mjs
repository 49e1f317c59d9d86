// The real server `@modelcontextprotocol/server-everything`, used with `tracebook mcp tools|call|prompts|resources`
// over standard input and output, and over streamable HTTP.
//
//   node everything.mjs PROGRAM FOLDER SERVER
//
// FOLDER is for a workspace, and SERVER is the script of the server.
import { spawn, spawnSync } from "node:child_process";
import assert from "node:assert/strict";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";

const [program, folder, server] = process.argv.slice(2);
const workspace = path.join(folder, "everything");

/** Runs our program and returns what it prints; it must end with this code. */
function tracebook(words, { code = 0, input = "" } = {}) {
  const done = spawnSync(program, ["--workspace", workspace, ...words], { encoding: "utf8", timeout: 60_000, input });
  assert.equal(done.status, code, `${words.join(" ")}: ${done.error ?? ""}\n${done.stdout}\n${done.stderr}`);
  return done;
}

const listed = (words) => tracebook([...words, "--json"]).stdout.trim().split("\n").map((line) => JSON.parse(line));

/** A port that is free. */
const freePort = () =>
  new Promise((go) => {
    const probe = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => go(port));
    });
  });

/** Runs our program in a terminal, in which a person fills in the first field of a form and sends it. */
function filledIn(words) {
  const line = [program, "--workspace", workspace, ...words].map((word) => `'${word}'`).join(" ");
  const child = spawn("script", ["--quiet", "--return", "--command", line, "/dev/null"], { timeout: 60_000 });
  let said = "";
  let isFirst = true;
  child.stdout.on("data", (text) => {
    said += text;
    if (said.endsWith("[y/N] ")) {
      child.stdin.write("y\n");
    } else if (said.endsWith(": ")) {
      child.stdin.write(isFirst ? "Ada\n" : "\n");
      isFirst = false;
    }
  });
  return new Promise((go, fail) => {
    child.on("exit", (code) => (code === 0 ? go(said) : fail(new Error(`ended with ${code}: ${said}`))));
  });
}

async function drive(name) {
  const call = (tool, values, how) =>
    tracebook(["mcp", "call", name, tool, "--arguments", JSON.stringify(values)], how).stdout;
  const tools = listed(["mcp", "tools", name]);
  const long = "trigger-long-running-operation";
  for (const wanted of ["echo", "get-sum", "get-tiny-image", "get-structured-content", long]) {
    assert(tools.some((tool) => tool.name === wanted), `${wanted}: ${JSON.stringify(tools)}`);
  }
  assert.equal(call("echo", { message: "Grüße" }), "Echo: Grüße\n");
  assert(call("get-sum", { a: 2, b: 40 }).includes("42"));
  assert(call("get-structured-content", { location: "Chicago" }).includes("temperature"));
  const [image] = listed(["mcp", "call", name, "get-tiny-image"]);
  assert.deepEqual([image.failed, image.attached.map((one) => one.mime)], [false, ["image/png"]]);
  assert(call("trigger-elicitation-request", {}).includes('"action": "cancel"'), "nobody is there to fill in a form");
  const form = await filledIn(["mcp", "call", name, "trigger-elicitation-request"]);
  assert(form.includes("User provided the requested information") && /"name": "Ada"/.test(form), form);
  const slow = JSON.stringify({ duration: 20, steps: 2 });
  const late = tracebook(["mcp", "call", name, long, "--timeout", "1", "--arguments", slow], { code: 1 });
  assert(late.stderr.includes("not answered within 1 s"), late.stderr);
  const missing = tracebook(["mcp", "call", name, "no-such-tool"], { code: 2 });
  assert(missing.stderr.includes("there are echo"), missing.stderr);

  const prompts = listed(["mcp", "prompts", name]);
  const weather = prompts.find((prompt) => prompt.name === "args-prompt");
  assert.deepEqual(weather?.arguments.map((one) => [one.name, one.needed]), [["city", true], ["state", false]]);
  const city = (values, how) =>
    tracebook(["mcp", "prompts", name, "args-prompt", "--arguments", JSON.stringify(values)], how);
  assert(city({ city: "Kiel" }).stdout.includes("What's weather in Kiel?"));
  assert(city({ state: "SH" }, { code: 2 }).stderr.includes("city"));

  const resources = listed(["mcp", "resources", name]);
  const [document] = resources.filter((one) => !one.template);
  assert(document && resources.some((one) => one.template), JSON.stringify(resources));
  const read = (uri, how) => tracebook(["mcp", "resources", name, uri], how);
  assert(read(document.uri).stdout.length > 20);
  assert(read("demo://resource/dynamic/text/7").stdout.includes("Resource 7"));
  assert(read("demo://resource/dynamic/blob/7", { code: 2 }).stderr.includes("is binary"));
  read("demo://none", { code: 2 });
  console.log(`ok: ${name}: ${tools.length} tools, ${prompts.length} prompts, ${resources.length} resources`);
}

tracebook(["init"]);
const port = await freePort();
const servers = {
  everything: { command: process.execPath, args: [server, "stdio"] },
  remote: { url: `http://127.0.0.1:${port}/mcp` },
};
// JSON is YAML.
fs.writeFileSync(path.join(workspace, "config.yaml"), JSON.stringify({ mcp: { servers } }));
await drive("everything");

const env = { ...process.env, PORT: String(port) };
const remote = spawn(process.execPath, [server, "streamableHttp"], { env, stdio: ["ignore", "ignore", "pipe"] });
try {
  await new Promise((go, fail) => {
    remote.stderr.on("data", (text) => String(text).includes(String(port)) && go());
    remote.on("exit", (code) => fail(new Error(`the server ended with ${code}`)));
  });
  await drive("remote");
} finally {
  remote.removeAllListeners("exit");
  remote.kill();
}
// With the server gone, what uses it fails and says so.
const gone = tracebook(["mcp", "tools", "remote"], { code: 1 });
assert(gone.stderr.includes("remote"), gone.stderr);
console.log("ok: remote: a server that is gone is named");
