"""Draws the notes of tests/data/gallery with Tracebook and with matplotlib alone, and measures the difference.

Run it with the Python of an environment that has matplotlib, on a built program:

    TRACEBOOK_KERNELS=~/.cache/tracebook-ci/kernels ~/.cache/tracebook-ci/tutorials-environment/bin/python \
      tests/matplotlib/notes.py ~/.cache/tracebook-ci/target/debug/tracebook OUT [--kernel science] [NOTE…]

`tracebook run --save` writes our pictures. matplotlib's own come from Agg in a process without Tracebook, which runs
the same cells. Both have two pixels to a point. Agg's letters have other widths, and both cut the paper at their
letters: so one picture is first moved by up to `MAX_MOVE` pixels, to where it fits best. `OUT/sheet-1.png` shows both
side by side, ours at the left. It prints the differences of each note, and of all, as `gallery.py` measures them: the
mean and the largest difference (0 to 255), the mean and the smallest score of blocks (1 is equal).

With `--record` it writes what tests/it/kernel/gallery.rs expects: `NAME.json` beside each note, with a row for each
cell: its number of figures, the number of operations of each kind in the display list, and the light of matplotlib's
own picture in `COLUMNS` by `ROWS` blocks, from 0 to 255.
"""

import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import gallery

NOTES = gallery.HERE.parent / "data/gallery"
FIGURE_MIME = "application/vnd.tracebook.figure+json"
# Pixels per point of pictures that `run --save` writes.
SAVED_SCALE = 2
COLUMNS, ROWS = 12, 9
MAX_MOVE = 8


