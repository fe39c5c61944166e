#!/usr/bin/env python3
"""FFCV: DatasetWriter with one worker and Loader with one thread, beside tools/bench_pack and tools/bench_load.

    python3 tools/peers/bench_ffcv.py FOLDER [--repeat N]     (pip install pillow numpy ffcv; needs OpenCV's and libjpeg-turbo's headers)
"""
import os

import ffcv
import numpy as np
from ffcv.fields import RGBImageField
from ffcv.fields.decoders import SimpleRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.writer import DatasetWriter
from peer_bench import BATCH, QUALITY, arguments, bench, prepare


class Pictures:
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return (np.asarray(prepare(self.paths[i])),)


def main():
    a = arguments(__doc__)
    for storage, mode in (("jpeg", "jpg"), ("raw", "raw")):
        def write(paths, directory):
            os.makedirs(directory)
            field = RGBImageField(write_mode=mode, jpeg_quality=QUALITY)
            DatasetWriter(os.path.join(directory, "set.beton"), {"picture": field}, num_workers=1).from_indexed_dataset(Pictures(paths))

        def read(directory, epochs):
            loader = Loader(os.path.join(directory, "set.beton"), batch_size=BATCH, num_workers=1, order=OrderOption.SEQUENTIAL,
                            pipelines={"picture": [SimpleRGBImageDecoder()]})
            for _ in range(epochs):
                for (batch,) in loader:
                    yield batch

        bench(a, f"FFCV {ffcv.__version__}", storage, write, read)


if __name__ == "__main__":
    main()
