"""A client of `tracebook.v1` that grpcio-tools made from its description. See .ci/grpc."""

import json
import threading

import grpc
from checks import refused, until
from tracebook.v1 import attachments_pb2 as files
from tracebook.v1 import attachments_pb2_grpc as files_rpc
from tracebook.v1 import collections_pb2 as tables
from tracebook.v1 import collections_pb2_grpc as tables_rpc
from tracebook.v1 import history_pb2 as history
from tracebook.v1 import history_pb2_grpc as history_rpc
from tracebook.v1 import memory_pb2 as memory
from tracebook.v1 import memory_pb2_grpc as memory_rpc
from tracebook.v1 import tracebook_pb2 as pb
from tracebook.v1 import tracebook_pb2_grpc as rpc

code = grpc.StatusCode


def exercise(channel, tokens):
    def shown(name):
        return {"metadata": [("authorization", f"Bearer {tokens[name]}")], "timeout": 60}

    exercise_notes(channel, shown)
    exercise_files(channel, shown)
    exercise_memory(channel, shown)
    exercise_runs(channel, shown)


def exercise_notes(channel, shown):
    notes, writer, reader = rpc.NoteServiceStub(channel), shown("writer"), shown("reader")
    text = "# Log\r\n\r\nThe anchor weighs 14 kg.\n\n```python\nprint(6 * 7)\n```\n".encode()
    place = {"volume": "notes", "path": "Log é.md"}
    refused(code.UNAUTHENTICATED, lambda: notes.CreateNote(pb.CreateNoteRequest(**place, content=text)))
    refused(code.PERMISSION_DENIED, lambda: notes.CreateNote(pb.CreateNoteRequest(**place), **reader), b"SCOPE_MISSING")
    made = notes.CreateNote(pb.CreateNoteRequest(**place, content=text), **writer)
    refused(code.ALREADY_EXISTS, lambda: notes.CreateNote(pb.CreateNoteRequest(**place), **writer))
    got = notes.GetNote(pb.GetNoteRequest(**place), **reader)
    assert (got.content, got.etag) == (text, made.etag), got
    changed = notes.UpdateNote(pb.UpdateNoteRequest(**place, content=text + b"More.\n", if_match=made.etag), **writer)
    late = pb.UpdateNoteRequest(**place, content=b"lost", if_match=made.etag)
    refused(code.ABORTED, lambda: notes.UpdateNote(late, **writer))
    refused(code.INVALID_ARGUMENT, lambda: notes.UpdateNote(pb.UpdateNoteRequest(**place), **writer), b"if_match")
    outside = pb.GetNoteRequest(volume="notes", path="../W/config.yaml")
    refused(code.INVALID_ARGUMENT, lambda: notes.GetNote(outside, **reader), b"google.rpc.BadRequest")
    huge = pb.CreateNoteRequest(volume="notes", path="Huge.md", content=b"a" * (10 << 20))
    refused(code.RESOURCE_EXHAUSTED, lambda: notes.CreateNote(huge, **writer))
    listed = notes.ListNotes(pb.ListNotesRequest(volume="notes", page_size=1), **reader)
    assert listed.total_size == 2 and listed.next_page_token, listed
    rest = pb.ListNotesRequest(volume="notes", page_token=listed.next_page_token)
    paths = [note.path for note in [*listed.notes, *notes.ListNotes(rest, **reader).notes]]
    assert paths == ["Boat.md", "Log é.md"], paths
    # Found by words, with what the score is made of.
    search = rpc.SearchServiceStub(channel)
    found = search.SearchNotes(pb.SearchNotesRequest(query="anchor weighs"), **reader).results
    assert found[0].path == "Log é.md" and found[0].explanation and found[0].score_parts, found
    # Its cell runs, and says what it printed.
    cells = rpc.CellServiceStub(channel)
    refused(code.PERMISSION_DENIED, lambda: list(cells.RunCells(pb.RunCellsRequest(**place), **reader)))
    answers = list(cells.RunCells(pb.RunCellsRequest(**place), **writer))
    kinds = [answer.WhichOneof("event") for answer in answers]
    assert kinds[-1] == "end" and answers[-1].end.succeeded and "output" in kinds, answers
    assert "42" in json.dumps(json.loads(answers[0].output.output_json)), answers
    # A client that gives up gets no more, and the server goes on.
    events = rpc.EventServiceStub(channel).WatchEvents(pb.WatchEventsRequest(), metadata=writer["metadata"])
    seen = []
    follower = threading.Thread(target=lambda: seen.append(next(events)))
    follower.start()
    number = 0
    while not seen:
        number += 1
        todo = pb.CreateNoteRequest(volume="notes", path=f"Events/{number}.md", content=b"- [ ] Sail\n")
        etag = notes.CreateNote(todo, **writer).etag
        notes.DeleteNote(pb.DeleteNoteRequest(volume="notes", path=todo.path, if_match=etag), **writer)
    follower.join()
    assert seen[0].event_id and json.loads(seen[0].event_json)["kind"] == seen[0].kind, seen
    events.cancel()
    notes.DeleteNote(pb.DeleteNoteRequest(**place, if_match=changed.etag), **writer)
    refused(code.NOT_FOUND, lambda: notes.GetNote(pb.GetNoteRequest(**place), **reader))


