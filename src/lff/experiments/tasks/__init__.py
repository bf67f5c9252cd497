"""The tasks of the paper, by name: where the class is that a name stands for."""

TASKS: dict[str, str] = {
    "classification": "lff.experiments.tasks.classification.task:Classification",
    "generation": "lff.experiments.tasks.generation.task:Generation",
    "detection": "lff.experiments.tasks.detection.task:Detection",
    "captioning": "lff.experiments.tasks.captioning.task:Captioning",
}
