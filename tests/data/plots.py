# Calls of matplotlib, as notes make them: `# %%` and a name begin each. A cell whose name ends in "!" must be refused,
# with the words behind the name. Their pictures are docs/plots.png (tests/it/kernel/plots.rs makes it).
# %% plot
import matplotlib.pyplot as plt
import numpy as np
x = np.linspace(0, 10, 200)
plt.plot(x, np.sin(x), label="sin")
plt.plot(x, np.cos(x), "--", label="cos")
plt.xlabel("time in s"); plt.ylabel("value"); plt.title("plot"); plt.legend()
# %% format strings
plt.plot([1, 2, 3, 4], [1, 4, 2, 3], "ro--", [1, 2, 3, 4], [2, 3, 3.5, 1], "g^:", [1, 4], [4, 4], "ks-.")
plt.title("format strings")
# %% markers
for at, marker in enumerate(".ov^<>sDdpPhX*+x|_18"):
    plt.plot(at % 5, at // 5, marker=marker, ms=12, ls="none")
plt.margins(0.15); plt.title("markers")
# %% line styles
for at, (ls, lw) in enumerate([("-", 1), ("--", 2), (":", 3), ("-.", 2), ("solid", 5)]):
    plt.plot([0, 1], [at, at + 0.5], ls=ls, lw=lw, label=f"{ls} {lw}")
plt.legend(title="styles", loc="lower right"); plt.title("linestyle, linewidth")
# %% many columns
plt.plot(np.cumsum(np.random.default_rng(1).normal(size=(100, 4)), axis=0), label=list("abcd"))
plt.legend(ncols=2); plt.title("columns of an array")
# %% dates
from datetime import date, timedelta
days = [date(2024, 1, 15) + timedelta(days=7 * at) for at in range(40)]
fig, ax = plt.subplots()
ax.plot(days, np.cumsum(np.random.default_rng(2).normal(size=40)))
fig.autofmt_xdate(); ax.set_title("dates")
# %% categories
plt.plot(["Mon", "Tue", "Wed", "Thu", "Fri"], [3, 5, 2, 6, 4], "o-"); plt.title("words along x")
# %% step
y = [1, 3, 2, 4, 3]
for where, up in (("pre", 0), ("mid", 3), ("post", 6)):
    plt.step(range(5), np.array(y) + up, where=where, label=where)
    plt.plot(range(5), np.array(y) + up, "o", color="gray", alpha=0.4)
plt.legend(); plt.title("step")
# %% stairs
plt.stairs([1, 3, 2, 4], [0, 1, 2, 4, 5], fill=True, alpha=0.5); plt.stairs([2, 1, 3], lw=2, color="k")
plt.title("stairs")
# %% scatter
rng = np.random.default_rng(3)
plt.scatter(rng.normal(size=200), rng.normal(size=200), c=rng.random(200), s=rng.random(200) * 200, alpha=0.6)
plt.colorbar(label="value"); plt.title("scatter, sizes, colours")
# %% scatter groups
for name, middle, marker in (("ash", 0, "o"), ("fir", 2, "^"), ("yew", 4, "s")):
    plt.scatter(rng.normal(middle, 1, 60), rng.normal(middle / 2, 1, 60), marker=marker, edgecolors="w", label=name)
plt.legend(); plt.grid(True, alpha=0.3); plt.title("scatter groups")
# %% bar
plt.bar(["ash", "birch", "cedar", "fir"], [3, 7, 5, 6], yerr=[0.5, 1, 0.4, 0.8], capsize=4)
plt.ylabel("trees"); plt.title("bar, yerr")
# %% bars in groups
place, wide = np.arange(4), 0.38
plt.bar(place - wide / 2, [20, 34, 30, 35], wide, label="men", color="tab:blue")
plt.bar(place + wide / 2, [25, 32, 34, 20], wide, label="women", color="tab:orange")
plt.xticks(place, ["G1", "G2", "G3", "G4"]); plt.legend(); plt.title("grouped bars")
# %% stacked bars
low = np.array([3, 5, 2, 4])
plt.bar(range(4), low, label="a", hatch="//", edgecolor="k")
bars = plt.bar(range(4), [2, 1, 4, 3], bottom=low, label="b", color="gold", edgecolor="k")
plt.bar_label(bars, label_type="center"); plt.legend(loc="upper left"); plt.ylim(0, 9); plt.title("stacked, hatch")
# %% barh
bars = plt.barh(["one", "two", "three", "four"], [3, -2, 5, 4], color=["C0", "C1", "C2", "C3"])
plt.bar_label(bars, padding=3); plt.axvline(0, color="k", lw=0.8); plt.xlim(-3, 6); plt.gca().invert_yaxis()
plt.title("barh, bar_label")
# %% broken bars
fig, ax = plt.subplots()
ax.broken_barh([(110, 30), (150, 10)], (10, 9)); ax.broken_barh([(10, 50), (100, 20), (130, 10)], (20, 9), facecolors="tab:red")
ax.set_yticks([15, 25], labels=["Bill", "Jim"]); ax.grid(True); ax.set_title("broken_barh")
# %% hist
values = rng.normal(100, 15, 5000)
plt.hist(values, bins=40, density=True, alpha=0.7, edgecolor="white")
plt.plot(np.linspace(50, 150, 100), np.exp(-((np.linspace(50, 150, 100) - 100) / 15) ** 2 / 2) / 15 / np.sqrt(2 * np.pi), "r--")
plt.title(r"hist: $\mu=100$, $\sigma=15$")
# %% hists
plt.hist([rng.normal(0, 1, 500), rng.normal(2, 1.5, 500)], bins=15, label=["one", "two"]); plt.legend(); plt.title("two sets")
# %% hist types
plt.hist(rng.normal(0, 1, 800), bins=30, histtype="step", cumulative=True, density=True, label="step")
plt.hist(rng.normal(1, 1, 800), bins=30, histtype="stepfilled", density=True, alpha=0.4, label="filled")
plt.legend(loc="upper left"); plt.title("histtype")
# %% stacked hist
plt.hist([rng.normal(0, 1, 500), rng.normal(1, 1, 400)], bins=20, stacked=True, color=["steelblue", "salmon"]); plt.title("stacked hist")
# %% hist2d
plt.hist2d(rng.normal(size=3000), rng.normal(size=3000), bins=30, cmap="Blues"); plt.colorbar(); plt.title("hist2d")
# %% hexbin
plt.hexbin(rng.normal(size=4000), rng.normal(size=4000), gridsize=20, cmap="inferno"); plt.colorbar(label="counts")
plt.title("hexbin")
# %% fill_between
plt.fill_between(x, np.sin(x) - 0.3, np.sin(x) + 0.3, alpha=0.25, label="band"); plt.plot(x, np.sin(x), label="middle")
plt.legend(loc="lower left"); plt.title("fill_between")
# %% fill where
a, b = np.sin(x), 0.5 * np.cos(x)
plt.plot(x, a, "k", x, b, "k")
plt.fill_between(x, a, b, where=a > b, color="tab:green", alpha=0.4); plt.fill_between(x, a, b, where=a <= b, color="tab:red", alpha=0.4)
plt.title("fill_between, where")
# %% fill
angle = np.linspace(0, 2 * np.pi, 200)
plt.fill(np.sin(2 * angle), np.cos(3 * angle), "c", alpha=0.5, edgecolor="k"); plt.axis("equal"); plt.title("fill")
# %% fill_betweenx
up = np.linspace(0, 3, 60)
plt.fill_betweenx(up, np.sin(up * 2), np.sin(up * 2) + 1, color="plum"); plt.title("fill_betweenx")
# %% stackplot
plt.stackplot(range(6), [1, 2, 3, 3, 2, 1], [2, 2, 1, 2, 3, 3], [1, 1, 2, 1, 1, 2], labels=["a", "b", "c"])
plt.legend(loc="upper left"); plt.title("stackplot")
# %% errorbar
plt.errorbar([1, 2, 3, 4], [2, 3, 2.5, 4], yerr=[[0.2, 0.4, 0.3, 0.5], [0.5, 0.3, 0.6, 0.2]], xerr=0.2, fmt="o", capsize=3, label="measured")
plt.errorbar([1, 2, 3, 4], [1, 1.5, 1.7, 2], yerr=0.3, label="line", ecolor="gray"); plt.legend(); plt.title("errorbar")
# %% pie
plt.pie([35, 25, 25, 15], labels=["north", "east", "south", "west"], autopct="%1.1f%%", explode=(0, 0.1, 0, 0), startangle=90)
plt.title("pie")
# %% ring
wedges, texts = plt.pie([3, 2, 1], colors=["#4c72b0", "#dd8452", "#55a868"], wedgeprops={"width": 0.4})
plt.legend(wedges, ["three", "two", "one"], loc="center"); plt.title("ring")
# %% imshow
plt.imshow(np.outer(np.sin(x[::8]), np.cos(x[::8])), cmap="coolwarm", vmin=-1, vmax=1); plt.colorbar(); plt.title("imshow")
# %% colours of pixels
high, wide = 40, 60
plt.imshow([[(c / wide, r / high, 0.5) for c in range(wide)] for r in range(high)]); plt.title("imshow of colours")
# %% heat map
table = rng.integers(0, 10, (5, 6))
fig, ax = plt.subplots()
ax.imshow(table, cmap="YlGn")
for r in range(5):
    for c in range(6):
        ax.text(c, r, table[r, c], ha="center", va="center", color="k")
ax.set_xticks(range(6), labels=list("ABCDEF"), rotation=45); ax.set_yticks(range(5), labels=list("vwxyz")); ax.set_title("heat map")
# %% matshow
plt.matshow(np.eye(8) + np.diag(np.ones(7), 1) * 0.5); plt.colorbar(); plt.title("matshow")
# %% large image
plt.imshow(np.sin(np.outer(np.linspace(0, 20, 300), np.linspace(0, 3, 400))), aspect="auto", extent=[0, 3, 0, 20], origin="lower")
plt.colorbar(orientation="horizontal", label="sin"); plt.title("imshow, extent")
# %% pcolormesh
X, Y = np.meshgrid(np.linspace(-3, 3, 31), np.linspace(-2, 2, 21))
Z = (1 - X / 2 + X**5 + Y**3) * np.exp(-X**2 - Y**2)
plt.pcolormesh(X, Y, Z, cmap="RdBu_r", shading="auto"); plt.colorbar(); plt.title("pcolormesh")
# %% contour
lines = plt.contour(X, Y, Z, levels=8); plt.clabel(lines); plt.title("contour, clabel")
# %% contour lines
plt.contour(X, Y, Z, levels=10, colors="k"); plt.title("contour, one colour")
# %% contourf
plt.contourf(X, Y, Z, levels=12, cmap="plasma"); plt.colorbar(label="height"); plt.title("contourf")
# %% boxplot
plt.boxplot([rng.normal(m, 1, 80) for m in (0, 1, 3)], tick_labels=["a", "b", "c"]); plt.title("boxplot")
# %% boxplot lying
parts = plt.boxplot([rng.normal(m, 1, 80) for m in (0, 1, 3)], orientation="horizontal", patch_artist=True, showmeans=True)
for box, shade in zip(parts["boxes"], ["pink", "lightblue", "lightgreen"]):
    box.set_facecolor(shade)
plt.title("boxplot, patch_artist")
# %% violinplot
plt.violinplot([rng.normal(0, 1, 100), rng.normal(1, 2, 100), rng.normal(2, 0.5, 100)], showmedians=True); plt.title("violinplot")
# %% stem
plt.stem(x[::12], np.exp(-x[::12] / 4) * np.cos(2 * x[::12])); plt.title("stem")
# %% eventplot
plt.eventplot([np.sort(rng.random(30)) for _ in range(4)], colors=["C0", "C1", "C2", "C3"]); plt.title("eventplot")
# %% rules
plt.plot(x, np.sin(x)); plt.axhline(0.5, color="r", ls="--", label="limit"); plt.axvline(np.pi, color="g", ls=":", label=r"$\pi$")
plt.axhspan(-1, -0.5, alpha=0.2); plt.axvspan(6, 7, color="orange", alpha=0.3); plt.legend(); plt.title("axhline, axvspan")
# %% hlines
plt.hlines([1, 2, 3], [0, 1, 2], [4, 5, 6], colors="C1", lw=3); plt.vlines([1, 3, 5], 0.5, 3.5, linestyles="dashed"); plt.title("hlines, vlines")
# %% text
plt.plot([0, 10], [0, 10], alpha=0.2)
plt.text(2, 8, "left, bottom"); plt.text(5, 5, "centred in a box", ha="center", va="center", bbox={"facecolor": "wheat"})
plt.text(9, 2, "right", ha="right", color="crimson", fontsize=14); plt.text(1, 3, "upwards", rotation=90)
plt.text(0.98, 0.98, r"$e^{-x^2}$, $\alpha_1$", transform=plt.gca().transAxes, ha="right", va="top"); plt.title("text")
# %% annotate
plt.plot(x, x * np.sin(x))
plt.annotate("lowest", xy=(4.9, -4.8), xytext=(1, -6.5), arrowprops={"arrowstyle": "->"})
plt.annotate("highest", xy=(7.98, 7.9), xytext=(-60, -10), textcoords="offset points", arrowprops={})
plt.ylim(-8, 10); plt.title("annotate")
# %% semilogx
plt.semilogx(np.logspace(-2, 4, 100), 1 / (1 + np.logspace(-2, 4, 100) / 50)); plt.grid(True); plt.title("semilogx")
# %% yscale
plt.plot(x, np.exp(x)); plt.yscale("log"); plt.xlabel("time"); plt.ylabel("counts"); plt.title("yscale log")
# %% loglog
plt.loglog([1, 10, 100, 1000], [1, 100, 9000, 1e6], "o-"); plt.grid(); plt.title("loglog")
# %% large numbers
plt.plot(np.arange(10), np.arange(10) ** 2 * 1e7); plt.title("large numbers")
# %% twinx
fig, ax = plt.subplots()
ax.plot(x, np.exp(x / 3), "C0"); ax.set_ylabel("left", color="C0")
other = ax.twinx(); other.plot(x, np.sin(x), "C1"); other.set_ylabel("right", color="C1"); ax.set_title("twinx")
# %% shared
fig, axs = plt.subplots(2, 2, sharex=True, sharey=True)
for ax, c in zip(axs.flat, "bgrm"):
    ax.plot(rng.normal(size=20).cumsum(), c)
fig.suptitle("subplots, sharex, sharey")
# %% subplot
plt.subplot(2, 1, 1); plt.plot(x, np.sin(x)); plt.title("subplot(2, 1, 1)"); plt.subplot(2, 2, 3); plt.bar([1, 2], [3, 4]); plt.subplot(224); plt.scatter([1, 2, 3], [3, 1, 2])
# %% mosaic
fig, axd = plt.subplot_mosaic("AAB;CCB", width_ratios=[1, 1, 1])
for name, ax in axd.items():
    ax.set_title(name)
axd["A"].plot([1, 3, 2]); axd["B"].barh([1, 2, 3], [2, 3, 1]); axd["C"].hist(rng.normal(size=100))
# %% inset
fig, ax = plt.subplots()
ax.plot(x, np.sin(x ** 2 / 5)); small = ax.inset_axes([0.6, 0.6, 0.37, 0.37]); small.plot(x[:40], np.sin(x[:40] ** 2 / 5)); ax.set_title("inset_axes"); ax.set_ylim(-1.2, 3)
# %% legend outside
for k in range(4):
    plt.plot(x, np.sin(x + k), label=f"phase {k}")
plt.legend(loc="upper left", bbox_to_anchor=(1.02, 1), frameon=False); plt.title("legend outside")
# %% ticks
from matplotlib.ticker import PercentFormatter, MultipleLocator
fig, ax = plt.subplots()
ax.plot(x, np.exp(-x)); ax.yaxis.set_major_formatter(PercentFormatter(1)); ax.xaxis.set_major_locator(MultipleLocator(2.5))
ax.xaxis.set_major_formatter("{x:.1f} km"); ax.grid(True, axis="y"); ax.set_title("ticks and their words", loc="left")
# %% spines
fig, ax = plt.subplots()
ax.plot([3, 1, 2]); ax.spines[["top", "right"]].set_visible(False); ax.set_facecolor("#fff7e6"); ax.invert_xaxis(); ax.set_title("spines, facecolor")
# %% equal, off
plt.plot(np.cos(angle), np.sin(angle)); plt.plot(0.5 * np.cos(angle), 0.5 * np.sin(angle), "--"); plt.axis("equal"); plt.axis("off"); plt.title("equal, off")
# %% quiver
P, Q = np.meshgrid(np.linspace(-2, 2, 12), np.linspace(-2, 2, 12))
plt.quiver(P, Q, -Q, P, color="teal"); plt.title("quiver")
# %% patches
from matplotlib.patches import Circle, Rectangle
ax = plt.figure().add_subplot(111)
ax.add_patch(Rectangle((1, 1), 4, 2, fc="lightblue", ec="navy")); ax.add_patch(Circle((6, 4), 1.5, color="salmon", alpha=0.7)); ax.set(xlim=(0, 9), ylim=(0, 6), title="patches", aspect="equal")
# %% ggplot
with plt.style.context("ggplot"):
    fig, ax = plt.subplots()
    for k in range(3):
        ax.plot(x, np.sin(x) + k, label=str(k))
    ax.legend(); ax.set_title("style ggplot")
# %% dark
with plt.style.context("dark_background"):
    fig, ax = plt.subplots()
    ax.plot(x, np.sin(x)); ax.scatter(x[::20], np.cos(x[::20]), c=x[::20], cmap="spring"); ax.set_title("style dark_background"); ax.grid()
# %% log colours
from matplotlib.colors import LogNorm
plt.imshow(np.add.outer(np.arange(30), np.arange(30)) ** 3 + 1.0, norm=LogNorm(), cmap="magma"); plt.colorbar(); plt.title("LogNorm")
# %% a million
plt.plot(np.cumsum(np.random.default_rng(5).normal(size=1_000_000)), lw=0.8); plt.title("a million points")
# %% many points
plt.scatter(rng.normal(size=50_000), rng.normal(size=50_000), s=4, alpha=0.3); plt.title("50,000 points")
# %% gaps
plt.plot([1, 2, np.nan, 4, 5], [1, 3, 2, 2, np.nan], "o-"); plt.plot([], []); plt.title("gaps, nothing")
# %% polar! the projection 'polar' is not in Tracebook's small matplotlib
plt.subplot(projection="polar")
# %% three dimensions! the projection '3d' is not in
plt.figure().add_subplot(projection="3d")
# %% streamplot! matplotlib.pyplot.streamplot is not in
plt.streamplot([0], [0], [0], [0])
# %% table! Axes.table is not in
plt.subplots()[1].table([[1]])
# %% option! hist: the option 'bogus' is not in
plt.hist([1], bogus=1)
# %% scale! the scale 'symlog' is not in
plt.yscale("symlog")
# %% module! matplotlib.animation is not in
import matplotlib
matplotlib.animation
# %% formatter! matplotlib.ticker.FuncFormatter is not in
from matplotlib.ticker import FuncFormatter
FuncFormatter(str)
