#!/usr/bin/env python3
"""Pillow + WebDataset's TarWriter, and WebDataset's reader, beside tools/bench_pack and tools/bench_load.

    python3 tools/peers/bench_webdataset.py FOLDER [--repeat N]     (pip install pillow numpy webdataset)
"""
import os

import PIL
import webdataset as wds
from peer_bench import arguments, bench, decode, encode


def main():
    a = arguments(__doc__)
    for storage, ending in (("jpeg", "jpg"), ("raw", "rgb")):
        def write(paths, directory):
            os.makedirs(directory)
            with wds.ShardWriter(os.path.join(directory, "shard-%05d.tar"), maxsize=256 << 20, verbose=0) as out:
                for i, path in enumerate(paths):
                    out.write({"__key__": f"{i:08d}", ending: encode(path, storage), "txt": "a picture"})

        def read(directory, epochs):
            shards = sorted(os.path.join(directory, f) for f in os.listdir(directory))
            dataset = wds.WebDataset(shards, shardshuffle=False)
            for _ in range(epochs):
                for sample in dataset:
                    yield decode(sample[ending], storage)

        bench(a, f"Pillow {PIL.__version__} + WebDataset {wds.__version__}", storage, write, read)


if __name__ == "__main__":
    main()
