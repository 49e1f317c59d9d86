"""Ranks collections as the program does and writes the candidates for train.py, without a build of the program.

    python emulate.py MODEL.onnx VOCAB.txt STOP_WORDS COLLECTIONS VECTORS candidates.jsonl

Needs numpy, onnxruntime and PyStemmer. STOP_WORDS is src/nltk/english of the crate stop-words. The vectors of each
collection are kept in the folder VECTORS for the next run. It differs from the program in small things: a document is
one passage (the program takes code out of prose), all texts are taken for English, and the stemmer is Snowball's own.
`bench retrieval --all DIR --dump FILE` writes the same lines from the program itself.
"""

import collections
import json
import math
import os
import re
import sys
import unicodedata

import numpy as np
import onnxruntime
import Stemmer

MODEL, VOCAB, STOP_WORDS, FOLDER, VECTORS, OUT = sys.argv[1:7]
K1, B, EXACT, TITLE, STOP_WORD, PAIR, POOL = 1.5, 0.75, 0.1, 0.3, 0.3, 0.5, 100
WINDOW_CHARS, OVERLAP_CHARS = 1_000, 200

vocabulary = {word.rstrip("\n"): number for number, word in enumerate(open(VOCAB))}
stemmer = Stemmer.Stemmer("english")
stop_words = {word.strip().replace("'", "") for word in open(STOP_WORDS)}
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(MODEL, options)


def word_pieces(word):
    out, start = [], 0
    while start < len(word):
        end = next((end for end in range(len(word), start, -1)
                    if ("##" if start else "") + word[start:end] in vocabulary), None)
        if end is None or len(word) > 100:
            return [vocabulary["[UNK]"]]
        out.append(vocabulary[("##" if start else "") + word[start:end]])
        start = end
    return out


def embed(text):
    text = unicodedata.normalize("NFD", text.replace("\ufffd", "")).lower()
    text = "".join(c for c in text if unicodedata.category(c) != "Mn")
    ids = [vocabulary["[CLS]"]]
    for word in re.findall(r"\w+|[^\w\s]", text.replace("_", " _ ")):
        if len(ids) >= 256:
            break
        ids += word_pieces(word)
    ids = np.array([ids[:255] + [vocabulary["[SEP]"]]])
    given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    types = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
    feed = {one.name: given[one.name].astype(types[one.type]) for one in session.get_inputs()}
    mean = session.run(None, feed)[0][0].mean(0)
    return mean / np.linalg.norm(mean)


def windows(text):
    start = 0
    while any(c.isalpha() for c in text):
        end = start + WINDOW_CHARS
        if len(text) - start <= WINDOW_CHARS + OVERLAP_CHARS:
            end = len(text)
        else:
            space = max(text[start:end].rfind(" "), text[start:end].rfind("\n"))
            end = start + space if space > WINDOW_CHARS // 2 else end
        yield text[start:end]
        if end == len(text):
            return
        space = re.search(r"\s", text[end - OVERLAP_CHARS:end])
        start = max(end - OVERLAP_CHARS + (space.start() if space else 0), start + 1)


def words(text):
    """Words in lower case; identifiers whole and in parts."""
    out = []
    for word in re.findall(r"\w+(?:['’](?=[^\W\d])\w+)*", text):
        word = re.sub(r"['’]s$", "", word)
        parts = []
        if "_" in word or re.search(r"[a-z][A-Z]|[A-Z][A-Z][a-z]", word):
            parts = re.findall(r"[A-Z]+(?=[A-Z][a-z])|[^\W_A-Z]+|[A-Z]+[^\W_A-Z]*", word)
        whole = re.sub(r"['’]", "", word).lower()
        out += [whole] if whole.strip("_") else []
        out += [part.lower() for part in parts] if len(parts) > 1 else []
    return out


def stem(word):
    return stemmer.stemWord(word) if len(word) > 2 and word.isascii() and word.isalpha() else word


def idf(count, total):
    return math.log(1 + (total - count + 0.5) / (count + 0.5))


class Field:
    def __init__(self, documents):
        self.lengths = np.array([len(document) for document in documents], float)
        self.average = max(self.lengths.mean(), 1)
        self.postings = collections.defaultdict(list)
        for number, document in enumerate(documents):
            for word, count in collections.Counter(document).items():
                self.postings[word].append((number, count))

    def count(self, word):
        return len(self.postings.get(word, ()))

    def add(self, word, weight, scores):
        if word in self.postings:
            places, counts = np.array(self.postings[word]).T
            norm = K1 * (1 - B + B * self.lengths[places] / self.average)
            scores[places] += weight * (K1 + 1) * counts / (counts + norm)


