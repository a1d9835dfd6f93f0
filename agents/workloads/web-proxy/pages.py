"""Write the pages that the proxy serves: synthetic HTML of more than 500 KB each, plain and as .gz.

    python3 pages.py FOLDER [--pages 64] [--least-kb 520] [--most-kb 720]

The text is generated from seeds, so that it is the same everywhere: words of random syllables, drawn by a Zipf law
within phrases that return, between links and rows of tables. The share of new words is chosen so that gzip at level 6
makes the pages about 5.5 times smaller, as encyclopaedia pages are.
"""

import argparse
import gzip
import itertools
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

SEED = 20260101
WORDS, PHRASES = 6000, 720
LEVEL = 6
# The weights of the kinds of text; they set the ratio of the two forms.
KINDS = {"phrase": 40, "words": 3, "link": 50, "row": 3}


def vocabulary(draws: random.Random) -> list[str]:
    """Return different words of one to four syllables."""
    syllables = [a + b + c for a in "bcdfghklmnprstvw" for b in "aeiou" for c in ("", "n", "r", "s")]
    found: dict[str, None] = {}
    while len(found) < WORDS:
        found["".join(draws.choices(syllables, k=draws.randint(1, 4)))] = None
    return list(found)


def pieces(draws: random.Random) -> Iterator[str]:
    """Yield pieces of HTML without an end."""
    shared = random.Random(SEED)
    words = vocabulary(shared)
    zipf = list(itertools.accumulate(1 / rank for rank in range(1, WORDS + 1)))
    phrases = [" ".join(shared.choices(words, cum_weights=zipf, k=shared.randint(3, 9))) for _ in range(PHRASES)]
    flat = list(itertools.accumulate(1 / rank**0.5 for rank in range(1, PHRASES + 1)))
    kinds, weights = list(KINDS), list(KINDS.values())
    while True:
        yield "<p>"
        for kind in draws.choices(kinds, weights, k=draws.randint(20, 60)):
            [word] = draws.choices(words, cum_weights=zipf)
            if kind == "phrase":
                yield f"{draws.choices(phrases, cum_weights=flat)[0]}, "
            elif kind == "words":
                yield f"{' '.join(draws.choices(words, cum_weights=zipf, k=4))}. "
            elif kind == "link":
                yield f'<a href="/wiki/{word.title()}" class="mw-redirect" title="{word.title()}">{word}</a> '
            else:
                cells = "".join(f'<td align="right">{draws.randint(0, 9999)}</td>' for _ in range(4))
                yield f'<tr class="row"><th scope="row">{word}</th>{cells}</tr>\n'
        yield "</p>\n"


def page(number: int, least: int, most: int) -> bytes:
    """Return the HTML of a page of `least` to `most` bytes."""
    draws = random.Random(SEED + 1 + number)
    head, tail = f"<!DOCTYPE html>\n<html><head><title>Page {number}</title></head><body>\n", "</body></html>\n"
    length = draws.randint(least, most) - len(head) - len(tail)
    text: list[str] = []
    for piece in pieces(draws):
        text.append(piece)
        length -= len(piece)
        if length <= 0:
            break
    return (head + "".join(text)[: length or None] + tail).encode()


def main() -> int:
    """Write the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pages", type=int, default=64, help="number of pages (default: %(default)s)")
    parser.add_argument("--least-kb", type=int, default=520, help="size of the smallest, kB (default: %(default)s)")
    parser.add_argument("--most-kb", type=int, default=720, help="size of the largest, kB (default: %(default)s)")
    options = parser.parse_args()
    if not 1 <= options.pages <= 10000 or not 1 <= options.least_kb <= options.most_kb <= 4000:
        parser.error("use 1 to 10000 pages, and 1 <= --least-kb <= --most-kb <= 4000")
    options.folder.mkdir(parents=True, exist_ok=True)
    sizes = [0, 0]
    for number in range(options.pages):
        raw = page(number, 1000 * options.least_kb, 1000 * options.most_kb)
        for form, content in enumerate((raw, gzip.compress(raw, LEVEL, mtime=0))):
            with (options.folder / f"{number}.html{'.gz' if form else ''}").open("wb") as file:
                file.write(content)
                file.flush()
                # A page that is not yet on the disk cannot be dropped from the page cache.
                os.fsync(file.fileno())
            sizes[form] += len(content)
    print(f"{options.pages} pages, {sizes[0]} bytes, as gzip {sizes[1]}: ratio {sizes[0] / sizes[1]:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
