"""What the bench_*.py of data writers and loaders share: the same pictures, prepared alike, counted alike.

Rows are JSON lines with the columns of tools/bench_pack and tools/bench_load: samples, wall and processor seconds (children included), samples per second
of processor time, milliseconds to the first batch, bytes a sample. Pictures become 336 x 336 by bicubic resize of the shortest edge and centre crop, stored as
JPEG (quality 95) or raw; a load decodes them into one array of 32 pictures at a time, in this process (no workers).
"""
import argparse
import io
import json
import os
import resource
import shutil
import tempfile
import time

import numpy as np
from PIL import Image

SIDE = 336
BATCH = 32
QUALITY = 95


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folder", help="pictures, .jpg .jpeg .png in and below it")
    parser.add_argument("--repeat", type=int, default=1, help="times that each picture is packed")
    parser.add_argument("--epochs", type=int, default=4, help="times that a set is read in a round")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of which the least processor time counts")
    return parser.parse_args()


def pictures(a):
    found = [os.path.join(d, f) for d, _, names in os.walk(a.folder) for f in names]
    return sorted(f for f in found if f.lower().endswith((".jpg", ".jpeg", ".png"))) * a.repeat


def prepare(path):
    picture = Image.open(path).convert("RGB")
    w, h = picture.size
    size = (SIDE, int(SIDE * h / w)) if w <= h else (int(SIDE * w / h), SIDE)
    picture = picture.resize(size, Image.Resampling.BICUBIC)
    left, top = (size[0] - SIDE) // 2, (size[1] - SIDE) // 2
    return picture.crop((left, top, left + SIDE, top + SIDE))


def to_jpeg(picture):
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=QUALITY)
    return out.getvalue()


def from_jpeg(data):
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def encode(path, storage):
    picture = prepare(path)
    return to_jpeg(picture) if storage == "jpeg" else picture.tobytes()


def decode(data, storage):
    return from_jpeg(data) if storage == "jpeg" else np.frombuffer(data, np.uint8).reshape(SIDE, SIDE, 3)


def cpu_s():
    return sum(u.ru_utime + u.ru_stime for u in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)))


def folder_bytes(path):
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, names in os.walk(path) for f in names)


def batches(samples):
    """Arrays of BATCH pictures from an iterable of pictures; counts what came."""
    batch = []
    for sample in samples:
        if sample.ndim == 4:  # a batch already
            yield sample
            continue
        batch.append(sample)
        if len(batch) == BATCH:
            yield np.stack(batch)
            batch = []
    if batch:
        yield np.stack(batch)


def show(what, system, storage, best):
    samples, wall, cpu, first_ms, size = best
    print(json.dumps({"what": what, "system": system, "storage": storage, "samples": samples, "wall_s": wall, "cpu_s": cpu,
                      "per_core_s": samples / cpu, "first_batch_ms": first_ms, "bytes_sample": size / samples}), flush=True)


def bench(a, system, storage, write, read):
    """`write(paths, directory)` packs; `read(directory, epochs)` yields the pictures of all epochs: arrays of one, or of a batch."""
    paths = pictures(a)
    with tempfile.TemporaryDirectory() as work:
        packed, loaded = [], []
        for turn in range(a.rounds):
            directory = os.path.join(work, f"set{turn}")
            wall, cpu = time.monotonic(), cpu_s()
            write(paths, directory)
            packed.append((len(paths), time.monotonic() - wall, cpu_s() - cpu, 0, folder_bytes(directory)))
            if turn + 1 < a.rounds:
                shutil.rmtree(directory)
        show("pack", system, storage, min(packed, key=lambda row: row[2]))
        for _ in range(a.rounds):
            wall, cpu, first, count = time.monotonic(), cpu_s(), 0, 0
            for batch in batches(read(directory, a.epochs)):
                first = first or 1e3 * (time.monotonic() - wall)
                count += len(batch)
            size = packed[-1][4] * count / len(paths)
            loaded.append((count, time.monotonic() - wall, cpu_s() - cpu, first, size))
        show("load", system, storage, min(loaded, key=lambda row: row[2]))
