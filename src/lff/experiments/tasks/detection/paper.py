"""The paper's three tables of detection: normalised positions, unseen sizes, and what W_r starts from."""

from lff.experiments.tasks.detection.config import DetectionConfig

_COLUMNS = ("ap", "ap50", "ap75", "ap_small", "ap_medium", "ap_large")
_NORMALISED: dict[str, tuple[float, ...]] = {
    "Sine-2D": (40.1, 60.4, 42.6, 18.5, 43.6, 58.8),
    "Embed-2D": (39.3, 59.8, 41.4, 18.7, 42.5, 57.5),
    "MLP": (40.0, 60.3, 42.2, 18.6, 43.7, 58.1),
    "Learnable-Fourier+MLP": (40.2, 60.7, 42.7, 18.8, 43.8, 59.1),
}
_STARTS: dict[str, tuple[float, ...]] = {
    "Uniform [0, 1]": (38.3, 59.4, 40.0, 17.7, 41.9, 56.9),
    "Uniform [0, 1] & MLP": (40.0, 60.5, 42.0, 18.4, 43.5, 58.9),
    "N(0, 4^-2)": (39.1, 60.0, 40.9, 18.1, 42.5, 58.0),
    "N(0, 4^-2) & MLP": (40.2, 60.7, 42.4, 20.0, 43.3, 59.0),
}
_UNSEEN: dict[str, tuple[float, ...]] = {
    "Sine-2D": (38.9, 59.6, 40.9, 17.5, 42.5, 57.5),
    "Embed-2D": (36.6, 58.2, 37.7, 15.9, 40.0, 55.3),
    "MLP": (38.6, 59.5, 40.3, 17.1, 42.1, 57.1),
    "Learnable-Fourier+MLP": (39.5, 60.0, 41.6, 18.9, 43.0, 58.0),
}


def published(config: DetectionConfig) -> dict[str, dict[str, float]]:
    """The numbers of the table that these settings are those of, in parts of one: of every method its measures."""
    rows = _UNSEEN if config.unseen_sizes else {**_NORMALISED, **_STARTS}
    return {method: dict(zip(_COLUMNS, (value / 100 for value in values), strict=True)) for method, values in rows.items()}
