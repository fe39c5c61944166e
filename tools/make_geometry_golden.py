#!/usr/bin/env python3
"""Checksums of pictures prepared by Pillow as the reference processors do, for tests/image/tiling_golden_test.cpp:

    pip install pillow==12.3.0 && python3 tools/make_geometry_golden.py tests/image/geometry_golden.json

Written from the published definitions of InternVL's dynamic tiles, Qwen2-VL's smart resize, ADM's centre crop and PixArt's buckets. A case is
[geometry, width, height, seed, tile width, tile height, tiles, CRC-32 of all tiles' RGB bytes]; pictures as in make_resize_golden.py.
"""
import json
import math
import sys
import zlib

import PIL
from make_resize_golden import pixels
from PIL import Image

SIDE, MAX_TILES = 56, 6
BUCKETS = [(64, 64), (48, 80), (80, 48), (40, 96), (96, 40)]  # width, height
FACTOR, MIN_PIXELS, MAX_PIXELS = 28, 56 * 56, 12 * 28 * 28
SIZES = [(1, 1), (30, 20), (56, 56), (57, 111), (200, 90), (90, 200), (151, 150), (301, 77), (64, 129), (333, 222), (17, 300), (113, 112), (81, 43)]


def internvl(picture):
    width, height = picture.size
    grids = sorted({(i, j) for n in range(1, MAX_TILES + 1) for i in range(1, n + 1) for j in range(1, n + 1) if i * j <= MAX_TILES},
                   key=lambda g: (g[0] * g[1], g))
    best, best_difference = (1, 1), float("inf")
    for grid in grids:
        difference = abs(width / height - grid[0] / grid[1])
        if difference < best_difference:
            best, best_difference = grid, difference
        elif difference == best_difference and width * height > 0.5 * SIDE * SIDE * grid[0] * grid[1]:
            best = grid
    whole = picture.resize((SIDE * best[0], SIDE * best[1]))
    tiles = []
    for i in range(best[0] * best[1]):
        left, top = i % best[0] * SIDE, i // best[0] * SIDE
        tiles.append(whole.crop((left, top, left + SIDE, top + SIDE)))
    return tiles if len(tiles) == 1 else tiles + [picture.resize((SIDE, SIDE))]


def qwen(picture):
    width, height = picture.size
    h, w = round(height / FACTOR) * FACTOR, round(width / FACTOR) * FACTOR
    if h * w > MAX_PIXELS:
        beta = math.sqrt(height * width / MAX_PIXELS)
        h, w = max(FACTOR, math.floor(height / beta / FACTOR) * FACTOR), max(FACTOR, math.floor(width / beta / FACTOR) * FACTOR)
    elif h * w < MIN_PIXELS:
        beta = math.sqrt(MIN_PIXELS / (height * width))
        h, w = math.ceil(height * beta / FACTOR) * FACTOR, math.ceil(width * beta / FACTOR) * FACTOR
    return [picture.resize((w, h), Image.BICUBIC)]


def adm(picture):
    while min(*picture.size) >= 2 * SIDE:
        picture = picture.resize(tuple(x // 2 for x in picture.size), Image.BOX)
    scale = SIDE / min(*picture.size)
    picture = picture.resize(tuple(round(x * scale) for x in picture.size), Image.BICUBIC)
    left, top = (picture.size[0] - SIDE) // 2, (picture.size[1] - SIDE) // 2
    return [picture.crop((left, top, left + SIDE, top + SIDE))]


def bucket(picture):
    width, height = picture.size
    w, h = min(BUCKETS, key=lambda b: abs(b[1] / b[0] - height / width))
    size = (int(width * h / height), h) if h / height > w / width else (w, int(height * w / width))
    picture = picture.resize(size, Image.BICUBIC)
    left, top = int(round((size[0] - w) / 2.0)), int(round((size[1] - h) / 2.0))
    return [picture.crop((left, top, left + w, top + h))]


def main():
    cases = []
    for make in (internvl, qwen, adm, bucket):
        for seed, (width, height) in enumerate(SIZES):
            tiles = make(Image.frombytes("RGB", (width, height), pixels(width, height, seed)))
            data = b"".join(tile.tobytes() for tile in tiles)
            cases.append([make.__name__, width, height, seed, *tiles[0].size, len(tiles), zlib.crc32(data)])
    with open(sys.argv[1], "w") as out:
        rows = ",\n".join(json.dumps(case) for case in cases)
        out.write(f'{{"pillow": "{PIL.__version__}", "cases": [\n{rows}\n]}}\n')


if __name__ == "__main__":
    main()
