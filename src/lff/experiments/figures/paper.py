"""The paper's figures, by its own numbers: what each shows, and which runs it needs."""

from dataclasses import dataclass

OURS = "Learnable-Fourier+MLP"


@dataclass(frozen=True)
class Needed:
    """A row that a figure shows: the method, and whether it is trained with the KL loss of Eq. 10."""

    name: str
    kl: bool = False

    def __str__(self) -> str:
        return f"{self.name}(kl=1.0)" if self.kl else self.name


@dataclass(frozen=True)
class PaperFigure:
    """One figure.

    Attributes:
        number: the paper's.
        shows: what it is, in a line.
        kind: how it is drawn; a function of `make`.
        task: whose runs it needs; None where any will do.
        panels: the rows of each panel, ours first; none where no run is needed.
        titles: of the panels, where there are several.
    """

    number: int
    shows: str
    kind: str
    task: str | None = None
    panels: tuple[tuple[Needed, ...], ...] = ()
    titles: tuple[str, ...] = ("",)

    @property
    def rows(self) -> list[Needed]:
        return list(dict.fromkeys(row for panel in self.panels for row in panel))

    @property
    def command(self) -> str:
        """What would make the runs that it needs."""
        rows = " ".join(f'"{row}"' if "(" in str(row) or " " in str(row) else str(row) for row in self.rows)
        data = "" if self.task == "captioning" else " --data DIR"  # screens ship with the package
        return f"lff compare {self.task or 'classification'} --preset mini{data} --methods {rows}"


def _panel(*names: str) -> tuple[Needed, ...]:
    return tuple(Needed(name) for name in names)


def _maps(number: int, shows: str, task: str, row: Needed) -> PaperFigure:
    return PaperFigure(number, shows, "maps", task, ((row,),))


_BOXES = "Learnable-Fourier+MLP-2/2"

FIGURES = (
    PaperFigure(1, "Similarity of learned positions in a row", "matrix", None, (_panel("Embed-1D"),)),
    PaperFigure(2, "Similarity to the centre: sines and Fourier features", "ball_and_cross"),
    PaperFigure(
        3,
        "Bits per dimension over the steps: baselines, components",
        "curves",
        "generation",
        (_panel(OURS, "Embed-2D", "Embed-1D", "Sine-2D", "Sine-1D"), _panel(OURS, "Learnable-Fourier", "MLP")),
        ("Baselines", "Components"),
    ),
    PaperFigure(4, "Positions on training screens, by coordinate", "positions"),
    _maps(5, "Similarity of r_x in the Reformer", "generation", Needed(OURS)),
    _maps(6, "The same without the MLP", "generation", Needed("Learnable-Fourier")),
    _maps(7, "Similarity in DETR: Embed-2D", "detection", Needed("Embed-2D")),
    _maps(8, "Similarity in DETR: MLP", "detection", Needed("MLP")),
    _maps(9, "Similarity in DETR: Sine-2D", "detection", Needed("Sine-2D")),
    _maps(10, "Similarity in DETR: r_x of Learnable-Fourier+MLP", "detection", Needed(OURS)),
    _maps(11, "Similarity of points on a screen, 2/2", "captioning", Needed(_BOXES)),
    _maps(12, "The same with the KL loss", "captioning", Needed(_BOXES, kl=True)),
    PaperFigure(
        13, "W_r: initial, trained, with the KL loss", "spectrum", "captioning", ((Needed(_BOXES), Needed(_BOXES, True)),)
    ),
    PaperFigure(
        14, "Bits per dimension over the steps: MD-Sine", "curves", "generation", (_panel(OURS, "MD-Sine", "MD-Sine+MLP"),)
    ),
    _maps(15, "Similarity of r_x in DETR, W_r from [0, 1]", "detection", Needed("Uniform [0, 1]")),
    PaperFigure(16, "Unseen widgets in the hull of those of training", "hull"),
)
