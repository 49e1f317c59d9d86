"""Measures what could stand in for the bundled model while passages wait for it.

    python static_model.py MODEL.onnx VOCAB.txt STOP_WORDS COLLECTIONS VECTORS TEXTS.json [COLLECTION ...]

A static model has one vector for each word piece, and a text's vector is their mean: no network runs. The pieces'
vectors are made from the bundled model (each piece alone through it, as model2vec does). A linear map can bring the
mean near the bundled model's own vector, so that a query is read by the bundled model only. The map is fitted on
TEXTS.json, a list of texts of any kind, or on a part of the collection's documents and measured on the others. The rows
“the first … by words” need no static model: the bundled one reads these when they are asked for.

The other arguments are those of emulate.py, and so is the ranking. Nothing is random.
"""

import collections
import json
import math
import os
import re
import sys
import unicodedata

import numpy as np

import emulate
from train import MIN_COSINE, POOL, RANKS, ndcg, reciprocal, scaled

FACTORS = [-1.244, 0.472, 1.285, -1.29]  # FusionGate::default
DIMENSIONS = 128
RIDGE = 0.03  # of the mean square of what is mapped
PRIOR = 50  # passages that the map of TEXTS.json counts for
READ_FIRST = [0, 100, 300, 1_000]
READ_ON_REQUEST = [10, 20, 50, 100]
BATCH = 16


def pieces_alone():
    """Returns what the bundled model makes of each word piece alone."""
    path = f"{emulate.VECTORS}/pieces.npy"
    if not os.path.exists(path):
        count = len(emulate.vocabulary)
        start, end = emulate.vocabulary["[CLS]"], emulate.vocabulary["[SEP]"]
        out = []
        for first in range(0, count, BATCH):
            ids = np.array([[start, piece, end] for piece in range(first, min(first + BATCH, count))])
            given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            types = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
            feed = {one.name: given[one.name].astype(types[one.type]) for one in emulate.session.get_inputs()}
            out.append(emulate.session.run(None, feed)[0].mean(1))
        os.makedirs(emulate.VECTORS, exist_ok=True)
        np.save(path, np.concatenate(out))
    return np.load(path)


def weights_of(kind, count):
    """The pieces of BERT's vocabulary stand by frequency, from “the” on: Zipf's law gives their shares."""
    rank = np.maximum(np.arange(count) - emulate.vocabulary["the"], 0) + 1.0
    if kind == "none":
        return np.ones(count)
    if kind == "log":
        return np.log1p(rank)
    share = 1 / rank / np.log(count)
    return 1e-3 / (1e-3 + share)


def weighted(kind):
    alone = pieces_alone()
    return ((alone - alone.mean(0)) * weights_of(kind, len(alone))[:, None]).astype(np.float32)


known_pieces = {}


def pieces_of(text):
    text = unicodedata.normalize("NFD", text.replace("\ufffd", "")).lower()
    text = "".join(c for c in text if unicodedata.category(c) != "Mn")
    ids = []
    for word in re.findall(r"\w+|[^\w\s]", text.replace("_", " _ ")):
        if word not in known_pieces:
            known_pieces[word] = emulate.word_pieces(word)
        ids += known_pieces[word]
    return [piece for piece in ids if piece != emulate.vocabulary["[UNK]"]][:254]


def means(ids, table):
    return np.array([table[one].mean(0) if one else np.zeros(table.shape[1]) for one in ids])


def unit(rows):
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-9)


def hash_of(name):
    """A number that is the same in every run (FNV-1a)."""
    out = 2166136261
    for byte in name.encode():
        out = (out ^ byte) * 16777619 % 2**32
    return out


