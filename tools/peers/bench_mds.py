#!/usr/bin/env python3
"""MosaicML Streaming: MDSWriter and StreamingDataset, beside tools/bench_pack and tools/bench_load.

    python3 tools/peers/bench_mds.py FOLDER [--repeat N]     (pip install pillow numpy mosaicml-streaming)
"""
import streaming
from peer_bench import arguments, bench, decode, encode


def main():
    a = arguments(__doc__)
    for storage in ("jpeg", "raw"):
        def write(paths, directory):
            with streaming.MDSWriter(out=directory, columns={"picture": "bytes", "text": "str"}, size_limit=256 << 20) as out:
                for path in paths:
                    out.write({"picture": encode(path, storage), "text": "a picture"})

        def read(directory, epochs):
            streaming.base.util.clean_stale_shared_memory()
            dataset = streaming.StreamingDataset(local=directory, remote=None, shuffle=False, batch_size=1)
            for _ in range(epochs):
                for sample in dataset:
                    yield decode(sample["picture"], storage)

        bench(a, f"MDS (streaming {streaming.__version__})", storage, write, read)


if __name__ == "__main__":
    main()