def draw_cells(note, stem):
    """Runs a note's cells with matplotlib alone, and saves each figure as large as ours."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    names = {"__name__": "__main__"}
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", Path(note).read_text(encoding="utf-8"), re.S), 1):
        exec(compile(code, f"cell {number}", "exec"), names)
        for at in plt.get_fignums():
            figure = plt.figure(at)
            figure.savefig(f"{stem}-{number}.agg.png", bbox_inches="tight", dpi=SAVED_SCALE * figure.dpi)
        plt.close("all")


def on_paper(path):
    """Returns an image as RGB on white paper."""
    from PIL import Image

    image = Image.open(path).convert("RGBA")
    paper = Image.new("RGBA", image.size, "white")
    paper.alpha_composite(image)
    return paper.convert("RGB")


def light(image):
    """Returns the mean light of an image's blocks, row by row."""
    import numpy as np

    pixels = np.asarray(image).astype(float).mean(axis=2)
    high, wide = pixels.shape
    rows = [slice(high * at // ROWS, high * (at + 1) // ROWS) for at in range(ROWS)]
    columns = [slice(wide * at // COLUMNS, wide * (at + 1) // COLUMNS) for at in range(COLUMNS)]
    return [pixels[row, column].mean() for row in rows for column in columns]


def fitted(ours, theirs):
    """Moves one of two arrays of pixels to where both are most alike, and returns what both have."""
    import numpy as np

    def moved(down, right):
        rows = min(ours.shape[0], theirs.shape[0]) - MAX_MOVE
        columns = min(ours.shape[1], theirs.shape[1]) - MAX_MOVE
        a = ours[max(down, 0) :, max(right, 0) :][:rows, :columns]
        return a, theirs[max(-down, 0) :, max(-right, 0) :][:rows, :columns]

    def apart(move):
        a, b = moved(*move)
        return np.abs(a[..., 1].astype(np.int16) - b[..., 1]).mean()

    way = range(-MAX_MOVE, MAX_MOVE + 1)
    return moved(*min(((down, right) for down in way for right in way), key=apart))


def run_note(program, kernel, name, out):
    """Runs a note in a workspace of its own. Returns the operations of each cell's figures, by kind."""
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        notes.mkdir()
        shutil.copy(NOTES / f"{name}.md", notes)
        if kernel == "environment":
            (notes / ".venv").symlink_to(sys.prefix)
        command = [str(program), "--workspace", "W"]
        subprocess.run([*command, "open", "notes"], cwd=folder, check=True, capture_output=True)
        saved = Path(folder) / "saved"
        command += ["run", name, "--kernel", kernel, "--json", "--timeout", "0", "--save", str(saved)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{name}: {done.stdout[-2000:]}{done.stderr}")
        drawn = {}
        for line in done.stdout.splitlines():
            row = json.loads(line)
            figure = row.get("data", {}).get(FIGURE_MIME)
            if not figure and "output_type" in row:
                print(f"{name}, cell {row['cell']} gives {str(row)[:200]}")
            if figure:
                operations = json.loads(figure)["display_list"]["ops"]
                drawn[row["cell"]] = dict(sorted(collections.Counter(part["op"] for part in operations).items()))
        for number in drawn:
            shutil.copy(saved / f"cell-{number}-1.png", out / f"{name}-{number}.png")
        return drawn


def measured(name, pairs):
    """Returns a table's row with the differences of these pairs."""
    import numpy as np

    differences, scores = ([pair[at] for pair in pairs] for at in (3, 4))
    return (f"| {name} | {len(pairs)} | {np.mean(differences):.2f} | {max(differences):.2f} | {np.mean(scores):.3f} | "
            f"{min(scores):.3f} |")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("program", type=Path)
    arguments.add_argument("out", type=Path)
    arguments.add_argument("notes", nargs="*", default=[])
    arguments.add_argument("--kernel", default="environment")
    arguments.add_argument("--record", action="store_true")
    asked = arguments.parse_intermixed_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    out, program = asked.out.resolve(), asked.program.resolve()
    import numpy as np
    from PIL import Image

    pairs, worst = [], (0.0, "")
    for name in asked.notes or sorted(path.stem for path in NOTES.glob("*.md") if path.stem != "README"):
        text = (NOTES / f"{name}.md").read_text(encoding="utf-8")
        drawn = run_note(program, asked.kernel, name, out)
        command = [sys.executable, __file__, "--draw", str(NOTES / f"{name}.md"), str(out / name)]
        subprocess.run(command, check=True, env={**os.environ, "MPLBACKEND": "agg"})
        rows, here = [], []
        for number in range(1, text.count("```python") + 1):
            wanted = out / f"{name}-{number}.agg.png"
            if wanted.exists() != (number in drawn):
                sys.exit(f"{name}, cell {number}: only one of both draws a figure")
            if number not in drawn:
                rows.append({"figures": 0})
                continue
            ours, theirs = on_paper(out / f"{name}-{number}.png"), on_paper(wanted)
            lights = light(theirs)
            apart = np.abs(np.array(lights) - light(ours)).mean()
            worst = max(worst, (float(apart), f"{name}-{number}"))
            rows.append({"figures": 1, "operations": drawn[number], "light": [round(part) for part in lights]})
            both = fitted(np.asarray(ours), np.asarray(theirs))
            here.append((f"{name}-{number}", ours, theirs, *gallery.compare(*both)))
        print(measured(f"`{name}`", here), flush=True)
        pairs += here
        recorded = NOTES / f"{name}.json"
        if asked.record:
            lines = ",\n".join(json.dumps(row) for row in rows)
            recorded.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
        for number, (row, known) in enumerate(zip(rows, json.loads(recorded.read_text(encoding="utf-8"))), 1):
            if row.get("operations") != known.get("operations"):
                print(f"{name}, cell {number}: {row.get('operations')} and not {known.get('operations')} as recorded")
    print(measured("all", pairs))
    print(f"largest mean difference of blocks' light: {worst[0]:.2f} in {worst[1]}")
    for name, _, _, difference, score in sorted(pairs, key=lambda pair: pair[4])[:10]:
        print(f"  {score:.3f} {difference:6.2f} {name}")
    gallery.sheets(pairs, out, per_sheet=len(pairs), wide=160, high=124)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--draw"]:
        draw_cells(*sys.argv[2:4])
    else:
        main()
