#!/usr/bin/env python3
"""Pillow on the files that tools/bench_image measures: decode + bicubic resize of the shortest edge + centre crop.

    build/bin/bench_image --save DIR && python3 tools/peers/bench_pillow.py DIR
    python3 tools/peers/bench_pillow.py FOLDER_OR_FILE... [--side 336] [--rounds 7] [--dump DIR]

Processor time of one thread, as bench_image; files are read into memory first; medians of interleaved rounds. `--dump` writes each result as raw RGB bytes for a
comparison of pixels. Needs Pillow 12 (`pip install pillow==12.3.0`).
"""
import argparse
import io
import os
import statistics
import time

import PIL
from PIL import Image, features


def files_below(paths):
    for path in paths:
        if os.path.isfile(path):
            yield path
            continue
        found = [os.path.join(d, f) for d, _, names in os.walk(path) for f in names]
        yield from sorted(f for f in found if f.lower().endswith((".jpg", ".jpeg", ".png", ".webp", ".gif")))


def decode(data):
    return Image.open(io.BytesIO(data)).convert("RGB")


def prepare(data, side):
    picture = decode(data)
    w, h = picture.size
    size = (side, int(side * h / w)) if w <= h else (int(side * w / h), side)
    picture = picture.resize(size, Image.Resampling.BICUBIC)
    left, top = (size[0] - side) // 2, (size[1] - side) // 2
    return picture.crop((left, top, left + side, top + side))


def readable(data):
    try:
        decode(data)
        return True
    except OSError:
        return False


def size_of(path):
    """What a header scan gives, by Pillow: the size; nothing is decoded."""
    try:
        with Image.open(path) as picture:
            return picture.size
    except OSError:
        return None


def upright_size_of(path):
    """The same with the orientation tag, which the size of a bucket needs."""
    try:
        with Image.open(path) as picture:
            return picture.size, picture.getexif().get(0x0112, 1)
    except OSError:
        return None


def seconds(body, pictures):
    begin = time.thread_time()
    for data in pictures:
        body(data)
    return time.thread_time() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--side", type=int, default=336)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dump")
    a = parser.parse_args()
    pictures = [data for data in (open(f, "rb").read() for f in files_below(a.paths)) if readable(data)]
    megapixels = sum(w * h for w, h in (Image.open(io.BytesIO(d)).size for d in pictures)) / 1e6
    if a.dump:
        os.makedirs(a.dump, exist_ok=True)
        for i, data in enumerate(pictures):
            open(os.path.join(a.dump, f"{i:04d}.rgb"), "wb").write(prepare(data, a.side).tobytes())
    paths = list(files_below(a.paths))
    opened, turned = [], []
    for _ in range(a.rounds):
        opened.append(seconds(size_of, paths))
        turned.append(seconds(upright_size_of, paths))
    decoded, prepared = [], []
    for _ in range(a.rounds):
        decoded.append(seconds(decode, pictures))
        prepared.append(seconds(lambda d: prepare(d, a.side), pictures))
    print(f"Pillow {PIL.__version__}, libjpeg-turbo {features.version_feature('libjpeg_turbo')}, processor time of 1 thread; {len(pictures)} pictures, "
          f"{megapixels / len(pictures):.2f} megapixels on average")
    for name, times in (("header scan: size", opened), ("header scan: size and orientation", turned)):
        print(f"{name:<44} {len(paths) / statistics.median(times):>12.0f} files/s")
    for name, times in (("decode", decoded), ("decode + resize + crop", prepared)):
        s = statistics.median(times)
        print(f"{name:<44} {len(pictures) / s:>12.1f} images/s {megapixels / s:>12.1f} megapixels/s")


if __name__ == "__main__":
    main()
