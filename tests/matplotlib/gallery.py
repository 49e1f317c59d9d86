"""Draws matplotlib's gallery with Tracebook's backend and with Agg, and measures the difference.

Run it with a Python that has matplotlib, on the folder `galleries` of matplotlib's source archive:

    pip download --no-binary :all: --no-deps matplotlib
    cargo build --release -p plot --example render_figures
    python tests/matplotlib/gallery.py GALLERIES OUT --render target/release/examples/render_figures

Each example runs in a process of its own, with a time limit. Its figures are written as display lists and as Agg's PNG
of the same canvas; then `render_figures` draws the lists. `OUT/sheet-N.png` shows both side by side. It prints the
counts of figures and of those without a display list, and the differences: the mean absolute difference from 0 to 255,
and a block score, where 1 is equal.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BACKEND = HERE.parent.parent / "engine/python/src/matplotlib_backend.py"
EXAMPLE_SECONDS = 60
# Maximum figures of one example that are compared.
MAX_FIGURES = 2
# Examples that need a window, the network or other programs.
SKIPPED = ("user_interfaces", "event_handling", "animation", "usetex", "widgets", "embedding", "mplcvd", "web_app",
           "pgf_", "tex_demo", "multipage_pdf", "pong", "font_file", "xkcd")


def draw_example(script, stem):
    """Runs a script in a process of its own, and writes the figures that it shows."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("tracebook_backend", BACKEND)
    backend = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(backend)
    count = 0

    def shown(data, about):
        pass

    backend.install(shown, backend)
    import matplotlib

    matplotlib.rcParams["figure.max_open_warning"] = 0
    import matplotlib.pyplot as plt
    from time import perf_counter

    os.chdir(Path(script).parent)
    # Examples show their figures themselves; keep them open until the end.
    plt.show = lambda *args, **options: None
    code = compile(Path(script).read_text(encoding="utf-8"), script, "exec")
    exec(code, {"__name__": "__main__", "__file__": script})
    facts = []
    for number in plt.get_fignums()[:MAX_FIGURES]:
        figure = plt.figure(number)
        # Some layouts settle only after the first drawing.
        figure.canvas.draw()
        begun = perf_counter()
        text = backend.display_list(figure, tight=False)
        listed = perf_counter() - begun
        begun = perf_counter()
        picture = backend.picture(figure, tight=False)
        facts.append({"list_ms": listed * 1e3, "agg_ms": (perf_counter() - begun) * 1e3,
                      "bytes": len(text) if text else None})
        name = f"{stem}-{number}"
        Path(name + ".agg.png").write_bytes(picture)
        if text is not None:
            Path(name + ".json").write_text(text, encoding="utf-8")
        count += 1
    Path(stem + ".facts").write_text(json.dumps(facts))


