"""Builds retrieval collections of different kinds from public repositories and packages.

    python build_collections.py MIRRORS BFCL_WHEEL OUT [FOLDER ...]

MIRRORS holds bare clones named owner+name/repo (or owner+name) of the repositories below; BFCL_WHEEL is the wheel of
PyPI's bfcl-eval; scikit-learn and scipy must be installed (their functions are one collection). FOLDERs are
collections that exist already. Each collection is a folder with corpus.jsonl, queries.jsonl and qrels.tsv. Sampling is
seeded: the same input gives the same collections. OUT/trained holds those that weights are trained on, OUT/unseen those
that only measure, most of them in other languages than English.
"""

import ast
import collections
import csv
import glob
import importlib.util
import io
import json
import os
import random
import re
import subprocess
import sys
import zipfile

MIRRORS, WHEEL, OUT = sys.argv[1:4]
MAX_QUERIES = 150
# Embedding is the slow part of tuning. Answers are kept, other documents sampled.
MAX_DOCUMENTS = 1_000
MAX_TEXT_CHARS = 1_200


def git(name, *args):
    folder = f"{MIRRORS}/{name}"
    folder = f"{folder}/repo" if os.path.isdir(f"{folder}/repo") else folder
    return subprocess.run(["git", f"--git-dir={folder}", *args], capture_output=True, check=True).stdout


def files(name, pattern):
    """Yields path and text of the files whose path matches."""
    listed = git(name, "ls-tree", "-r", "-z", "--name-only", "HEAD").decode().split("\0")
    paths = [path for path in listed if re.search(pattern, path)]
    folder = f"{MIRRORS}/{name}"
    folder = f"{folder}/repo" if os.path.isdir(f"{folder}/repo") else folder
    asked = "".join(f"HEAD:{p}\n" for p in paths if "\n" not in p).encode()
    out = io.BytesIO(subprocess.run(["git", f"--git-dir={folder}", "cat-file", "--batch"], input=asked,
                                    capture_output=True, check=True).stdout)
    for path in paths:
        head = out.readline().split()
        if len(head) < 3 or head[-1] == b"missing":
            continue
        body = out.read(int(head[2]))
        out.read(1)
        yield path, body.decode("utf-8", "replace")


def write(name, corpus, queries, qrels, part="trained"):
    """corpus: id -> (title, text); queries: id -> text; qrels: (query, document, grade)."""
    chance = random.Random(name)
    ids = sorted({q for q, _, _ in qrels if q in queries})
    kept = set(chance.sample(ids, min(MAX_QUERIES, len(ids))))
    answers = {d for q, d, _ in qrels if q in kept and d in corpus}
    others = sorted(corpus.keys() - answers)
    documents = answers | set(chance.sample(others, max(0, min(MAX_DOCUMENTS - len(answers), len(others)))))
    corpus = {id: (title, text[:MAX_TEXT_CHARS]) for id, (title, text) in corpus.items() if id in documents}
    folder = f"{OUT}/{part}/{name}"
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/corpus.jsonl", "w") as f:
        for id, (title, text) in corpus.items():
            f.write(json.dumps({"_id": id, "title": title, "text": text}) + "\n")
    with open(f"{folder}/queries.jsonl", "w") as f:
        for id in sorted(kept):
            f.write(json.dumps({"_id": id, "text": queries[id]}) + "\n")
    with open(f"{folder}/qrels.tsv", "w") as f:
        f.write("query-id\tcorpus-id\tscore\n")
        for q, d, grade in qrels:
            if q in kept and d in corpus:
                f.write(f"{q}\t{d}\t{grade}\n")
    print(f"{name}: {len(corpus)} documents, {len(kept)} queries", flush=True)


