# nDCG@10 of SQLite FTS5 and of PyPI's bm25s over a folder with corpus.jsonl, queries.jsonl and qrels.tsv, as JSON.
import json
import math
import re
import sqlite3
import sys

folder = sys.argv[1]
corpus = [json.loads(line) for line in open(f"{folder}/corpus.jsonl")]
queries = [json.loads(line) for line in open(f"{folder}/queries.jsonl")]
wanted = {}
for line in open(f"{folder}/qrels.tsv"):
    query, document, grade = line.rstrip("\n").split("\t")[:3]
    if grade.strip().isdigit() and int(grade) > 0:
        wanted.setdefault(query, {})[document] = int(grade)
queries = [query for query in queries if query["_id"] in wanted]


def ndcg(found, wanted):
    gain = lambda grades: sum(grade / math.log2(place + 2) for place, grade in enumerate(grades[:10]))
    return gain([wanted.get(id, 0) for id in found]) / gain(sorted(wanted.values(), reverse=True))


def mean(search):
    return round(sum(ndcg(search(query["text"]), wanted[query["_id"]]) for query in queries) / max(len(queries), 1), 4)


table = sqlite3.connect(":memory:")
table.execute("CREATE VIRTUAL TABLE notes USING fts5(id UNINDEXED, title, text, tokenize = 'porter unicode61')")
table.executemany("INSERT INTO notes VALUES (?, ?, ?)", ((c["_id"], c.get("title", ""), c["text"]) for c in corpus))


def fts5(text):
    words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", text))
    if not words:
        return []
    asked = "SELECT id FROM notes WHERE notes MATCH ? ORDER BY bm25(notes) LIMIT 10"
    return [id for id, in table.execute(asked, (words,))]


result = {"fts5": mean(fts5), "bm25s": None}
try:
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    tokens = lambda texts: bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)
    index = bm25s.BM25()
    index.index(tokens([f"{c.get('title', '')}\n{c['text']}" for c in corpus]), show_progress=False)

    def by_bm25s(text):
        places, _ = index.retrieve(tokens([text]), k=min(10, len(corpus)), show_progress=False)
        return [corpus[place]["_id"] for place in places[0]]

    result["bm25s"] = mean(by_bm25s)
except ImportError as missing:
    print(f"bm25s isn't measured: {missing}", file=sys.stderr)
print(json.dumps(result))
