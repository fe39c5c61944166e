#!/usr/bin/env python3
"""Checksums of Pillow's resizes for tests/image/resize_golden_test.cpp. Run once with each Pillow that the results are to equal:

    pip install pillow==12.3.0 && python3 tools/make_resize_golden.py tests/image/resize_golden.json
    pip install pillow==13.0.0 && python3 tools/make_resize_golden.py tests/image/resize_golden.json

Each run writes the column of its Pillow. A case is [width, height, new width, new height, filter, seed]; the picture is made by `pixels`,
which the test repeats; the result's mark is the CRC-32 of its RGB bytes.
"""
import json
import os
import random
import sys
import zlib

import PIL
from PIL import Image

FILTERS = ("nearest", "box", "bilinear", "bicubic", "lanczos")


def pixels(width, height, seed):
    out = bytearray(width * height * 3)
    for i in range(len(out)):
        noise = ((i * 2654435761 + seed * 40503) & 0xFFFFFFFF) >> 13 & 255
        kind = i // 997 % 3
        out[i] = noise if kind == 0 else (noise & 1) * 255 if kind == 1 else (i // 7 + seed) & 255
    return bytes(out)


def cases():
    fixed = [(1, 1, 7, 5), (1, 90, 3, 1), (90, 1, 1, 4), (33, 17, 33, 5), (33, 17, 5, 17), (33, 17, 33, 17), (3000, 3, 2, 2),
             (3, 3000, 2, 2), (8209, 2, 31, 3), (2, 8209, 3, 31), (45, 33, 14, 14), (45, 33, 90, 66), (64, 200, 60, 20), (64, 200, 20, 180),
             (100, 37, 336, 12), (17, 16, 16, 15), (255, 4, 1, 1), (5, 160, 4, 100)]
    draw = random.Random(20)
    for _ in range(30):
        fixed.append(tuple(draw.randint(1, 150) for _ in range(4)))
    return [[*sizes, name, i] for i, sizes in enumerate(fixed) for name in FILTERS]


def mark(case):
    width, height, new_width, new_height, name, seed = case
    picture = Image.frombytes("RGB", (width, height), pixels(width, height, seed))
    resized = picture.resize((new_width, new_height), getattr(Image.Resampling, name.upper()))
    return zlib.crc32(resized.tobytes())


def main():
    path = sys.argv[1]
    table = json.load(open(path)) if os.path.exists(path) else {}
    made = cases()
    if table.setdefault("cases", made) != made:
        sys.exit("the file holds other cases; delete it and make every column again")
    major = PIL.__version__.split(".")[0]
    table[f"pillow{major}"] = {"version": PIL.__version__, "crc32": [mark(case) for case in made]}
    with open(path, "w") as out:
        out.write("{\n" + ",\n".join(f'"{k}": {json.dumps(table[k], separators=(",", ":"))}' for k in sorted(table)) + "\n}\n")
    differing = sum(a != b for a, b in zip(table.get("pillow12", {}).get("crc32", []), table.get("pillow13", {}).get("crc32", [])))
    print(f"{len(made)} cases by Pillow {PIL.__version__}; {differing} differ between the two columns")


if __name__ == "__main__":
    main()
