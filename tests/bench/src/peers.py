# Compares Tracebook's search with SQLite FTS5 over the same notes, and with brute-force cosine in numpy over as many
# vectors.
import json, os, sqlite3, sys, tempfile, time

asked = json.load(open(sys.argv[1]))
figures = []


def spread(name, took):
    took.sort()
    for percent in (50, 95, 99):
        rank = max(1, -(-len(took) * percent // 100))
        figures.append([f"{name}, p{percent}", took[rank - 1] * 1e3, "ms"])


notes = []
for folder, _, files in sorted(os.walk(asked["folder"])):
    for file in sorted(files):
        with open(os.path.join(folder, file), encoding="utf-8") as text:
            notes.append((file, text.read()))

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "fts.db")
    base = sqlite3.connect(path)
    try:
        base.execute("create virtual table notes using fts5(title, body, tokenize='porter unicode61')")
    except sqlite3.OperationalError as error:
        figures.append(["SQLite FTS5", None, str(error)])
    else:
        begun = time.perf_counter()
        with base:
            base.executemany("insert into notes values (?, ?)", notes)
        figures.append(["SQLite FTS5, index", time.perf_counter() - begun, "s"])
        figures.append(["SQLite FTS5, on disk", os.path.getsize(path) / 1e6, "MB"])

        def ask(name, queries):
            took = []
            for query in queries:
                begun = time.perf_counter()
                rows = base.execute(
                    "select rowid, bm25(notes), snippet(notes, 1, '', '', '', 20) from notes where notes match ?"
                    " order by bm25(notes) limit ?",
                    (query, asked["limit"]),
                ).fetchall()
                took.append(time.perf_counter() - begun)
            spread(f"SQLite FTS5, {name}", took)

        quoted = lambda text: " OR ".join('"%s"' % word for word in text.split())
        ask("word", [quoted(text) for text in asked["word"]])
        ask("three words", [quoted(text) for text in asked["three"]])
        ask("phrase", asked["phrase"])
        ask("as you type", ['"%s"*' % text for text in asked["typed"]])
    base.close()

try:
    import numpy
except ImportError:
    figures.append(["numpy, cosine", None, "numpy is not installed; TRACEBOOK_PYTHON names another Python"])
else:
    chance = numpy.random.default_rng(1)
    vectors = chance.standard_normal((asked["count"], asked["dimensions"]), dtype=numpy.float32)
    vectors /= numpy.linalg.norm(vectors, axis=1, keepdims=True)
    took = []
    for _ in range(50):
        query = vectors[chance.integers(len(vectors))]
        begun = time.perf_counter()
        near = vectors @ query
        best = numpy.argpartition(-near, min(asked["limit"], len(near) - 1))[: asked["limit"]]
        best[numpy.argsort(-near[best])]
        took.append(time.perf_counter() - begun)
    spread("numpy, cosine", took)

print(json.dumps(figures))
