"""How well the likeliest box of a picture follows the only object that it shows, which average precision does not tell apart.

    python benchmarks/detection_centres.py --data COCO --runs runs/detection-pilot

COCO is its public layout, as the runs had it. Of every finished run of a comparison with a frozen backbone: correlations over the
test pictures with a single object between the box that the detector is surest of and the object's, each of column and row of the
centre, width and height, over the picture's sides. Means over the seeds. Where things are in a picture can be told in part from
what it shows: the higher up, the smaller. Whether they are left or right can not.
"""

import argparse
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import tables
import torch

from lff.experiments import finished
from lff.experiments.environment import environment
from lff.experiments.tasks.detection import model as models
from lff.experiments.tasks.detection.config import DetectionConfig
from lff.experiments.tasks.detection.task import EVALUATED, Detection

SIDES = ("column", "row", "width", "height")


@torch.no_grad()
def followed(task: Detection, model: torch.nn.Module) -> np.ndarray:
    """The four correlations."""
    cpu = torch.device("cpu")
    single = torch.from_numpy(np.nonzero(np.diff(task.test.offsets) == 1)[0])
    found, wanted = [], []
    for batch in task._judged(cpu).judged(single.split(EVALUATED), task.size, cpu):
        logits, boxes = model(task._inputs(batch), batch.mask)
        surest = logits[-1].softmax(-1)[..., :-1].amax(-1).argmax(1)
        found.append(boxes[-1][torch.arange(len(surest)), surest])
        wanted.append(batch.targets.boxes[batch.targets.real])
    ours, theirs = torch.cat(found).numpy(), torch.cat(wanted).numpy()
    return np.array([np.corrcoef(ours[:, side], theirs[:, side])[0, 1] for side in range(4)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=Path, required=True, help="folder of a comparison, with the weights of its runs")
    args = parser.parse_args()
    task, each, seeds = None, defaultdict(list), set()
    for folder in sorted((args.runs / "runs").iterdir()):
        if not (folder / "checkpoint" / "model.safetensors").exists():
            continue
        about, row, weights, _ = finished.load(folder, "detection")
        config = replace(finished.settings(DetectionConfig, about, methods=(about["method"],)), loaders=0, weights=None)
        task = Detection(config, args.data) if task is None else task
        model = models.build(config, row, len(task.train.categories))
        model.load_state_dict(weights)
        each[row.label].append(followed(task, model.eval()))
        seeds.add(int(about["seed"]))
        print(folder.name, dict(zip(SIDES, each[row.label][-1].round(3).tolist(), strict=True)), flush=True)
    if not each:
        raise SystemExit(f"--runs must have finished runs of detection with their weights, got {args.runs}")
    rows = [{"method": m, "seeds": len(v), **dict(zip(SIDES, np.mean(v, 0).tolist(), strict=True))} for m, v in each.items()]
    tables.save("detection-centres", {"environment": environment(seeds=sorted(seeds)), "rows": rows})


if __name__ == "__main__":
    main()
