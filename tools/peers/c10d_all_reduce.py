"""all_reduce over Gloo by a plain c10d script: one line a size with time and bus bandwidth.

Two ranks of this machine: python3 c10d_all_reduce.py
"""
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run(rank, world, sizes):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29655", RANK=str(rank), WORLD_SIZE=str(world))
    dist.init_process_group("gloo")
    for size in sizes:
        tensor = torch.zeros(size // 4)
        dist.all_reduce(tensor)
        dist.barrier()
        start = time.perf_counter()
        for _ in range(20):
            dist.all_reduce(tensor)
        seconds = (time.perf_counter() - start) / 20
        if rank == 0:
            print(f"{size:>12} {1e6 * seconds:>10.1f} us {1e-9 * size / seconds * 2 * (world - 1) / world:.3f} GB/s", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    mp.spawn(run, args=(ranks, [4 << 10, 1 << 20, 16 << 20, 64 << 20]), nprocs=ranks)