def bfcl():
    """Tools: the user's request finds the function that answers it."""
    wheel = zipfile.ZipFile(WHEEL)
    corpus, queries, qrels, known = {}, {}, [], {}
    for part in ["live_multiple", "live_simple", "multiple", "simple_python"]:
        read = lambda folder: [json.loads(line) for line in
                               wheel.read(f"bfcl_eval/data/{folder}BFCL_v4_{part}.json").decode().splitlines()]
        answers = {one["id"]: one["ground_truth"] for one in read("possible_answer/")}
        for one in read(""):
            for function in one["function"]:
                names = list(function["parameters"].get("properties", {}).items())
                params = "\n".join(f"{name}: {what.get('description', '')}" for name, what in names)
                text = function.get("description", "") + "\n" + params
                known.setdefault((function["name"], text), f"f{len(known)}")
                corpus[known[function["name"], text]] = (function["name"], text)
            truth = answers.get(one["id"])
            if not truth:
                continue
            queries[one["id"]] = one["question"][0][-1]["content"]
            called = set(truth[0])
            for id, (name, _) in corpus.items():
                if name in called:
                    qrels.append((one["id"], id, 1))
    # A request of several hundred words is a prompt, not a question.
    queries = {id: text for id, text in queries.items() if len(text) < 600}
    write("bfcl", corpus, queries, qrels)


def tldr(language=""):
    """Commands: what an example does finds the page, from which this example was taken out."""
    chance = random.Random(1)
    pages = sorted(files("tldr-pages+tldr", rf"^pages{language and '.' + language}/(common|linux)/.*\.md$"))
    pages = chance.sample(pages, min(2500, len(pages)))
    corpus, queries, qrels = {}, {}, []
    for path, text in pages:
        name = text.splitlines()[0].strip("# ")
        about = " ".join(l[2:] for l in text.splitlines() if l.startswith("> ") and "<http" not in l)
        examples = re.findall(r"^- (.+?):?\n\n`(.+)`$", text, re.M)
        if len(examples) < 3:
            corpus[path] = (name, about + "\n" + "\n".join(f"{a}: {b}" for a, b in examples))
            continue
        out = chance.randrange(len(examples))
        rest = "\n".join(f"{a}: {b}" for n, (a, b) in enumerate(examples) if n != out)
        corpus[path] = (name, about + "\n" + rest)
        query = re.sub(r"[\[\]`]", "", examples[out][0])
        if len(query.split()) >= 5:
            queries[path] = query
            qrels.append((path, path, 1))
    write(f"tldr-{language}" if language else "tldr", corpus, queries, qrels, "unseen" if language else "trained")


def covid():
    """A FAQ: questions of health agencies and their answers, among all answers."""
    table = git("deepset-ai+COVID-QA", "show", "HEAD:data/faqs/faq_covidbert.csv").decode()
    rows = list(csv.DictReader(io.StringIO(table)))
    corpus, queries, qrels, known = {}, {}, [], {}
    for number, row in enumerate(rows):
        answer = row["answer"].strip()
        if row["lang"] != "en" or len(answer) < 30:
            continue
        id = known.setdefault(answer, f"a{number}")
        corpus[id] = ("", answer)
        queries[f"q{number}"] = row["question"].strip()
        qrels.append((f"q{number}", id, 1))
    write("covid-faq", corpus, queries, qrels)


def cosqa():
    """Web queries of programmers, and Python functions that answer them."""
    base = "Text-Code/NL-code-search-WebQuery"
    dev = json.loads(git("microsoft+CodeXGLUE", "show", f"HEAD:{base}/CoSQA/cosqa-dev.json"))
    test = json.loads(git("microsoft+CodeXGLUE", "show", f"HEAD:{base}/data/test_webquery.json"))
    corpus, queries, qrels, known = {}, {}, [], {}
    for one in dev + test:
        id = known.setdefault(one["code"], f"c{len(known)}")
        corpus[id] = ("", re.sub(r" {4,}", "\n    ", one["code"]))
        if one.get("label") == 1:
            queries[f"q{one['idx']}"] = one["doc"]
            qrels.append((f"q{one['idx']}", id, 1))
    write("cosqa", corpus, queries, qrels)