class Collection:
    def __init__(self, name):
        self.name = name
        self.owners, self.vectors, self.asked = emulate.vectors_of(name)
        self.corpus, self.queries = emulate.read(name, "corpus"), emulate.read(name, "queries")
        self.names, self.total = [one["_id"] for one in self.corpus], len(self.corpus)
        self.ids, self.query_ids = [pieces_of(text) for text in self.windows()], [
            pieces_of(query["text"]) for query in self.queries]
        assert len(self.ids) == len(self.vectors)
        self.wanted = collections.defaultdict(dict)
        for line in open(f"{emulate.FOLDER}/{name}/qrels.tsv"):
            query, document, grade = line.rstrip("\n").split("\t")[:3]
            if grade.isdigit() and int(grade) > 0:
                self.wanted[query][document] = int(grade)
        self.score_words()

    def windows(self):
        """Returns the text of each window, as emulate.vectors_of embeds it."""
        for one in self.corpus:
            for window in emulate.windows(f"# {one['title'].strip()}\n\n{one['text']}".strip()):
                yield ("" if one["title"] in window[:400] else one["title"] + "\n") + window

    def score_words(self):
        """Scores by words, as emulate.measure makes them."""
        words, stem = emulate.words, emulate.stem
        tokens = [words(f"# {one['title'].strip()}\n\n{one['text']}".strip()) for one in self.corpus]
        exact = emulate.Field(tokens)
        stems = emulate.Field([[stem(word) for word in document] for document in tokens])
        titles = emulate.Field([words(one["title"]) for one in self.corpus])
        counts = emulate.pair_counts(tokens, [words(query["text"]) for query in self.queries])
        self.scores, self.shapes = [], []
        for query in self.queries:
            asked = words(query["text"])
            terms = list(dict.fromkeys(asked))
            scores, rarity = np.zeros(self.total), 0.0
            alone = all(word in emulate.stop_words for word in terms)
            for word in terms:
                share = emulate.STOP_WORD if word in emulate.stop_words and not alone else 1.0
                of_stem, of_word = stems.count(stem(word)), exact.count(word)
                rarity += share * emulate.idf(of_stem, self.total)
                stems.add(stem(word), share * emulate.idf(of_stem, self.total), scores)
                exact.add(word, share * emulate.EXACT * emulate.idf(of_word, self.total), scores)
                titles.add(word, share * emulate.TITLE * emulate.idf(max(of_stem, of_word), self.total), scores)
            for pair in {(a, b) for a, b in zip(asked, asked[1:]) if a != b}:
                gain = emulate.PAIR * emulate.idf(min(map(exact.count, pair)), self.total)
                for number, count in counts[pair].items():
                    scores[number] += gain * count / (count + 1.5)
            self.scores.append(scores)
            self.shapes.append((len(terms), rarity))

    def measure(self, vectors, asked, read=None):
        """Returns nDCG@10 by words, by meaning, and of both. `read`: so many documents by words have a vector."""
        found = []
        for number, query in enumerate(self.queries):
            if query["_id"] not in self.wanted:
                continue
            near = np.full(self.total, -1.0)
            np.maximum.at(near, self.owners, vectors @ asked[number])
            has_vector = np.ones(self.total, bool)
            if read is not None:
                has_vector[np.argsort(-self.scores[number], kind="stable")[read:]] = False
            found.append(self.fuse(number, np.where(has_vector, near, -1.0), has_vector, self.wanted[query["_id"]]))
        return np.mean(found, axis=0)

    def fuse(self, number, near, has_vector, wanted):
        scores, (terms, rarity) = self.scores[number], self.shapes[number]
        spread = lambda all: np.sort(all)[-1] - np.sort(all)[-min(POOL, len(all))]
        signals = [1, math.log(terms + 1) - 2, math.log((spread(scores) + 1e-3) / math.sqrt(rarity + 1)),
                   math.log(spread(near[has_vector]) + 1e-3) + 1.5]
        gate = 1 / (1 + math.exp(-float(np.dot(FACTORS, signals))))
        first = lambda all, count: set(np.argsort(-all, kind="stable")[:count].tolist())
        pool = np.array(sorted(first(scores, POOL) | first(near, 2 * POOL)))
        pool = pool[(scores[pool] > 0) | has_vector[pool]]
        ids, words, near, has_vector = [self.names[n] for n in pool], scores[pool], near[pool], has_vector[pool]
        by_words = scaled(words, 0.0) + 0.01 * words / max(words.max(), 1e-9)
        by_meaning = np.copy(by_words)  # A passage without a vector is ranked by its words.
        by_meaning[has_vector] = scaled(near[has_vector], near[has_vector].min()) + 0.01 * near[has_vector]
        word_ranks = reciprocal(words, min(POOL, int((words > 0).sum())))
        ranks = word_ranks + np.where(has_vector, reciprocal(near, min(POOL, int(has_vector.sum()))), word_ranks)
        hits = (words > 0) | (near >= MIN_COSINE)
        both = np.where(hits, gate * by_words + (1 - gate) * by_meaning + RANKS * ranks, -9.0)
        return [ndcg(all, ids, wanted) for all in (words, near, both)]