def read(name, part):
    return [json.loads(line) for line in open(f"{FOLDER}/{name}/{part}.jsonl")]


def vectors_of(name):
    """Returns the document of each window, the windows' vectors, and those of the queries."""
    path = f"{VECTORS}/{name}.npz"
    if not os.path.exists(path):
        owners, vectors = [], []
        for number, one in enumerate(read(name, "corpus")):
            for window in windows(f"# {one['title'].strip()}\n\n{one['text']}".strip()):
                above = "" if one["title"] in window[:400] else one["title"] + "\n"
                owners.append(number)
                vectors.append(embed(above + window))
        asked = [embed(query["text"]) for query in read(name, "queries")]
        os.makedirs(VECTORS, exist_ok=True)
        np.savez(path, owners=owners, vecs=np.array(vectors, np.float32), q=np.array(asked, np.float32))
    kept = np.load(path)
    return kept["owners"], kept["vecs"], kept["q"]


def pair_counts(tokens, queries):
    """Returns how often two words that follow each other in a query do so in each document."""
    wanted = {pair for query in queries for pair in zip(query, query[1:])}
    counts = collections.defaultdict(collections.Counter)
    for number, document in enumerate(tokens):
        for pair in zip(document, document[1:]):
            if pair in wanted:
                counts[pair][number] += 1
    return counts


def measure(name, out):
    wanted = collections.defaultdict(dict)
    for line in open(f"{FOLDER}/{name}/qrels.tsv"):
        query, document, grade = line.rstrip("\n").split("\t")[:3]
        if grade.isdigit() and int(grade) > 0:
            wanted[query][document] = int(grade)
    corpus, queries = read(name, "corpus"), read(name, "queries")
    texts = [f"# {one['title'].strip()}\n\n{one['text']}".strip() for one in corpus]
    tokens = [words(text) for text in texts]
    exact, stems = Field(tokens), Field([[stem(word) for word in document] for document in tokens])
    titles = Field([words(one["title"]) for one in corpus])
    owners, vectors, asked = vectors_of(name)
    total, counts = len(corpus), pair_counts(tokens, [words(query["text"]) for query in queries])
    for query, vector in zip(queries, asked):
        if query["_id"] not in wanted:
            continue
        scores, rarity, terms = np.zeros(total), 0.0, list(dict.fromkeys(words(query["text"])))
        alone = all(word in stop_words for word in terms)
        for word in terms:
            share = STOP_WORD if word in stop_words and not alone else 1.0
            of_stem, of_word = stems.count(stem(word)), exact.count(word)
            rarity += share * idf(of_stem, total)
            stems.add(stem(word), share * idf(of_stem, total), scores)
            exact.add(word, share * EXACT * idf(of_word, total), scores)
            titles.add(word, share * TITLE * idf(max(of_stem, of_word), total), scores)
        asked_words = words(query["text"])
        for pair in {(a, b) for a, b in zip(asked_words, asked_words[1:]) if a != b}:
            gain = PAIR * idf(min(map(exact.count, pair)), total)
            for number, count in counts[pair].items():
                scores[number] += gain * count / (count + 1.5)
        near = np.full(total, -1.0)
        np.maximum.at(near, owners, vectors @ vector)
        spread = lambda all: np.sort(all)[-1] - np.sort(all)[-min(POOL, total)]
        signals = [1, math.log(len(terms) + 1) - 2, math.log((spread(scores) + 1e-3) / math.sqrt(rarity + 1)),
                   math.log(spread(near) + 1e-3) + 1.5]
        order = lambda all, count: set(np.argsort(-all, kind="stable")[:count].tolist())
        pool = sorted(order(scores, POOL) | order(near, 2 * POOL))
        candidates = [[corpus[n]["_id"], round(float(scores[n]), 4), round(float(near[n]), 5)] for n in pool]
        line = {"collection": name, "query": query["_id"], "signals": signals, "candidates": candidates,
                "wanted": wanted[query["_id"]]}
        out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    with open(OUT, "w") as out:
        for name in sorted(os.listdir(FOLDER)):
            measure(name, out)
            print(name, flush=True)
