#!/usr/bin/env python3
"""DALI on the CPU: WebDataset's tars read by fn.readers.webdataset, decoded by fn.decoders.image, beside tools/bench_load. One thread, no GPU.

    python3 tools/peers/bench_dali.py FOLDER [--repeat N]     (pip install pillow numpy webdataset nvidia-dali-cuda120 optree)
"""
import os

import nvidia.dali as dali
import webdataset as wds
from nvidia.dali import fn, pipeline_def, types
from peer_bench import BATCH, SIDE, arguments, bench, encode, pictures


@pipeline_def(batch_size=BATCH, num_threads=1, device_id=None, prefetch_queue_depth=2)
def pictures_of(tars, ending, storage):
    data = fn.readers.webdataset(paths=tars, ext=[ending], missing_component_behavior="error", dont_use_mmap=False)
    return fn.decoders.image(data, device="cpu", output_type=types.RGB) if storage == "jpeg" else fn.reshape(data, shape=[SIDE, SIDE, 3])


def main():
    a = arguments(__doc__)
    for storage, ending in (("jpeg", "jpg"), ("raw", "rgb")):
        def write(paths, directory):
            os.makedirs(directory)
            with wds.ShardWriter(os.path.join(directory, "shard-%05d.tar"), maxsize=256 << 20, verbose=0) as out:
                for i, path in enumerate(paths):
                    out.write({"__key__": f"{i:08d}", ending: encode(path, storage)})

        def read(directory, epochs):
            tars = sorted(os.path.join(directory, f) for f in os.listdir(directory))
            pipeline = pictures_of(tars, ending, storage)
            pipeline.build()
            for _ in range(epochs * len(pictures(a)) // BATCH):
                yield pipeline.run()[0].as_cpu().as_array()

        bench(a, f"DALI {dali.__version__} (CPU)", storage, write, read)


if __name__ == "__main__":
    main()
