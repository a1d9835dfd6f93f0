"""Write a random list of URLs in which the one on line k of the input has a probability in proportion to k^-s.

    python3 zipf.py S LENGTH < urls > list

The same input gives the same list, unless --seed differs.
"""

import argparse
import random
import sys
from collections.abc import Sequence


def draw(urls: Sequence[str], exponent: float, length: int, seed: int = 0) -> list[str]:
    """Return `length` of the URLs by Zipf's law with this exponent."""
    weights = [rank**-exponent for rank in range(1, len(urls) + 1)]
    return random.Random(seed).choices(urls, weights, k=length)


def main() -> int:
    """Run the command line; return 2 for an input without URLs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("s", type=float, help="exponent; 0: all URLs are equally likely")
    parser.add_argument("length", type=int, help="number of URLs to write")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    options = parser.parse_args()
    urls = [line.strip() for line in sys.stdin if line.strip()]
    if not urls or options.length < 1:
        parser.error(f"{len(urls)} URLs and length {options.length}: use 1 or more of both")
    print("\n".join(draw(urls, options.s, options.length, options.seed)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
