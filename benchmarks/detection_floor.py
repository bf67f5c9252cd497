"""The AP50 of a detector that never looks: the same boxes on every picture, which is what detection's results stand on.

    python benchmarks/detection_floor.py --data COCO

COCO is its public layout. For each category the boxes are five centres of the training objects (k-means of the corners over the
picture's sides). The score of each is the share of training pictures in which it has an IoU of 0.5 at least with an object of its
category.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import tables
import torch
from scipy.cluster.vq import kmeans2
from torchvision.ops import box_iou

from lff.experiments.data.annotated import Annotated
from lff.experiments.environment import environment
from lff.experiments.tasks.detection.config import DetectionConfig, mini
from lff.experiments.tasks.detection.evaluation import evaluate
from lff.experiments.tasks.detection.pictures import splits

CENTRES, SEED = 5, 0
CHOICES = {
    "the 10 most frequent": DetectionConfig(categories=10),
    "the 20 most frequent": DetectionConfig(categories=20),
    "those of `mini`, in the pictures that show one": mini(),
}


def boxes_of(pictures: Annotated) -> np.ndarray:
    """x1, y1, x2, y2 over the sides, score and label of every box that all pictures get."""
    owner = np.repeat(np.arange(len(pictures)), np.diff(pictures.offsets))
    shares = pictures.boxes / np.tile(pictures.sizes[owner][:, ::-1], 2)
    found = []
    for label in range(len(pictures.categories)):
        mine = pictures.labels == label
        some = len(np.unique(shares[mine], axis=0))
        if not some:
            continue
        centres, _ = kmeans2(shares[mine].astype(np.float64), min(CENTRES, some), minit="++", seed=SEED)
        hits = box_iou(torch.from_numpy(centres), torch.from_numpy(shares[mine]).double()).numpy() >= 0.5
        scores = [len(np.unique(owner[mine][hit])) / len(pictures) for hit in hits]
        found.append(np.column_stack([centres, scores, np.full(len(centres), label)]))
    return np.concatenate(found)


def judged(pictures: Annotated, same: np.ndarray) -> dict[str, Any]:
    """COCO's measures of these boxes on all pictures."""
    every = np.tile(same, (len(pictures), 1, 1))
    every[..., :4] *= np.tile(pictures.sizes[:, ::-1], 2)[:, None]
    return evaluate(pictures, np.arange(len(pictures)), every)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    args = parser.parse_args()
    rows = []
    for name, config in CHOICES.items():
        train, test = splits(config, args.data)
        found = judged(test, boxes_of(train))
        best = max(found["categories"], key=found["categories"].get)
        most = 100 * found["categories"][best]
        rows.append({"categories": name, "ap50": 100 * found["ap50"], "ap": 100 * found["ap"], "best": f"{best} ({most:.1f})"})
        print(rows[-1], flush=True)
    tables.save("detection-floor", {"environment": environment(seeds=[SEED]), "rows": rows})


if __name__ == "__main__":
    main()
