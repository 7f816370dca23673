"""Topic models of 20 Newsgroups: online latent Dirichlet allocation trained at every point of a grid.

    python -m calibo_bench.problems.lda_table    resumable, about half a CPU hour; needs CALIBO_DATA

Writes lda.csv next to this file, for `calibo-bench reproduce warp14-fig5`. The objective is the perplexity of 2,200
test documents after one pass over 1,500 or 11,000 training documents: the same words, 20 topics, the same shuffle.
"""

import argparse
import csv
import gzip
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

from calibo_bench.problems.data import data_file

TABLE = Path(__file__).with_name("lda.csv")
FILE = "newsgroups20/20news_bydate.jsonl.gz"
DIGEST = "de84b0a957e58b34bc18d516dae80cb78e7ed09edd3c5f424e8b6b9e94b0353e"
SOURCE = "20 Newsgroups, the version sorted by date (qwone.com/~jason/20Newsgroups), one JSON object a line"

DOCUMENTS, HELD_OUT, WORDS, TOPICS = (1_500, 11_000), 2_200, 1_000, 20
AXES = {
    "documents": DOCUMENTS,
    "kappa": (0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    "tau": (1, 4, 16, 64, 256, 1024),
    "batch": (4, 16, 64, 256, 1024),
}


@cache
def counts() -> tuple[Any, Any]:
    """Word counts of training and held-out documents, without headers, shuffled: lines are sorted by group."""
    from sklearn.feature_extraction.text import CountVectorizer

    with gzip.open(data_file(FILE, DIGEST, SOURCE), "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    rng = np.random.default_rng(0)
    train, test = (
        [line["text"].partition("\n\n")[2] for line in lines if line["split"] == part] for part in ("train", "test")
    )
    train, test = ([texts[i] for i in rng.permutation(len(texts))] for texts in (train, test))
    words = CountVectorizer(max_features=WORDS, stop_words="english", token_pattern=r"\b[a-zA-Z]{3,}\b", max_df=0.5)
    return words.fit_transform(train[: max(DOCUMENTS)]), words.transform(test[:HELD_OUT])


def trained(point: tuple[Any, ...]) -> tuple[Any, ...]:
    from sklearn.decomposition import LatentDirichletAllocation

    documents, kappa, tau, batch = point
    train, test = counts()
    begun = time.perf_counter()
    model = LatentDirichletAllocation(
        TOPICS,
        learning_method="online",
        learning_decay=kappa,
        learning_offset=tau,
        batch_size=batch,
        max_iter=1,
        max_doc_update_iter=20,
        mean_change_tol=1e-2,
        random_state=0,
    )
    model.fit(train[:documents])
    return *point, round(float(model.perplexity(test)), 3), round(time.perf_counter() - begun, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    jobs = parser.parse_args().jobs
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    head = [*AXES, "perplexity", "seconds"]
    rows = []
    if TABLE.exists():
        with open(TABLE, newline="") as file:
            rows = [tuple(float(row[name]) for name in head) for row in csv.DictReader(file)]
    done = {row[:4] for row in rows}
    todo = [point for point in product(*AXES.values()) if tuple(map(float, point)) not in done]
    with ProcessPoolExecutor(jobs) as pool:
        for number, row in enumerate(pool.map(trained, todo), start=1):
            rows.append(row)
            rows.sort()
            with open(partly := TABLE.with_suffix(".part"), "w", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerows(
                    [head, *([f"{value:g}" for value in row[:4]] + [f"{row[4]:.3f}", f"{row[5]:.2f}"] for row in rows)]
                )
            partly.replace(TABLE)
            print(f"{number} of {len(todo)}: {row}", flush=True)


if __name__ == "__main__":
    main()
