"""An agent that speaks the Agent Client Protocol and does what the word at the start of its prompt says."""

import json
import os
import subprocess
import sys
import time

last_id = 0
# Prompts of the session, and whether it was taken up again. With SESSION_FILE, the program keeps its session there.
prompts = []
is_taken_up = False
session_file = os.environ.get("SESSION_FILE")


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def receive():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def ask(method, **params):
    """Sends a request and returns its answer, as a result or as what was refused."""
    global last_id
    last_id += 1
    own = last_id
    send({"id": own, "method": method, "params": {"sessionId": "s1", **params}})
    while True:
        message = receive()
        if message.get("id") == own and "method" not in message:
            return message


def update(session_update, **fields):
    told = {"sessionUpdate": session_update, **fields}
    send({"method": "session/update", "params": {"sessionId": "s1", "update": told}})


def say(text):
    update("agent_message_chunk", content={"type": "text", "text": text})


def refusal(answer):
    return answer.get("error", {}).get("message", "nothing was refused")


def permission(title, command):
    return asked_about({"toolCallId": title, "title": title, "kind": "execute", "rawInput": {"command": command}})


def asked_about(call):
    options = [
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
        {"optionId": "ever", "name": "Always", "kind": "allow_always"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ]
    return ask("session/request_permission", toolCall=call, options=options)["result"]["outcome"].get("optionId")


def work(folder):
    update("agent_thought_chunk", content={"type": "text", "text": "I look first."})
    update("plan", entries=[{"content": "write b", "status": "in_progress", "priority": "high"}])
    text = ask("fs/read_text_file", path=folder + "/a.md")["result"]["content"]
    say("I read " + text.split("\n")[0] + ". ")
    ask("fs/write_text_file", path=folder + "/a.md", content=text + "\nFrom the agent.\n")
    ask("fs/write_text_file", path=folder + "/sub/b.md", content="# B\n")
    terminal = ask("terminal/create", command="head", args=["-1", "a.md"])["result"]["terminalId"]
    code = ask("terminal/wait_for_exit", terminalId=terminal)["result"]["exitCode"]
    output = ask("terminal/output", terminalId=terminal)["result"]["output"]
    ask("terminal/release", terminalId=terminal)
    chosen = permission("Run make", "make")
    diff = {"type": "diff", "path": folder + "/c.txt", "oldText": "old\n", "newText": "new\n"}
    update("tool_call", toolCallId="own", title="Edit c.txt", kind="edit", status="in_progress")
    update("tool_call_update", toolCallId="own", status="completed", content=[diff])
    say(f"Code {code}, output {output.strip()}, chosen {chosen}.")
    return "end_turn"


def alone(folder):
    """Changes files by itself, like programs that write before or instead of asking for it."""
    ask("fs/write_text_file", path=folder + "/b.md", content="# B\n")
    update("tool_call", toolCallId="e1", title="Edit a.md", kind="edit", status="in_progress")
    with open(folder + "/a.md", "w") as file:
        file.write("# A\n\nOne.\n\nTwo.\n")
    ask("fs/write_text_file", path=folder + "/a.md", content="# A\n\nOne.\n\nTwo.\n")
    diff = {"type": "diff", "path": folder + "/a.md", "oldText": "# A", "newText": "# A\n\nOne."}
    update("tool_call_update", toolCallId="e1", status="completed", content=[diff])
    update("tool_call", toolCallId="e2", title="make", kind="execute", status="in_progress")
    with open(folder + "/made.csv", "w") as file:
        file.write("1,2\n")
    os.remove(folder + "/old.csv")
    update("tool_call_update", toolCallId="e2", status="completed", rawOutput={"output": "made"})
    say("Done alone.")
    return "end_turn"


def stubborn(folder):
    """Writes a file by itself after that was refused."""
    refused = refusal(ask("fs/write_text_file", path=folder + "/d.md", content="# D\n"))
    update("tool_call", toolCallId="e1", title="Write d.md", kind="edit", status="in_progress")
    with open(folder + "/d.md", "w") as file:
        file.write("# D\n")
    diff = {"type": "diff", "path": folder + "/d.md", "newText": "# D\n"}
    update("tool_call_update", toolCallId="e1", status="completed", content=[diff])
    say("Refused: " + refused)
    return "end_turn"


def overtake(folder):
    """Asks for a file to be written, writes it by itself before the answer, and tells of it."""
    global last_id
    last_id += 1
    path, text = folder + "/a.md", "# A\n\nOvertaken.\n"
    update("tool_call", toolCallId="e1", title="Edit a.md", kind="edit", status="in_progress")
    send({"id": last_id, "method": "fs/write_text_file", "params": {"sessionId": "s1", "path": path, "content": text}})
    begun = time.monotonic()
    while not os.path.exists(os.environ["PID_FILE"] + ".go") and time.monotonic() < begun + 60:
        time.sleep(0.01)
    with open(path, "w") as file:
        file.write(text)
    receive()
    diff = {"type": "diff", "path": path, "oldText": "# A\n", "newText": text}
    update("tool_call_update", toolCallId="e1", status="completed", content=[diff])
    say("Overtaken.")
    return "end_turn"


def edits(folder):
    """Asks for permission to write the files that the prompt names, and writes by itself those that it may."""
    chosen = {}
    for name in prompts[-1].split()[1].split(","):
        path = folder + "/" + name
        call = {"toolCallId": name, "title": "Edit " + name, "kind": "edit", "locations": [{"path": path}]}
        chosen[name] = asked_about(call)
        if chosen[name] == "yes":
            with open(path, "w") as file:
                file.write("# Own\n")
        update("tool_call_update", toolCallId=name, status="completed" if chosen[name] == "yes" else "failed")
    say(json.dumps(chosen))
    return "end_turn"


def wordy(folder):
    """Asks for permission with a long text, and with a title of two lines."""
    text = {"type": "text", "text": "echo fine\n" * 3000 + "rm -rf all"}
    call = {"toolCallId": "w", "title": "Tidy up\nand empty the disk", "kind": "execute"}
    call["content"] = [{"type": "content", "content": text}]
    say(f"Chosen {asked_about(call)}.")
    return "end_turn"


def outside(folder):
    words = [
        refusal(ask("fs/read_text_file", path="/etc/passwd")),
        refusal(ask("fs/read_text_file", path=folder + "/../secret")),
        refusal(ask("fs/write_text_file", path=folder + "/.git/hooks/pre-commit", content="x")),
        refusal(ask("fs/read_text_file", path=folder + "/link.md")),
        refusal(ask("terminal/create", command="ls", cwd="/etc")),
        refusal(ask("terminal/output", terminalId="t99")),
        refusal(ask("session/fly")),
        refusal(ask("fs/read_text_file", path=7)),
    ]
    say(" | ".join(words))
    return "end_turn"


def garbage(folder):
    sys.stdout.write("no JSON\n")
    sys.stdout.write("[" * 100_000 + "\n")
    sys.stdout.write("x" * (17 << 20) + "\n")
    send({"id": 9_999, "result": {"nobody": "asked"}})
    send({"id": {"a": 1}, "method": "fs/read_text_file"})
    send({"method": "session/update", "params": {"sessionId": "other", "update": {"sessionUpdate": "plan"}}})
    say("Still here.")
    return "end_turn"


def flood(folder):
    while True:
        say("x" * 100_000)


def terminal(command, **params):
    return ask("terminal/create", command=command, **params)["result"]["terminalId"]


def output(terminal_id):
    return ask("terminal/output", terminalId=terminal_id)["result"]


def run(command):
    own = terminal(command)
    ask("terminal/wait_for_exit", terminalId=own)
    return output(own)["output"].strip()


def looks(folder):
    """Looks before it makes a file, as coding agents do, and reads what a command has printed that failed."""
    missing = ask("fs/read_text_file", path=folder + "/new.md")["error"]
    if missing["code"] == -32002 and "Resource not found" in missing["message"]:
        ask("fs/write_text_file", path=folder + "/new.md", content="# New\n")
    own = terminal("head nothing.md")
    code = ask("terminal/wait_for_exit", terminalId=own)["result"]["exitCode"]
    say(f"Code {code}, tail {output(own)['output'].strip()[-9:]}.")
    return "end_turn"


def start_server(folder):
    """Starts a command that doesn't end by itself, and goes on with something else while it runs."""
    server = terminal(f"echo up > up.txt; echo started; exec sleep {prompts[-1].split()[1]}")
    begun = time.monotonic()
    while "started" not in output(server)["output"] and time.monotonic() < begun + 30:
        time.sleep(0.05)
    first = output(server)
    text = ask("fs/read_text_file", path=folder + "/a.md")["result"]["content"]
    return server, first, text


def background(folder):
    run("echo fg > fg.txt")
    server, first, text = start_server(folder)
    seen = run("cat up.txt")
    running = output(server)
    ask("terminal/kill", terminalId=server)
    ended = ask("terminal/wait_for_exit", terminalId=server)["result"]
    last = output(server)
    ask("terminal/release", terminalId=server)
    gone = refusal(ask("terminal/output", terminalId=server))
    long = terminal("seq 1 2000", outputByteLimit=20)
    code = ask("terminal/wait_for_exit", terminalId=long)["result"]
    said = {"first": first, "text": text, "seen": seen, "running": running, "ended": ended, "last": last}
    say(json.dumps({**said, "gone": gone, "code": code, "long": output(long)}))
    return "end_turn"


def leave(folder):
    """Ends its turn while its command runs."""
    _, first, _ = start_server(folder)
    say(f"I leave it: {first['output'].strip()}.")
    return "end_turn"


def stay(folder):
    """Doesn't end its turn while its command runs."""
    start_server(folder)
    with open(os.environ["PID_FILE"], "w") as file:
        file.write("up and running")
    while True:
        receive()


def early(folder):
    """Ends a command that the user hasn't allowed yet."""
    own = terminal("echo never > never.txt")
    ask("terminal/kill", terminalId=own)
    ended = ask("terminal/wait_for_exit", terminalId=own)["result"]
    say(json.dumps(ended))
    return "end_turn"


def panel(folder):
    """Shows all that a panel can show: a plan, a diff, two questions for permission, two changes of a file."""
    first = {"content": "Change the list", "status": "in_progress", "priority": "high"}
    update("plan", entries=[first, {"content": "Run make", "status": "pending", "priority": "low"}])
    say("I look at the list. ")
    path = folder + "/List.md"
    old = ask("fs/read_text_file", path=path)["result"]["content"]
    new = old.replace("first", "first, changed").replace("last", "last, changed")
    diff = {"type": "diff", "path": path, "oldText": old, "newText": new}
    call = {"toolCallId": "list", "title": "Change List.md", "kind": "edit", "content": [diff]}
    chosen = asked_about(call)
    if chosen == "yes":
        ask("fs/write_text_file", path=path, content=new)
    update("tool_call_update", toolCallId="list", status="completed" if chosen == "yes" else "failed")
    then = permission("Run make", "make")
    say(f"Chosen {chosen}, then {then}.")
    return "end_turn"


def live(folder):
    """Writes a file that the user changes since it was read."""
    text = ask("fs/read_text_file", path=folder + "/Talk.md")["result"]["content"]
    with open(os.environ["PID_FILE"], "w") as file:
        file.write("it is read")
    begun = time.monotonic()
    while not os.path.exists(os.environ["PID_FILE"] + ".go") and time.monotonic() < begun + 120:
        time.sleep(0.01)
    ask("fs/write_text_file", path=folder + "/Talk.md", content=text + "\nFrom the agent.\n")
    say("It is written.")
    return "end_turn"


def recall(folder):
    """Says which prompts of this session it knows."""
    say(f"Prompts: {json.dumps(prompts)}, taken up: {is_taken_up}.")
    return "end_turn"


def hang(folder):
    if is_taken_up:
        say("I go on.")
        return "end_turn"
    child = subprocess.Popen(["sleep", "1000"])
    with open(os.environ["PID_FILE"], "w") as file:
        file.write(f"{os.getpid()} {child.pid}")
    say("I hang. ")
    while True:
        receive()


def crash(folder):
    say("Half an answer")
    print("the agent's own reason", file=sys.stderr)
    sys.exit(3)


def take_up():
    """Takes up the session of the file. Tells what was said, as the protocol wants it."""
    global is_taken_up
    with open(session_file) as file:
        prompts.extend(json.load(file))
    is_taken_up = True
    for prompt in prompts:
        update("user_message_chunk", content={"type": "text", "text": prompt})
        say("An old answer.")


def main():
    folder = None
    while True:
        message = receive()
        method = message.get("method")
        if method == "initialize":
            assert message["params"]["clientCapabilities"]["terminal"] is True
            capabilities = {"loadSession": session_file is not None}
            send({"id": message["id"], "result": {"protocolVersion": 1, "agentCapabilities": capabilities}})
        elif method == "session/load":
            folder = message["params"]["cwd"]
            if message["params"]["sessionId"] == "s1" and os.path.exists(session_file):
                take_up()
                send({"id": message["id"], "result": None})
            else:
                send({"id": message["id"], "error": {"code": -32002, "message": "Resource not found"}})
        elif method == "session/new":
            folder = message["params"]["cwd"]
            send({"id": message["id"], "result": {"sessionId": "s1"}})
        elif method == "session/prompt":
            text = message["params"]["prompt"][0]["text"]
            prompts.append(text)
            if session_file:
                with open(session_file, "w") as file:
                    json.dump(prompts, file)
            known = [alone, background, crash, early, edits, flood, garbage, hang, leave]
            known += [live, looks, outside, overtake, panel, recall, stay, stubborn, wordy]
            does = {one.__name__: one for one in known}
            # The panel names the agent first.
            words = [word for word in text.split() if not word.startswith("@")]
            reason = does.get(words[0], work)(folder)
            send({"id": message["id"], "result": {"stopReason": reason}})


main()