def exercise_files(channel, shown):
    """Attachments, collections and history."""
    writer, reader = shown("writer"), shown("reader")
    attachments = files_rpc.AttachmentServiceStub(channel)
    content = bytes(range(256)) * 8192
    place = {"volume": "notes", "path": "Pictures/tide é.bin"}

    def sent(**target):
        yield files.WriteAttachmentRequest(target=files.AttachmentTarget(**target))
        for at in range(0, len(content), 1 << 20):
            yield files.WriteAttachmentRequest(content=content[at : at + (1 << 20)])

    refused(code.PERMISSION_DENIED, lambda: attachments.WriteAttachment(sent(**place), **reader), b"SCOPE_MISSING")
    made = attachments.WriteAttachment(sent(**place), **writer).attachment
    assert made.size_bytes == len(content) and made.update_time.ToMilliseconds() > 0, made
    refused(code.ALREADY_EXISTS, lambda: attachments.WriteAttachment(sent(**place), **writer))
    refused(code.ABORTED, lambda: attachments.WriteAttachment(sent(**place, if_match="0"), **writer))

    def read(**part):
        first, *parts = attachments.ReadAttachment(files.ReadAttachmentRequest(**place, **part), **reader)
        assert first.attachment.etag == made.etag, first
        return b"".join(part.content for part in parts)

    assert read() == content and read(offset=1000, length=1 << 20) == content[1000 : 1000 + (1 << 20)]
    behind = files.ReadAttachmentRequest(**place, offset=len(content) + 1)
    refused(code.OUT_OF_RANGE, lambda: list(attachments.ReadAttachment(behind, **reader)))
    outside = files.ReadAttachmentRequest(volume="notes", path="../W/config.yaml")
    refused(code.INVALID_ARGUMENT, lambda: list(attachments.ReadAttachment(outside, **reader)), b"google.rpc.BadRequest")
    listed = attachments.ListAttachments(files.ListAttachmentsRequest(volume="notes", path_prefix="Pict"), **reader)
    assert list(listed.attachments) == [made], listed
    attachments.DeleteAttachment(files.DeleteAttachmentRequest(**place, if_match=made.etag), **writer)
    # A collection is no attachment.
    shelf = {"volume": "notes", "path": "Shelf.base"}
    refused(code.INVALID_ARGUMENT, lambda: attachments.WriteAttachment(sent(**shelf), **writer))
    collections = tables_rpc.CollectionServiceStub(channel)
    found = collections.ListCollections(tables.ListCollectionsRequest(volume="notes"), **reader).collections
    assert [one.path for one in found] == ["Shelf.base"], found
    rows = collections.QueryCollection(tables.QueryCollectionRequest(**shelf, view="all"), **reader).rows
    assert "Boat.md" in [row.path for row in rows] and json.loads(rows[0].cells_json), rows
    unknown = tables.QueryCollectionRequest(**shelf, view="none")
    refused(code.INVALID_ARGUMENT, lambda: collections.QueryCollection(unknown, **reader), b"view")
    # The versions of a note that is changed once.
    notes, versions = rpc.NoteServiceStub(channel), history_rpc.HistoryServiceStub(channel)
    place = {"volume": "notes", "path": "Versions.md"}
    etag = notes.CreateNote(pb.CreateNoteRequest(**place, content=b"One\n"), **writer).etag
    notes.UpdateNote(pb.UpdateNoteRequest(**place, content=b"Two\n", if_match=etag), **writer)
    listed = versions.ListNoteVersions(history.ListNoteVersionsRequest(**place), **reader).versions
    assert len(listed) >= 2 and listed[-1].create_time.ToSeconds() > 0, listed
    number = listed[-2].number
    text = versions.GetNoteVersion(history.GetNoteVersionRequest(**place, number=number), **reader).content
    assert text == b"One\n", text
    restore = history.RestoreNoteVersionRequest(**place, number=number)
    refused(code.PERMISSION_DENIED, lambda: versions.RestoreNoteVersion(restore, **reader))
    assert versions.RestoreNoteVersion(restore, **writer).etag == etag
    blocks = notes.ListNoteBlocks(pb.ListNoteBlocksRequest(**place), **reader).blocks
    assert "".join(block.text for block in blocks) == "One\n", blocks
    notes.DeleteNote(pb.DeleteNoteRequest(**place), **writer)


