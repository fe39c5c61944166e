#!/usr/bin/env python3
"""NVIDIA DALI on the CPU, one thread: reads WebDataset tars that Pillow wrote, beside tools/bench_load. It has no writer of its own.

    python3 tools/peers/bench_dali.py FOLDER [--repeat N]     (pip install pillow numpy webdataset nvidia-dali-cuda120)
"""
import os

import nvidia.dali
import webdataset as wds
from nvidia.dali import fn, pipeline_def
from peer_bench import BATCH, arguments, bench, encode, pictures


@pipeline_def(batch_size=BATCH, num_threads=1, device_id=None)
def pipeline(shards):
    data = fn.readers.webdataset(paths=shards, ext=["jpg"], name="tar", pad_last_batch=False)
    return fn.decoders.image(data, device="cpu")


def main():
    a = arguments(__doc__)

    def write(paths, directory):
        os.makedirs(directory)
        with wds.ShardWriter(os.path.join(directory, "shard-%05d.tar"), maxsize=256 << 20, verbose=0) as out:
            for i, path in enumerate(paths):
                out.write({"__key__": f"{i:08d}", "jpg": encode(path, "jpeg")})

    def read(directory):
        run = pipeline(sorted(os.path.join(directory, f) for f in os.listdir(directory)))
        run.build()
        left = len(pictures(a))
        while left > 0:
            (batch,) = run.run()
            for i in range(min(left, len(batch))):
                yield batch.at(i)
            left -= len(batch)

    bench(a, f"DALI {nvidia.dali.__version__} (CPU; tars by WebDataset)", "jpeg", write, read)


if __name__ == "__main__":
    main()
