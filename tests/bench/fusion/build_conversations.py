"""Writes public conversations in the form that `bench retrieval --conversations DIR` reads.

    python build_conversations.py MIRRORS OUT

MIRRORS holds bare clones as for build_collections.py, of danny911kr/REALTALK, emorynlp/FriendsQA and
HIT-SCIR/Molweni. OUT gets a file for each. Of REALTALK only its own chats are read: two people, sessions with dates,
and questions that somebody wrote about them later. The others are of other kinds: scenes of a series, and chats of many
people about an operating system. These are short, so several of them are one conversation, a session each.
"""

import json
import os
import re
import subprocess
import sys

MIRRORS, OUT = sys.argv[1:3]
SCENES_PER_CONVERSATION = 20
CHATS_PER_CONVERSATION = 40
MAX_CHATS = 160
QUESTION_WORDS = ["what", "who", "where", "when", "why", "how"]


def git(name, *args):
    folders = [f"{MIRRORS}/{name}/repo/.git", f"{MIRRORS}/{name}/repo", f"{MIRRORS}/{name}"]
    folder = next(folder for folder in folders if os.path.isdir(f"{folder}/objects"))
    return subprocess.run(["git", f"--git-dir={folder}", *args], capture_output=True, check=True).stdout.decode()


def realtalk():
    """Ten chats of two people over three weeks each; the category is that of the set."""
    paths = git("danny911kr+REALTALK", "ls-tree", "--name-only", "HEAD", "data/").splitlines()
    for path in sorted(path for path in paths if re.fullmatch(r"data/Chat_\d+_\w+\.json", path)):
        chat = json.loads(git("danny911kr+REALTALK", "show", f"HEAD:{path}"))
        talk = {}
        for key, turns in chat.items():
            if re.fullmatch(r"session_\d+", key) and turns:
                day, month, year = turns[0]["date_time"].split(",")[0].split(".")
                talk[f"{key}_date_time"] = f"{year}-{month}-{day}"
                talk[key] = [{"speaker": turn["speaker"], "dia_id": turn["dia_id"], "text": turn["clean_text"],
                              **({"blip_caption": turn["blip_caption"]} if turn.get("blip_caption") else {})}
                             for turn in turns]
        asked = [{"question": one["question"], "evidence": one["evidence"], "category": one["category"]}
                 for one in chat.get("qa", [])]
        yield {"sample_id": os.path.basename(path)[:-5], "conversation": talk, "qa": asked}


def friends():
    """Scenes of a series; the category is the question word: 1 what, 2 who, 3 where, 4 when, 5 why, 6 how, 0 other."""
    scenes = json.loads(git("emorynlp+FriendsQA", "show", "HEAD:dat/friendsqa_tst.json"))["data"]
    for start in range(0, len(scenes), SCENES_PER_CONVERSATION):
        talk, asked = {}, []
        for session, scene in enumerate(scenes[start:start + SCENES_PER_CONVERSATION], 1):
            for paragraph in scene["paragraphs"]:
                said = paragraph["utterances:"]
                talk[f"session_{session}_date_time"] = scene["title"]
                talk[f"session_{session}"] = [
                    {"speaker": " and ".join(one["speakers"]).replace("#NOTE#", "Scene"), "text": one["utterance"],
                     "dia_id": f"D{session}:{one['uid'] + 1}"} for one in said]
                for one in paragraph["qas"]:
                    first = one["question"].lower().split()[0] if one["question"].split() else ""
                    places = sorted({answer["utterance_id"] for answer in one["answers"]})
                    asked.append({"question": one["question"], "evidence": [f"D{session}:{n + 1}" for n in places],
                                  "category": QUESTION_WORDS.index(first) + 1 if first in QUESTION_WORDS else 0})
        yield {"sample_id": f"scenes-{start}", "conversation": talk, "qa": asked}


def support():
    """Chats about an operating system; the category is the question word, as for scenes."""
    chats = json.loads(git("HIT-SCIR+Molweni", "show", "HEAD:MRC(withDiscourse)/test.json"))["data"]["dialogues"]
    chats = chats[:MAX_CHATS]
    for start in range(0, len(chats), CHATS_PER_CONVERSATION):
        talk, asked = {}, []
        for session, chat in enumerate(chats[start:start + CHATS_PER_CONVERSATION], 1):
            talk[f"session_{session}_date_time"], ends, at = "", [], 0
            talk[f"session_{session}"] = [{"speaker": one["speaker"], "text": one["text"], "dia_id": f"D{session}:{n}"}
                                          for n, one in enumerate(chat["edus"], 1)]
            for one in chat["edus"]:
                at += len(one["speaker"]) + 2 + len(one["text"]) + 1
                ends.append(at)
            for one in chat["qas"]:
                first = one["question"].lower().split()[0] if one["question"].split() else ""
                places = {next((n for n, end in enumerate(ends, 1) if answer["answer_start"] < end), len(ends))
                          for answer in one["answers"] if not one["is_impossible"]}
                asked.append({"question": one["question"], "evidence": [f"D{session}:{n}" for n in sorted(places)],
                              "category": QUESTION_WORDS.index(first) + 1 if first in QUESTION_WORDS else 0})
        yield {"sample_id": f"support-{start}", "conversation": talk, "qa": asked}


os.makedirs(OUT, exist_ok=True)
for name, build in [("realtalk", realtalk), ("friends", friends), ("support", support)]:
    found = list(build())
    with open(f"{OUT}/{name}.json", "w") as out:
        json.dump(found, out, indent=1)
    turns = sum(len(part) for one in found for part in one["conversation"].values() if isinstance(part, list))
    print(f"{name}: {len(found)} conversations, {turns} turns, {sum(len(one['qa']) for one in found)} questions")
