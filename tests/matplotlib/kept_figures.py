"""Creates tests/data/matplotlib: display lists as the backend writes them, each with Agg's PNG of the same canvas.

Run `python tests/matplotlib/kept_figures.py GALLERIES` with matplotlib's folder `galleries` (see gallery.py). The test
`display_lists::` draws the lists and compares them with the images.
"""

import sys
from pathlib import Path

import gallery

KEPT = ["arrays/imshow", "arrays/pcolormesh", "arrays/quiver", "arrays/barbs", "basic/bar", "basic/scatter_plot",
        "basic/stem", "stats/boxplot_plot", "stats/hexbin", "stats/pie", "stats/violin", "unstructured/tricontourf",
        "3D/scatter3d_simple"]
WORDS = """
import datetime
import matplotlib.pyplot as plt
import numpy as np

figure, ((first, second), (third, fourth)) = plt.subplots(2, 2, figsize=(4.8, 3.6), layout="constrained")
x = np.linspace(0.1, 10, 40)
first.plot(x, np.exp(x), "C1--", label=r"$e^x$")
first.set_yscale("log")
first.set_title(r"$\\\\frac{a}{b} + \\\\sqrt{x_1}$")
first.legend()
first.grid()
second.bar(["a", "b"], [3, 2], hatch="//", edgecolor="k", color=["C2", "#1f77b480"])
second.tick_params(axis="x", rotation=30)
third.plot([datetime.date(2026, 1, day) for day in (1, 10, 20)], [1, 3, 2], "o-.", markerfacecolor="w")
third.tick_params(axis="x", labelsize=6)
fourth.pcolormesh([[0, 1], [0.2, 1.2]], [[0, 0.1], [1, 1]], [[1, 2], [3, 4]], shading="gouraud")
image = fourth.imshow(np.arange(16).reshape(4, 4), extent=(0, 1, 0, 1), alpha=0.5)
image.set_clip_path(plt.Circle((0.6, 0.5), 0.4, transform=fourth.transData))
"""


def main():
    galleries, out = Path(sys.argv[1]).resolve(), gallery.HERE.parent / "data/matplotlib"
    out.mkdir(parents=True, exist_ok=True)
    words = out / "words.py"
    words.write_text(WORDS.replace("\\\\", "\\"))
    for script in [words, *(galleries / "plot_types" / f"{name}.py" for name in KEPT)]:
        gallery.draw_example(str(script), str(out / script.stem))
        gallery_figure = out / f"{script.stem}-1"
        Path(f"{gallery_figure}.json").rename(out / f"{script.stem}.json")
        Path(f"{gallery_figure}.agg.png").rename(out / f"{script.stem}.png")
        (out / f"{script.stem}.facts").unlink()
        import matplotlib.pyplot as plt

        plt.close("all")
        plt.rcdefaults()
    words.unlink()


if __name__ == "__main__":
    main()
