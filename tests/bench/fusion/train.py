"""Trains the fusion gate and writes gate.json: its parameters, and those trained without each collection.

    tracebook-bench bench retrieval --all COLLECTIONS --dump candidates.jsonl
    python train.py candidates.jsonl gate.json

Needs numpy and scipy. A line of the input is a query: its collection, the gate's signals
(store/index/src/fusion_gate.rs), its candidates (id, score by words, cosine) and the grades of its answers. emulate.py
writes such lines, too. The gate is a logistic function of the signals. What is maximized is the mean nDCG@10 of each
collection against the better of words and cosine there: a collection counts the same whatever its level. Nothing is
random.
"""

import collections
import json
import math
import sys

import numpy as np
from scipy.optimize import minimize

RANKS = 0.25  # Weight of reciprocal ranks; of 0, 0.25, 0.5 and 1 the best when each collection is left out.
RIDGE = 0.0005
GRID = np.linspace(0, 1, 21)
MIN_COSINE = 0.35  # RankingWeights::min_cosine
POOL = 100  # NORMALIZATION_RANK


def ndcg(scores, ids, wanted):
    order = np.argsort(-scores, kind="stable")[:10]
    gain = lambda grades: sum(grade / math.log2(place + 2) for place, grade in enumerate(grades))
    return gain([wanted.get(ids[n], 0) for n in order]) / gain(sorted(wanted.values(), reverse=True)[:10])


def scaled(values, none):
    best = np.sort(values)[::-1]
    low = min(best[POOL - 1] if len(best) >= POOL else none, best[0])
    return np.maximum((values - low) / (max(best[0], low + 1e-6) - low), 0)


def reciprocal(values, count):
    out = np.zeros(len(values))
    order = np.argsort(-values, kind="stable")[:count]
    out[order] = 5.5 / (11 + np.arange(len(order)))
    return out


def read(path):
    """Returns for each collection: signals, nDCG at each weight of words, and that of both parts."""
    found = collections.defaultdict(lambda: ([], [], [], []))
    for line in open(path):
        one = json.loads(line)
        wanted = {id: grade for id, grade in one["wanted"].items() if grade > 0}
        if not one["candidates"] or not one["signals"]:
            continue
        ids = [id for id, _, _ in one["candidates"]]
        words = np.array([score for _, score, _ in one["candidates"]])
        near = np.array([-1.0 if cosine is None else cosine for _, _, cosine in one["candidates"]])
        by_words = scaled(words, 0.0) + 0.01 * words / max(words.max(), 1e-9)
        by_meaning = scaled(near, near.min()) + 0.01 * near
        ranks = reciprocal(words, min(POOL, int((words > 0).sum()))) + reciprocal(near, POOL)
        hits = (words > 0) | (near >= MIN_COSINE)
        fuse = lambda g: np.where(hits, g * by_words + (1 - g) * by_meaning + RANKS * ranks, -9.0)
        signals, grid, lexical, semantic = found[one["collection"]]
        signals.append(one["signals"])
        grid.append([ndcg(fuse(g), ids, wanted) for g in GRID])
        lexical.append(ndcg(words, ids, wanted))
        semantic.append(ndcg(near, ids, wanted))
    return {name: tuple(np.array(part) for part in parts) for name, parts in sorted(found.items())}


def better_part(data):
    return max(data[2].mean(), data[3].mean())


def at_weights(grid, weights):
    place = np.clip(weights * (len(GRID) - 1), 0, len(GRID) - 1.001)
    low, rows = place.astype(int), np.arange(len(grid))
    below, above = grid[rows, low], grid[rows, low + 1]
    return below + (above - below) * (place - low), (above - below) * (len(GRID) - 1)


def smooth(grid):
    """Steps of nDCG between weights have no slope: three neighbors are averaged, twice."""
    for _ in range(2):
        wide = np.pad(grid, ((0, 0), (1, 1)), "edge")
        grid = 0.25 * wide[:, :-2] + 0.5 * wide[:, 1:-1] + 0.25 * wide[:, 2:]
    return grid


def word_weights(factors, signals):
    return 1 / (1 + np.exp(-(signals @ factors)))


def train(all_data):
    smoothed = [(data[0], smooth(data[1]), better_part(data)) for data in all_data]

    def loss(factors):
        sum, slope = 0.0, np.zeros(len(factors))
        for signals, grid, best in smoothed:
            weights = word_weights(factors, signals)
            value, change = at_weights(grid, weights)
            sum -= value.mean() / best
            slope -= (change * weights * (1 - weights) / best / len(weights)) @ signals
        bound = np.r_[0, factors[1:]]
        return sum / len(smoothed) + RIDGE * (bound @ bound), slope / len(smoothed) + 2 * RIDGE * bound

    starts = [np.r_[first, np.zeros(all_data[0][0].shape[1] - 1)] for first in (-1.0, -0.4, 0.2)]
    runs = [minimize(loss, start, jac=True, method="L-BFGS-B") for start in starts]
    return np.round(min(runs, key=lambda run: run.fun).x, 3)


def main():
    data = read(sys.argv[1])
    left_out, changes = {}, []
    for name, own in data.items():
        factors = train([other for other_name, other in data.items() if other_name != name])
        value = at_weights(own[1], word_weights(factors, own[0]))[0].mean()
        changes.append(value / better_part(own) - 1)
        left_out[name] = {"factors": factors.tolist(), "ranks": [RANKS]}
        print(f"{name:12} words {own[2].mean():.3f} cosine {own[3].mean():.3f} left out {value:.3f} {changes[-1]:+.3f}")
    print(f"mean {np.mean(changes):+.3f}, lowest {min(changes):+.3f}")
    result = {"factors": train(list(data.values())).tolist(), "ranks": [RANKS], "left_out": left_out}
    print(result["factors"])
    with open(sys.argv[2], "w") as out:
        out.write(json.dumps(result, indent=1).replace("\n  ", "\n ") + "\n")


if __name__ == "__main__":
    main()