def row(label, values):
    print(f"| {label} | " + " | ".join(f"{value:.3f}" for value in values) + " |", flush=True)


def with_constant(rows, size):
    return np.hstack([rows, np.full((len(rows), 1), size)])


def measure_static(one, texts, vectors):
    for kind in ["none", "log", "sif"]:
        table = weighted(kind)
        own, asked = means(one.ids, table), means(one.query_ids, table)
        row(f"pieces as they are, weights {kind}, 384 dimensions", one.measure(unit(own), unit(asked)))
    # What is stored of a passage: its mean on the axes where means of texts vary most.
    other = means(texts, table)
    _, _, axes = np.linalg.svd(other, full_matrices=False)
    for count in [DIMENSIONS, axes.shape[1]]:
        measure_maps(one, own @ axes[:count].T, other @ axes[:count].T, vectors)


def measure_maps(one, own, other, vectors):
    """The map that is fitted on the texts, and moved to what the bundled model has read of the collection."""
    size = math.sqrt((other**2).mean())
    count = own.shape[1]
    own, other = with_constant(own, size), with_constant(other, size)
    scale = np.trace(other.T @ other) / other.shape[1]
    fitted = np.linalg.solve(other.T @ other + RIDGE * scale * np.eye(other.shape[1]), other.T @ vectors)
    prior = PRIOR * scale / len(other) * np.eye(other.shape[1])
    order = np.argsort([hash_of(str(owner)) for owner in one.owners], kind="stable")  # Documents stay whole.
    half = len(order) // 2
    for read in READ_FIRST:
        mapped = np.zeros_like(one.vectors)
        for known, others in [(order[:half], order[half:]), (order[half:], order[:half])]:
            given, wanted = own[known[:read]], one.vectors[known[:read]]
            change = np.linalg.solve(given.T @ given + prior, given.T @ (wanted - given @ fitted))
            mapped[others] = unit(own[others] @ (fitted + change))
        near = (mapped * one.vectors).sum(1).mean()
        row(f"mapped, {count} dimensions, fitted on {len(other)} texts and {read} other passages (cosine {near:.2f})",
            one.measure(mapped, one.asked))


def main():
    texts = json.load(open(emulate.OUT))
    path = f"{emulate.VECTORS}/texts.npy"
    if not os.path.exists(path):
        os.makedirs(emulate.VECTORS, exist_ok=True)
        np.save(path, np.array([emulate.embed(text) for text in texts], np.float32))
    vectors = np.load(path)
    for name in sys.argv[7:] or sorted(os.listdir(emulate.FOLDER)):
        one = Collection(name)
        print(f"\n| {name}, nDCG@10 | words | meaning | both |\n|---|---|---|---|")
        row("bundled model", one.measure(one.vectors, one.asked))
        for count in READ_ON_REQUEST:
            row(f"bundled model, the first {count} by words", one.measure(one.vectors, one.asked, count))
        measure_static(one, [pieces_of(text) for text in texts], vectors)


if __name__ == "__main__":
    main()