def docstrings():
    """Code: the first line of a function's documentation finds its source, from which the documentation was removed."""
    chance = random.Random(2)
    corpus, queries, qrels = {}, {}, []
    for package in ["sklearn", "scipy"]:
        root = os.path.dirname(importlib.util.find_spec(package).origin)
        for path in sorted(glob.glob(f"{root}/**/*.py", recursive=True)):
            if "/tests/" in path or "/externals/" in path:
                continue
            source = open(path).read()
            lines = source.splitlines()
            for node in ast.walk(ast.parse(source)):
                doc = ast.get_docstring(node) if isinstance(node, ast.FunctionDef) else None
                if not doc or node.name.startswith("__"):
                    continue
                first = " ".join(doc.split("\n\n")[0].split())
                said = node.body[0]
                text = "\n".join(lines[node.lineno - 1:said.lineno - 1] + lines[said.end_lineno:node.end_lineno])
                if 4 <= len(first.split()) <= 30 and 150 < len(text) < 4000:
                    id = f"{path[len(root) - len(package):]}:{node.lineno}"
                    corpus[id] = (node.name, text)
                    queries[id] = first
                    qrels.append((id, id, 1))
    kept = chance.sample(sorted(corpus), 2500)
    often = collections.Counter(queries[id] for id in kept)
    qrels = [(id, id, 1) for id in kept if often[queries[id]] == 1]
    write("docstrings", {id: corpus[id] for id in kept}, queries, qrels)


def strip_links(text):
    return re.sub(r"!?\[\[([^\]|#]*)(?:#[^\]|]*)?(?:\|([^\]]*))?\]\]", lambda m: m[2] or m[1], text)


def vault(language="en"):
    """Notes that link: the sentence around a link finds the note that it links to (the help of Obsidian)."""
    corpus, queries, qrels, raw = {}, {}, [], {}
    for path, text in files("obsidianmd+obsidian-help", rf"^{language}/.*\.md$"):
        raw[os.path.basename(path)[:-3]] = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.S)
    corpus = {name: (name, strip_links(text)) for name, text in raw.items() if len(text) > 80}
    for name, text in raw.items():
        for line in text.splitlines():
            for sentence in re.split(r"(?<=[.!?]) ", line):
                links = [m for m in re.finditer(r"(?<!!)\[\[([^\]|#]+)(?:#[^\]|]*)?(?:\|([^\]]*))?\]\]", sentence)]
                targets = {m[1] for m in links if m[1] in corpus and m[1] != name}
                # The link's own words are left out: what remains says why one would go there.
                plain = re.sub(r"\[\[[^\]]*\]\]", lambda m: (re.search(r"\|(.*)\]\]", m[0]) or [0, ""])[1], sentence)
                plain = re.sub(r"<[^>]+>|[#>*`|\[\]]", " ", plain).strip(" -:")
                if targets and len(plain.split()) >= 6:
                    id = f"l{len(queries)}"
                    queries[id] = " ".join(plain.split())
                    qrels += [(id, target, 1) for target in sorted(targets)]
    if language == "en":
        write("vault-links", corpus, queries, qrels)
    else:
        write(f"vault-links-{language}", corpus, queries, qrels, "unseen")


def interviews():
    """Questions and answers of a kind that users write in notebooks: interview preparation."""
    corpus, queries, qrels = {}, {}, []
    for name in ["sudheerj+reactjs-interview-questions", "sudheerj+javascript-interview-questions"]:
        text = git(name, "show", "HEAD:README.md").decode()
        parts = re.split(r"^\d+\. +#{2,4} (.+)$", text, flags=re.M)
        for question, answer in zip(parts[1::2], parts[2::2]):
            answer = re.sub(r"\*\*\[.*Back to Top.*\]\(.*\)\*\*", "", answer, flags=re.I).strip()
            if len(answer) > 60:
                id = f"{name[9:12]}{len(corpus)}"
                corpus[id] = ("", "\n".join(line.strip() for line in answer.splitlines())[:3000])
                queries[id] = question.strip()
                qrels.append((id, id, 1))
    write("interviews", corpus, queries, qrels)


