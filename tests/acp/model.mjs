// A model that speaks OpenAI's protocol and does what the word after `do:` in the user's last message says. It prints
// its address.
//
//   node model.mjs
import http from "node:http";

let calls = 0;

const edit = (path, from, to) => ["edit", { filePath: path, oldString: from, newString: to, replaceAll: true }];
// What it does turn by turn: calls of a tool; at last, words. `null` never ends. `seen` is what it was asked so far.
const scripts = {
  two: () => [["read", { filePath: "a.md" }], edit("a.md", "old", "new"), "Both are changed."],
  refused: () => [
    ["read", { filePath: "b.md" }],
    edit("b.md", "old", "new"),
    ["write", { filePath: "../outside.md", content: "# Outside\n" }],
    "I was refused.",
  ],
  slow: (seen) =>
    seen.filter((word) => word === "slow").length > 1
      ? [`I go on after ${seen.join(", ")}.`]
      : [["read", { filePath: "c.md" }], edit("c.md", "old", "new"), null],
  recall: (seen) => [`I was asked ${seen.join(", ")}.`],
  report: () => [
    ["write_file", { path: "report.md", content: "# Report\n\nFine.\n" }],
    ["shell", { command: "head -1 report.md" }],
    "The report is written.",
  ],
  shell: () => [["shell", { command: "head -1 a.md" }], "The command is over."],
  wait: () => [null],
};

/** The text of a message. */
function textOf(message) {
  const { content } = message;
  return Array.isArray(content) ? content.map((part) => part.text ?? "").join("\n") : (content ?? "");
}

/** The first word after `do:` in a message. What is remembered of earlier ones may follow it. */
const wordOf = (message) => textOf(message).match(/\bdo:([a-z]+)/)?.[1];

function answer(body, response) {
  const chunk = (delta, end = null) => {
    const choices = [{ index: 0, delta, finish_reason: end }];
    const line = { id: "x", object: "chat.completion.chunk", created: 1, model: "m", choices };
    response.write(`data: ${JSON.stringify(line)}\n\n`);
  };
  const end = (why) => {
    chunk({}, why);
    const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
    response.write(`data: ${JSON.stringify({ id: "x", model: "m", choices: [], usage })}\n\n`);
    response.end("data: [DONE]\n\n");
  };
  const messages = body.messages ?? [];
  const at = messages.findLastIndex((message) => message.role === "user");
  const turn = messages.slice(at + 1).filter((message) => message.role === "tool").length;
  const seen = messages.filter((message) => message.role === "user").map(wordOf).filter(Boolean);
  const script = scripts[wordOf(messages[at] ?? {})];
  // opencode also asks for titles, without tools.
  const step = !body.tools?.length || !script ? "A title" : script(seen)[turn];
  response.writeHead(200, { "content-type": "text/event-stream" });
  if (typeof step === "string") {
    chunk({ role: "assistant", content: step });
    return end("stop");
  }
  if (!step) {
    return chunk({ role: "assistant", content: "I begin." });
  }
  const [name, args] = step;
  const made = { name, arguments: JSON.stringify(args) };
  calls += 1;
  chunk({ role: "assistant", tool_calls: [{ index: 0, id: `call_${calls}`, type: "function", function: made }] });
  end("tool_calls");
}

const server = http.createServer((request, response) => {
  const pieces = [];
  request.on("data", (piece) => pieces.push(piece));
  request.on("end", () => {
    if (request.method !== "POST" || !request.url.endsWith("/v1/chat/completions")) {
      response.writeHead(404).end();
      return;
    }
    answer(JSON.parse(Buffer.concat(pieces).toString()), response);
  });
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