def exercise_memory(channel, shown):
    memories, traces = memory_rpc.MemoryServiceStub(channel), memory_rpc.TraceServiceStub(channel)
    writer, reader = shown("writer"), shown("reader")
    new = memory.AddMemoryRequest(text="Two coats are enough", goal="Paint the hull", volume="notes")
    refused(code.PERMISSION_DENIED, lambda: memories.AddMemory(new, **reader))
    added = memories.AddMemory(new, **writer).memory_id
    got = memories.GetMemory(memory.GetMemoryRequest(memory_id=added), **reader).memory
    assert (got.text, got.outcome, got.is_current) == (new.text, memory.MEMORY_OUTCOME_SUCCESS, True), got
    assert got in memories.ListMemories(memory.ListMemoriesRequest(volume="notes"), **reader).memories
    recalled = memories.RecallMemories(memory.RecallMemoriesRequest(goal="Paint the hull"), **reader).memories
    assert added in [one.name for one in recalled], recalled
    memories.DeleteMemory(memory.DeleteMemoryRequest(memory_id=added), **writer)
    refused(code.NOT_FOUND, lambda: memories.GetMemory(memory.GetMemoryRequest(memory_id=added), **reader))
    known = traces.ListTraces(memory.ListTracesRequest(volume="notes"), **reader)
    assert known.total_size == len(known.traces), known
    for call, asked in [(traces.GetTrace, memory.GetTraceRequest), (traces.DeleteTrace, memory.DeleteTraceRequest)]:
        refused(code.NOT_FOUND, lambda: call(asked(name="none"), **writer))
    refused(code.PERMISSION_DENIED, lambda: traces.PinTrace(memory.PinTraceRequest(name="none"), **writer), b"approve")
    refused(code.NOT_FOUND, lambda: traces.PinTrace(memory.PinTraceRequest(name="none"), **shown("approver")))


def exercise_runs(channel, shown):
    runs, everything, reader, approver = rpc.RunServiceStub(channel), shown("all"), shown("reader"), shown("approver")
    start = pb.StartRunRequest(prompt="Make it", volume="notes", context={"color": "red"})
    refused(code.PERMISSION_DENIED, lambda: runs.StartRun(start, **reader), b"agent")
    run = runs.StartRun(start, **everything).run
    assert run.id and run.state in (pb.RUN_STATE_QUEUED, pb.RUN_STATE_RUNNING), run
    events = runs.WatchRun(pb.WatchRunRequest(run_id=run.id), **reader)
    seen = []
    for event in events:
        seen.append(event)
        for approval in event.update.pending_approvals:
            assert json.loads(approval.arguments_json)["command"], approval
            decision = pb.DecideApprovalRequest(approval_id=approval.id, decision=pb.DECISION_APPROVE, comment="fine")
            refused(code.PERMISSION_DENIED, lambda: runs.DecideApproval(decision, **reader), b"approve")
            runs.DecideApproval(decision, **approver)
    last = seen[-1].update
    assert last.run.state == pb.RUN_STATE_DONE and last.result.answer == "It is made.", last
    assert last.run.end_time.ToMilliseconds() >= last.run.start_time.ToMilliseconds() > 0, last
    steps = [event.step for event in seen if event.WhichOneof("event") == "step"]
    assert {"tool_call", "tool_result", "final_answer"} <= {step.WhichOneof("kind") for step in steps}, steps
    listed = runs.ListRunSteps(pb.ListRunStepsRequest(run_id=run.id), **reader)
    assert list(listed.steps) == steps and listed.total_size == len(steps), listed
    # Resumed behind an event, it has the rest.
    middle = next(event for event in seen if event.step.WhichOneof("kind") == "tool_call")
    again = runs.WatchRun(pb.WatchRunRequest(run_id=run.id, after_event_id=middle.event_id), **reader)
    rest = [event.step for event in again if event.WhichOneof("event") == "step"]
    assert rest == steps[steps.index(middle.step) + 1 :], rest
    got = runs.GetRun(pb.GetRunRequest(run_id=run.id), **reader)
    assert got.result == last.result and got.run.model_call_count == 2, got
    # Ids that are none, and a stream that the client gives up.
    for wrong in ["", "../../etc/passwd", "--stop", "0" * 32, "é" * 500]:
        refused(code.NOT_FOUND, lambda: runs.GetRun(pb.GetRunRequest(run_id=wrong), **reader))
        refused(code.NOT_FOUND, lambda: list(runs.WatchRun(pb.WatchRunRequest(run_id=wrong), **reader)))
    other = pb.WatchRunRequest(run_id=run.id, after_event_id="900")
    refused(code.INVALID_ARGUMENT, lambda: list(runs.WatchRun(other, **reader)), b"after_event_id")
    second = runs.StartRun(start, **everything).run
    given_up = runs.WatchRun(pb.WatchRunRequest(run_id=second.id), **reader)
    next(given_up)
    given_up.cancel()
    waiting = pb.ListPendingApprovalsRequest(run_id=second.id)

    def pending():
        try:
            return runs.ListPendingApprovals(waiting, **reader).approvals
        except grpc.RpcError as error:
            # It's queued.
            assert error.code() == code.NOT_FOUND, error

    until("it waits", pending)
    runs.CancelRun(pb.CancelRunRequest(run_id=second.id), **everything)
    ended = list(runs.WatchRun(pb.WatchRunRequest(run_id=second.id), **reader))[-1]
    assert ended.update.run.state == pb.RUN_STATE_CANCELED, ended
