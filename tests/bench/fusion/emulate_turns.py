"""Measures recall of turns in conversations as the program ranks them, for several weights of words.

    python emulate_turns.py MODEL.onnx VOCAB.txt STOP_WORDS CONVERSATIONS VECTORS WEIGHT ...

CONVERSATIONS is a folder that build_conversations.py made. A WEIGHT from 0 to 1 is the minimum weight of words
(RankingWeights::turn_words); 0 leaves it to the gate. Printed is recall@10 of each file and of each category in it,
with the context of a turn (store/index/src/conversation.rs) and without. The other arguments are those of emulate.py.
It differs from the program in small things: days are not compared, and times are recognized by fewer expressions.
"""

import collections
import json
import math
import os
import re
import sys

import numpy as np

import emulate
from emulate import EXACT, FOLDER, PAIR, POOL, STOP_WORD, VECTORS, idf, stem, stop_words, words
from train import MIN_COSINE, RANKS, reciprocal, scaled

emulate.B = 0.15  # RankingWeights::turn_b
FACTORS = [-1.244, 0.472, 1.285, -1.29]  # FusionGate::default
NEXT, SECOND, SESSION, ANSWER, ASKING, SPEAKER, WHEN = 0.4, 0.25, 0.4, 0.2, 0.05, 0.2, 0.1
CANDIDATES = 800
UNIT = r"(?:week|weekend|month|year|night|summer|(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
MONTH = r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
NAMES_TIME = re.compile(
    rf"\b(?:yesterday|today|tonight|tomorrow|(?:last|past|previous|this|next) {UNIT}|on \w+day"
    rf"|\w+ (?:day|week|month|year)s? ago|in (?:{MONTH}|(?:19|20)\d\d)|{MONTH} \d+)\b", re.I)
ASKS_WHEN = re.compile(
    r"^when\b|\bwhen (?:did|do|does|is|was|were|will)\b|\b(?:what|which) (?:day|date|month|year|time)\b"
    r"|how long ago", re.I)