def proposals():
    """Long texts about one subject: the abstract of a proposal finds the proposals that it builds on (Python, Rust)."""
    corpus, queries, qrels, cites = {}, {}, [], []
    for path, text in files("python+peps", r"^peps/pep-\d+\.rst$"):
        number = re.search(r"pep-(\d+)", path)[1]
        title = (re.search(r"^Title: (.+)$", text, re.M) or ["", ""])[1]
        body = text.split("\n\n", 1)[1] if "\n\n" in text else text
        abstract = re.search(r"^(?:Abstract|Introduction)\n=+\n+(.+?)\n\n", body, re.M | re.S)
        rest = body.replace(abstract[0], "") if abstract else body
        corpus[number] = (title, rest[:6000])
        cited = set(re.findall(r":pep:`(?:[^`<]*<)?(\d+)", text)) | set(re.findall(r"\bPEP (\d+)", text))
        head = re.findall(r"^(?:Requires|Replaces|Superseded-By): (.+)$", text, re.M)
        strong = {n for line in head for n in re.findall(r"\d+", line)}
        cites.append((number, abstract and " ".join(abstract[1].split()), {n.zfill(4) for n in cited},
                      {n.zfill(4) for n in strong}))
    for number, abstract, cited, strong in cites:
        cited = {n for n in cited | strong if n in corpus and n not in (number, "0001", "0008", "0000")}
        if abstract and 20 <= len(abstract.split()) <= 120 and cited:
            queries[number] = re.sub(r":\w+:`~?([^`<]*)[^`]*`", r"\1", abstract)
            qrels += [(number, n, 2 if n in strong else 1) for n in sorted(cited)]
            # The rest of the proposal itself is about its abstract, too.
            qrels.append((number, number, 2))
    write("proposals", corpus, queries, qrels)


def rfcs():
    """Long documents: the summary of a Rust RFC finds its text, from which the summary was removed."""
    corpus, queries, qrels = {}, {}, []
    for path, text in files("rust-lang+rfcs", r"^text/\d+.*\.md$"):
        summary = re.search(r"^#+ Summary\n(?:\[summary\]: #summary\n)?\n*(.+?)(?=\n\n|\n#)", text, re.M | re.S)
        if not summary or not 8 <= len(summary[1].split()) <= 120:
            continue
        rest = text[summary.end():]
        corpus[path] = ("", rest[:6000])
        queries[path] = " ".join(summary[1].split())
        qrels.append((path, path, 1))
    write("rfcs", corpus, queries, qrels)


def sections():
    """Documentation: a heading finds the section below it (the Rust book, the Python developer's guide)."""
    corpus, queries, qrels = {}, {}, []
    for path, text in files("rust-lang+book", r"^src/.*\.md$"):
        parts = re.split(r"^#{1,4} (.+)$", text, flags=re.M)
        for heading, body in zip(parts[1::2], parts[2::2]):
            body = re.sub(r"\{\{#.*?\}\}|<[^>]+>", "", body).strip()
            if len(body) > 200:
                id = f"{path}#{len(corpus)}"
                corpus[id] = ("", body[:4000])
                if len(heading.split()) >= 3:
                    queries[id] = heading.replace("`", "")
                    qrels.append((id, id, 1))
    for path, text in files("python+devguide", r"\.rst$"):
        parts = re.split(r"^([^\n=~\-.]{8,80})\n[=~\-^*]{5,}$", text, flags=re.M)
        for heading, body in zip(parts[1::2], parts[2::2]):
            if len(body.strip()) > 200:
                id = f"{path}#{len(corpus)}"
                corpus[id] = ("", body.strip()[:4000])
                if len(heading.split()) >= 3:
                    queries[id] = heading
                    qrels.append((id, id, 1))
    write("sections", corpus, queries, qrels)