def compare(ours, theirs):
    """Returns the mean absolute difference (0 to 255) and the mean block score: similarity of light and structure."""
    import numpy as np

    rows, columns = min(ours.shape[0], theirs.shape[0]), min(ours.shape[1], theirs.shape[1])
    a, b = ours[:rows, :columns].astype(float), theirs[:rows, :columns].astype(float)
    difference = np.abs(a - b).mean()
    side = 8
    a, b = (x[: rows // side * side, : columns // side * side].mean(axis=2) for x in (a, b))

    def blocks(x):
        x = x.reshape(x.shape[0] // side, side, x.shape[1] // side, side)
        return x.swapaxes(1, 2).reshape(-1, side * side)

    a, b = blocks(a), blocks(b)
    mean_a, mean_b = a.mean(axis=1), b.mean(axis=1)
    both = ((a - mean_a[:, None]) * (b - mean_b[:, None])).mean(axis=1)
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    score = (2 * mean_a * mean_b + c1) * (2 * both + c2)
    score /= (mean_a**2 + mean_b**2 + c1) * (a.var(axis=1) + b.var(axis=1) + c2)
    # Blocks of empty paper aren't compared.
    seen = (a.std(axis=1) > 1) | (b.std(axis=1) > 1)
    return difference, float(score[seen].mean()) if seen.any() else 1.0


def sheets(pairs, out, per_sheet=40, wide=300, high=240):
    """Writes images of pairs: ours at the left, Agg's at the right, with their scores."""
    from PIL import Image, ImageDraw

    for sheet in range(0, len(pairs), per_sheet):
        part = pairs[sheet : sheet + per_sheet]
        columns = 4
        canvas = Image.new("RGB", (columns * (2 * wide + 20), -(-len(part) // columns) * (high + 24)), "#888888")
        pen = ImageDraw.Draw(canvas)
        for at, (name, ours, theirs, difference, score) in enumerate(part):
            x, y = at % columns * (2 * wide + 20), at // columns * (high + 24)
            for image, left in ((ours, x), (theirs, x + wide + 4)):
                image = image.convert("RGB")
                image.thumbnail((wide, high))
                canvas.paste(image, (left, y + 18))
            pen.text((x + 2, y + 3), f"{name[-wide // 5:]}  {difference:.2f}  {score:.3f}", fill="white")
        canvas.save(out / f"sheet-{sheet // per_sheet + 1}.png")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("galleries", type=Path)
    arguments.add_argument("out", type=Path)
    arguments.add_argument("--render", type=Path)
    arguments.add_argument("--only", default="", help="run examples whose path has this in it")
    arguments.add_argument("--limit", type=int, default=10_000)
    arguments.add_argument("--parts", default="plot_types,examples")
    arguments.add_argument("--scale", default="1")
    asked = arguments.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    out = asked.out.resolve()
    scripts = [script for part in asked.parts.split(",") for script in sorted((asked.galleries / part).rglob("*.py"))]
    scripts = [script for script in scripts if asked.only in str(script)]
    scripts = [script for script in scripts if not any(no in str(script) for no in SKIPPED)]
    failed = []
    for script in scripts[: asked.limit]:
        stem = str(out / "-".join(script.relative_to(asked.galleries).with_suffix("").parts))
        if Path(stem + ".facts").exists():
            continue
        try:
            command = [sys.executable, __file__, "--draw", str(script.resolve()), stem]
            done = subprocess.run(command, capture_output=True, timeout=EXAMPLE_SECONDS, text=True, errors="replace")
            if done.returncode:
                failed.append((script.name, done.stderr.strip().splitlines()[-1:]))
        except subprocess.TimeoutExpired:
            failed.append((script.name, ["too slow"]))
    lists = sorted(out.glob("*.json"))
    if asked.render:
        command = [str(asked.render), "--scale", asked.scale, *map(str, lists)]
        drawn = subprocess.run(command, capture_output=True, text=True)
        (out / "drawn.txt").write_text(drawn.stdout)
    import numpy as np
    from PIL import Image

    pairs, missing = [], []
    for theirs in sorted(out.glob("*.agg.png")):
        ours = out / (theirs.name.removesuffix(".agg.png") + ".png")
        if not ours.exists():
            missing.append(ours.stem)
            continue
        a, b = Image.open(ours).convert("RGB"), Image.open(theirs).convert("RGBA")
        paper = Image.new("RGBA", b.size, "white")
        paper.alpha_composite(b)
        b = paper.convert("RGB")
        pairs.append((ours.stem, a, b, *compare(np.asarray(a), np.asarray(b))))
    sheets(sorted(pairs, key=lambda pair: pair[4]), out)
    scores, differences = (np.array([pair[at] for pair in pairs]) for at in (4, 3))
    print(f"{len(scripts)} examples, {len(failed)} failed to run")
    print(f"{len(pairs)} figures compared, {len(missing)} without a display list")
    if len(pairs):
        print(f"mean absolute difference (0 to 255): mean {differences.mean():.2f}, "
              f"median {np.median(differences):.2f}, worst {differences.max():.2f}")
        print(f"score of blocks (1 is equal): mean {scores.mean():.3f}, median {np.median(scores):.3f}, "
              f"worst {scores.min():.3f}")
    for name, why in failed:
        print(f"  did not run: {name}: {' '.join(why)[:150]}")
    for name in missing:
        print(f"  no display list: {name}")
    for name, _, _, difference, score in sorted(pairs, key=lambda pair: pair[4])[:25]:
        print(f"  {score:.3f} {difference:6.2f} {name}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--draw"]:
        draw_example(*sys.argv[2:4])
    else:
        main()
