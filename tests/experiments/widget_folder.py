"""A hand-made sample in the public layout of Widget Captioning, with Rico's view hierarchies and screenshots."""

import json
from pathlib import Path
from typing import Any

from PIL import Image


def node(bounds: list[int], name: str = "android.widget.ImageButton", **more: Any) -> dict[str, Any]:
    """A node of a view hierarchy as Rico has it."""
    return {
        "bounds": bounds,
        "class": name,
        "ancestors": ["android.view.View", "java.lang.Object"],
        "clickable": True,
        "visible-to-user": True,
        "visibility": "visible",
        "content-desc": [None],
        "pointer": "1a2b",
        **more,
    }


def hierarchy() -> dict[str, Any]:
    """A frame with a button that has text, a missing child, and a bar with an icon."""
    icon = node([1080, 0, 1440, 256], "android.widget.ImageView", **{"resource-id": "com.app:id/btnShareAll"})
    bar = node([0, 0, 1440, 256], "com.app.FancyBar", ancestors=["java.lang.Object"], clickable=False, children=[icon])
    button = node([0, 1280, 720, 2560], "com.app.MyButton", ancestors=["android.widget.Button"], text="Play now")
    root = node([0, 0, 1440, 2560], "com.android.DecorView", clickable=False, children=[button, None, bar])
    return {"activity_name": "com.app/com.app.Main", "activity": {"root": root}, "is_keyboard_deployed": False, "request_id": "1"}


def make(root: Path, screens: int = 4) -> Path:
    """The folder; the icon is right above, white on black."""
    (root / "split").mkdir(parents=True)
    (root / "combined").mkdir()
    lists: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    lines = ["screenId,nodeId,captions"]
    for number in range(screens):
        name = f"{100 + number}"
        lists[("train", "dev", "test")[number % 3] if number < 3 else "train"].append(name)
        lines += [f"{name},0.2.0,share this|share with friends|", f"{name},0.0,play the song"]
        (root / "combined" / f"{name}.json").write_text(json.dumps(hierarchy()))
        picture = Image.new("RGB", (540, 960))
        picture.paste((255, 255, 255), (405, 0, 540, 96))
        picture.save(root / "combined" / f"{name}.jpg", quality=95)
    (root / "widget_captions.csv").write_text("\n".join(lines) + "\n")
    for split, names in lists.items():
        (root / "split" / f"{split}.txt").write_text("".join(f"{name}\n" for name in names))
    return root