def meetings():
    """Meetings: a question finds the turns that answer it, in stretches of four, among all meetings of the set."""
    corpus, queries, qrels = {}, {}, []
    for path, text in files("Yale-LILY+QMSum", r"^data/ALL/test/.*\.json$"):
        meeting, name = json.loads(text), os.path.basename(path)[:-5]
        turns = meeting["meeting_transcripts"]
        for start in range(0, len(turns), 4):
            said = "\n".join(f"{t['speaker']}: {t['content']}" for t in turns[start:start + 4])
            if len(said) > 200:
                corpus[f"{name}.{start // 4}"] = ("", said[:3000])
        for number, one in enumerate(meeting["specific_query_list"]):
            id, spans = f"{name}?{number}", one["relevant_text_span"]
            wanted = {f"{name}.{n // 4}" for a, b in spans for n in range(int(a), int(b) + 1)}
            if len(wanted) <= 12:
                queries[id] = one["query"]
                qrels += [(id, w, 1) for w in sorted(wanted & corpus.keys())]
    write("meetings", corpus, queries, qrels)


def given():
    """Collections that are there already, in the same form (SciFact of BEIR)."""
    for folder in sys.argv[4:]:
        read = lambda name: [json.loads(line) for line in open(f"{folder}/{name}.jsonl")]
        rows = [line.split("\t") for line in open(f"{folder}/qrels.tsv")]
        qrels = [(q, d, int(grade)) for q, d, grade in rows if grade.strip().isdigit() and int(grade) > 0]
        corpus = {one["_id"]: (one["title"], one["text"]) for one in read("corpus")}
        name, queries = os.path.basename(folder), {one["_id"]: one["text"] for one in read("queries")}
        write(name, corpus, queries, qrels, "trained" if name == "scifact" else "unseen")


def xquad():
    """Questions about paragraphs of an encyclopedia, the same ones in each language."""
    for language in ["ar", "de", "el", "en", "es", "hi", "ro", "ru", "tr", "zh"]:
        corpus, queries, qrels = {}, {}, []
        text = git("google-deepmind+xquad", "show", f"HEAD:xquad.{language}.json").decode()
        for article in json.loads(text)["data"]:
            for paragraph in article["paragraphs"]:
                id = f"p{len(corpus)}"
                corpus[id] = ("", paragraph["context"])
                for one in paragraph["qas"]:
                    queries[one["id"]] = one["question"]
                    qrels.append((one["id"], id, 1))
        write(f"xquad-{language}", corpus, queries, qrels, "unseen")


def commands():
    """Short texts: a sentence about a command line finds it among command lines (NL2Bash)."""
    said = git("TellinaTool+nl2bash", "show", "HEAD:data/bash/all.nl").decode().splitlines()
    lines = git("TellinaTool+nl2bash", "show", "HEAD:data/bash/all.cm").decode().splitlines()
    corpus, queries, qrels, known = {}, {}, [], {}
    for number, (sentence, line) in enumerate(zip(said, lines)):
        id = known.setdefault(line, f"c{number}")
        corpus[id] = ("", line)
        queries[f"q{number}"] = sentence
        qrels.append((f"q{number}", id, 1))
    write("commands", corpus, queries, qrels, "unseen")


for build in [given, bfcl, tldr, covid, cosqa, docstrings, vault, interviews, proposals, rfcs, sections, meetings]:
    build()
for language in ["de", "es", "fr", "it", "nl", "pl", "pt_BR"]:
    tldr(language)
for language in ["cs", "es", "fr", "hu", "pt"]:
    vault(language)
xquad()
commands()
