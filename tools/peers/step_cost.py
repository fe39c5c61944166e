"""What the scripts that time a training step share: processor time beside the GEMM rate, memory, common options."""
import os
import resource
import time

import torch


def add_common(parser, steps, dtypes):
    """--dtype, --mode, --steps and --threads."""
    parser.add_argument("--dtype", choices=dtypes, default="fp32")
    parser.add_argument("--mode", choices=["eager", "compiled"], default="eager", help="eager, or under torch.compile (inductor)")
    parser.add_argument("--steps", type=int, default=steps, help="steps measured; the median counts")
    parser.add_argument("--threads", type=int, default=1)


def compute_dtype(name):
    return torch.bfloat16 if name == "bf16" else torch.float32


def resident_bytes():
    """Of this process, now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def most_resident_mib(before):
    """The most since the process began, over `before` bytes."""
    return ((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - before) / 2**20


def gemm_rate(dtype, seconds=0.2, side=768):
    """FLOP per processor second of a square product."""
    a, b = torch.randn(side, side).to(dtype), torch.randn(side, side).to(dtype)
    c = a @ b
    products, start = 0, time.process_time()
    while time.process_time() - start < seconds:
        torch.mm(a, b, out=c)
        products += 1
    return 2 * side ** 3 * products / (time.process_time() - start)


def processor():
    with open("/proc/cpuinfo") as file:
        return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