class Conversation:
    def __init__(self, one, path):
        parts = one["conversation"]
        turns = []
        for session, key in enumerate(key for key, said in parts.items() if isinstance(said, list)):
            day = parts.get(f"{key}_date_time", "")
            for turn in parts[key]:
                text = f"{turn['speaker']}: {turn['text']}"
                text += f" (shows {turn['blip_caption']})" if turn.get("blip_caption") else ""
                dated = f"{text}\n{key}, {day}" if re.search(r"\b(?:19|20)\d\d\b", day) else text
                turns.append((session, turn["dia_id"], turn["speaker"], text, dated))
        self.names = [turn[1] for turn in turns]
        self.sessions = np.array([turn[0] for turn in turns])
        self.speakers = [set(words(turn[2])) for turn in turns]
        self.asks = np.array(["?" in turn[3] for turn in turns])
        self.times = np.array([bool(NAMES_TIME.search(turn[3])) for turn in turns])
        self.tokens = [words(turn[4]) for turn in turns]
        self.exact = emulate.Field(self.tokens)
        self.stems = emulate.Field([[stem(word) for word in turn] for turn in self.tokens])
        known = {name: number for number, name in enumerate(self.names)}
        self.questions = []
        for asked in one["qa"]:
            named = [name for entry in asked["evidence"] for name in re.findall(r"D\d+:\d+", entry)]
            evidence = {known[name] for name in named if name in known}
            if evidence:
                # query_of_message: the program asks with letters and digits only
                plain = "".join(c if c.isalnum() else " " for c in asked["question"])
                self.questions.append((plain, evidence, asked["category"]))
        if not os.path.exists(path):
            os.makedirs(VECTORS, exist_ok=True)
            vectors = [emulate.embed(turn[4]) for turn in turns]
            asked = [emulate.embed(question) for question, _, _ in self.questions]
            np.savez(path, turns=np.array(vectors, np.float32), asked=np.array(asked, np.float32))
        kept = np.load(path)
        self.vectors, self.asked = kept["turns"], kept["asked"]

    def word_scores(self, question):
        total, scores, rarity = len(self.names), np.zeros(len(self.names)), 0.0
        asked = words(question)
        terms = list(dict.fromkeys(asked))
        alone = all(word in stop_words for word in terms)
        for word in terms:
            share = STOP_WORD if word in stop_words and not alone else 1.0
            rarity += share * idf(self.stems.count(stem(word)), total)
            self.stems.add(stem(word), share * idf(self.stems.count(stem(word)), total), scores)
            self.exact.add(word, share * EXACT * idf(self.exact.count(word), total), scores)
        pairs = {pair for pair in zip(asked, asked[1:]) if pair[0] != pair[1]}
        for number in np.argsort(-scores, kind="stable")[:CANDIDATES]:
            said = self.tokens[number]
            for pair, count in collections.Counter(pair for pair in zip(said, said[1:]) if pair in pairs).items():
                scores[number] += PAIR * idf(min(map(self.exact.count, pair)), total) * count / (count + 1.5)
        return scores, len(terms), rarity

    def fuse(self, number, floor):
        scores, terms, rarity = self.word_scores(self.questions[number][0])
        near = self.vectors @ self.asked[number]
        spread = lambda all: np.sort(all)[-1] - np.sort(all)[-min(POOL, len(all))]
        signals = [1, math.log(terms + 1) - 2, math.log((spread(scores) + 1e-3) / math.sqrt(rarity + 1)),
                   math.log(spread(near) + 1e-3) + 1.5]
        weight = max(1 / (1 + math.exp(-float(np.dot(FACTORS, signals)))), floor)
        by_words = scaled(scores, 0.0) + 0.01 * scores / max(scores.max(), 1e-9)
        by_meaning = scaled(near, near.min()) + 0.01 * near
        ranks = reciprocal(scores, min(POOL, int((scores > 0).sum()))) + reciprocal(near, POOL)
        fused = (weight * by_words + (1 - weight) * by_meaning + RANKS * ranks) / (1 + RANKS)
        return np.where((scores > 0) | (near >= MIN_COSINE), fused, -9.0)

    def beside(self, values, offset):
        """Returns each turn's value of the turn before it (or after it, if negative) in its session."""
        out = np.roll(values, offset)
        out[self.sessions != np.roll(self.sessions, offset)] = 0
        out[:offset] = 0 if offset > 0 else out[:offset]
        out[offset:] = 0 if offset < 0 else out[offset:]
        return out

    def with_context(self, fused, question):
        found = fused > -5
        scores = np.where(found, fused, 0)
        mean = lambda session: np.sort(scores[self.sessions == session])[::-1][:3].sum() / 3
        best = {session: mean(session) for session in set(self.sessions)}
        better = lambda offset: np.maximum(self.beside(scores, offset), self.beside(scores, -offset))
        answers = self.beside(scores, 1) * np.r_[False, self.asks[:-1]]
        named = np.array([bool(speaker & set(words(question))) for speaker in self.speakers])
        gained = NEXT * better(1) + SECOND * better(2) + ANSWER * answers - ASKING * self.asks + SPEAKER * named
        gained = gained + SESSION * np.array([best[session] for session in self.sessions])
        if ASKS_WHEN.search(question):
            gained = gained + WHEN * self.times
        return np.where(found, fused + gained, -9.0)


def main():
    weights = [float(weight) for weight in sys.argv[6:]]
    for file in sorted(name for name in os.listdir(FOLDER) if name.endswith(".json")):
        found = collections.defaultdict(list)
        for number, one in enumerate(json.load(open(f"{FOLDER}/{file}"))):
            talk = Conversation(one, f"{VECTORS}/{file[:-5]}-{number}.npz")
            for place, (question, evidence, category) in enumerate(talk.questions):
                for weight in weights:
                    fused = talk.fuse(place, weight)
                    for way, scores in [("alone", fused), ("context", talk.with_context(fused, question))]:
                        first = set(np.argsort(-scores, kind="stable")[:10].tolist())
                        recall = len(first & evidence) / len(evidence)
                        found[weight, way, "all"].append(recall)
                        found[weight, way, category].append(recall)
        for (weight, way, category), recalls in sorted(found.items(), key=str):
            print(f"{file} weight {weight} {way} category {category}: {np.mean(recalls):.4f} of {len(recalls)}")


if __name__ == "__main__":
    main()
