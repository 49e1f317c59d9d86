"""Drives `tracebook mcp` and `/mcp` by the client of the Python SDK: with the handshake of older versions of the protocol,
and without it, as from version 2026-07-28 on.

    python_client.py PROGRAM WORKSPACE NOTES URL TOKEN
"""

import asyncio
import sys
import warnings
from pathlib import Path

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

PROGRAM, WORKSPACE, NOTES, URL, TOKEN = sys.argv[1:6]
HELLO = "note://notes/Hello.md"


async def refused(wanted, call):
    """Checks that a call fails with an error that says `wanted`."""
    try:
        result = await call
    except MCPError as error:
        assert wanted in str(error), error
        return
    assert result.is_error and wanted in result.content[0].text, result


async def changed(client, mode, change):
    """Waits until the client hears that the note has changed."""
    if mode == "legacy":
        return
    async with client.listen(resource_subscriptions=[HELLO, "note://notes/Other.md", "file:///etc/passwd"]) as news:
        assert HELLO in (news.honored.resource_subscriptions or []), news.honored
        assert "file:///etc/passwd" not in (news.honored.resource_subscriptions or []), news.honored
        change()
        async for event in news:
            assert event.uri == HELLO, event
            return


async def drive(server, mode):
    async with Client(server, mode=mode, read_timeout_seconds=60) as client:
        is_modern = client.protocol_version >= "2026-07-28"
        assert is_modern == (mode != "legacy"), client.protocol_version
        assert client.server_info.name == "tracebook", client.server_info
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["search_notes"].annotations.read_only_hint and tools["search_notes"].output_schema
        found = await client.call_tool("read_note", {"note": "Hello.md"})
        assert not found.is_error and found.structured_content["text"].startswith("# Hello"), found
        await refused("Nowhere.md", client.call_tool("read_note", {"note": "Nowhere.md"}))
        await refused("no_such_tool", client.call_tool("no_such_tool", {}))
        resources = (await client.list_resources()).resources
        assert HELLO in [str(one.uri) for one in resources], resources
        templates = (await client.list_resource_templates()).resource_templates
        assert [one.name for one in templates] == ["note", "attachment"], templates
        read = await client.read_resource(HELLO)
        assert read.contents[0].text.startswith("# Hello"), read
        await refused("Nowhere", client.read_resource("note://notes/Nowhere.md"))
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        assert "test_prompt_with_arguments" in prompts and "ask_my_notes" in prompts, prompts
        filled = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
        assert "arg1='one', arg2='two'" in filled.messages[0].content.text, filled
        await refused("arg2", client.get_prompt("test_prompt_with_arguments", {"arg1": "one"}))
        note = Path(NOTES, "Hello.md")
        change = lambda: note.write_text(note.read_text() + "More.\n")
        await asyncio.wait_for(changed(client, mode, change), 60)
        # Calls at the same time, and one that is given up.
        calls = [client.call_tool("list_notes", {}) for _ in range(20)]
        assert all(not one.is_error for one in await asyncio.gather(*calls))
        given_up = asyncio.create_task(client.call_tool("search_notes", {"query": "hello"}))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        assert not (await client.call_tool("list_notes", {})).is_error
        return client.protocol_version


async def main():
    for mode in ("legacy", "auto"):
        program = StdioServerParameters(command=PROGRAM, args=["--workspace", WORKSPACE, "mcp"])
        print("standard input and output", mode, await drive(program, mode))
        http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60)
        print("HTTP", mode, await drive(streamable_http_client(URL, http_client=http), mode))


warnings.simplefilter("ignore")
asyncio.run(main())
