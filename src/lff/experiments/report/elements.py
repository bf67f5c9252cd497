"""The few pieces of HTML that the page is made of. Text is escaped here; what is called `inner` is HTML already."""

import re
from collections.abc import Iterable
from html import escape


def section(title: str, *inner: str) -> str:
    """A part of the page under a heading."""
    name = "".join(c if c.isalnum() else "-" for c in title.lower())
    body = "\n".join(part for part in inner if part)
    return f'<section aria-labelledby="{name}">\n<h2 id="{name}">{escape(title)}</h2>\n{body}\n</section>'


def paragraph(text: str) -> str:
    """A paragraph."""
    return f"<p>{unbroken(text)}</p>"


def unbroken(text: str) -> str:
    """Text whose numbers stay on one line with their signs."""
    text = escape(text)
    for sign in ("±", "=", "&lt;", "/"):
        text = text.replace(f" {sign} ", f"&nbsp;{sign}&nbsp;")
    return re.sub(" (?=[%↑↓])", "&nbsp;", text)


def bullets(lines: Iterable[str]) -> str:
    """A list."""
    return f"<ul>{''.join(f'<li>{unbroken(line)}</li>' for line in lines)}</ul>"


def anchors(before: str, targets: dict[str, str]) -> str:
    """A sentence that leads elsewhere: words, and addresses by what they are called."""
    inner = ", ".join(f'<a href="{escape(target)}">{escape(name)}</a>' for name, target in targets.items())
    return f'<p class="anchors">{unbroken(before)} {inner}.</p>'


def fold(title: str, inner: str) -> str:
    """Something to be opened by who wants to know."""
    return f"<details><summary>{escape(title)}</summary>{inner}</details>"


def figure(svg: str, caption: str) -> str:
    """A drawing with its caption, in a box that scrolls where the screen is narrow."""
    return f'<figure><div class="scroll">{svg}</div><figcaption>{unbroken(caption)}</figcaption></figure>'


def gallery(svgs: dict[str, str]) -> str:
    """Small drawings beside each other, each under its name."""
    inner = "\n".join(f"<figure><figcaption>{escape(name)}</figcaption>{svg}</figure>" for name, svg in svgs.items())
    return f'<div class="gallery">{inner}</div>'


def pairs(lines: Iterable[tuple[str, str]]) -> str:
    """Names and values."""
    return f"<dl>{''.join(f'<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>' for name, value in lines)}</dl>"
