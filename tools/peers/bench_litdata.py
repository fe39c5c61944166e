#!/usr/bin/env python3
"""LitData: optimize() with one worker and StreamingDataset, beside tools/bench_pack and tools/bench_load.

    python3 tools/peers/bench_litdata.py FOLDER [--repeat N]     (pip install pillow numpy litdata)
"""
import functools

import litdata
from peer_bench import arguments, bench, decode, encode


def sample(path, storage):
    return {"picture": encode(path, storage), "text": "a picture"}


def main():
    a = arguments(__doc__)
    for storage in ("jpeg", "raw"):
        def write(paths, directory):
            litdata.optimize(fn=functools.partial(sample, storage=storage), inputs=paths, output_dir=directory, chunk_bytes=256 << 20, num_workers=1)

        def read(directory, epochs):
            dataset = litdata.StreamingDataset(directory, shuffle=False)
            for _ in range(epochs):
                for item in dataset:
                    yield decode(item["picture"], storage)

        bench(a, f"LitData {litdata.__version__}", storage, write, read)


if __name__ == "__main__":
    main()
