"""Processor time and memory of a DiT training step (forward, backward, AdamW) by diffusers, eager or compiled.

The model and batch are those of tools/bench_dit (DiT-S/2: 12 layers of 384 with 6 heads, latents 32 x 32 x 4, learned sigma, one embedder for all blocks,
squared error of the noise). AdamW is torch.optim.AdamW as it comes, or with --fused. bf16 is the whole model in bf16, its moments too; mmkit keeps masters,
gradients and moments in fp32 there. One thread; time is processor time of the process; memory is the most that the process had resident over what it had
before the model was made, compiling included.

    bench_dit.py --dtype bf16 --mode compiled
"""
import argparse
import statistics
import time

import diffusers
import torch
from diffusers import DiTTransformer2DModel

from step_cost import add_common, compute_dtype, gemm_rate, most_resident_mib, processor, resident_bytes


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common(parser, steps=5, dtypes=["fp32", "bf16"])
    parser.add_argument("--pictures", type=int, default=4)
    parser.add_argument("--side", type=int, default=32, help="of the latents")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--heads", type=int, default=6, help="of 64")
    parser.add_argument("--fused", action="store_true", help="AdamW(fused=True)")
    return parser.parse_args()


def make_model(a, dtype):
    model = DiTTransformer2DModel(num_attention_heads=a.heads, attention_head_dim=64, in_channels=4, out_channels=8, num_layers=a.layers,
                                  sample_size=a.side, patch_size=2, num_embeds_ada_norm=1000, activation_fn="gelu-approximate", norm_eps=1e-6)
    for block in model.transformer_blocks[1:]:
        block.norm1.emb = model.transformer_blocks[0].norm1.emb
    return model.to(dtype).train()


def flops_of(a):
    """Of a forward and a backward, 2 a multiply-add: linear layers and attention."""
    hidden, patches = 64 * a.heads, (a.side // 2) ** 2
    layer = 24 * patches * hidden ** 2 + 4 * patches ** 2 * hidden + 12 * hidden ** 2
    ends = 2 * patches * hidden * (16 + 32) + 2 * (256 * hidden + hidden ** 2) + 4 * hidden ** 2
    return 3 * a.pictures * (a.layers * layer + ends)


def main():
    a = arguments()
    torch.set_num_threads(a.threads)
    torch.set_flush_denormal(True)
    dtype = compute_dtype(a.dtype)
    gemm_rate(dtype, 0.1)
    before = resident_bytes()
    torch.manual_seed(1)
    model = make_model(a, dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.0, fused=True if a.fused else None)
    noisy, noise = torch.randn(2, a.pictures, 4, a.side, a.side).to(dtype)
    times = torch.arange(a.pictures) * 1000 // a.pictures
    labels = torch.arange(a.pictures) * 37 % 1000

    def loss_of(x, target):
        return torch.nn.functional.mse_loss(model(x, timestep=times, class_labels=labels).sample[:, :4].float(), target.float())

    step = torch.compile(loss_of) if a.mode == "compiled" else loss_of
    gradients, updates, shares, wide_shares = [], [], [], []
    warm = time.monotonic()
    for turn in range(a.steps + 2):
        if turn == 2:
            warm = time.monotonic() - warm
        own = gemm_rate(dtype)
        wide = gemm_rate(torch.float32) if a.dtype == "bf16" else own
        start = time.process_time()
        optimizer.zero_grad(set_to_none=True)
        step(noisy, noise).backward()
        middle = time.process_time()
        optimizer.step()
        gradients.append(middle - start)
        updates.append(time.process_time() - middle)
        shares.append(flops_of(a) / gradients[-1] / own)
        wide_shares.append(flops_of(a) / gradients[-1] / wide)
    whole = [g + u for g, u in zip(gradients, updates)]
    g, u, w, share, wide_share = (statistics.median(x[2:]) for x in (gradients, updates, whole, shares, wide_shares))
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{processor()}, torch {torch.__version__}, diffusers {diffusers.__version__}, {torch.get_num_threads()} thread(s); first two steps {warm:.0f} s")
    print(f"diffusers DiT {parameters / 1e6:.1f}M {a.dtype} {a.mode}{' fused AdamW' if a.fused else ''}, {a.pictures} pictures of {a.side} x {a.side} "
          f"latents: step {w * 1e3:.0f} ms (forward and backward {g * 1e3:.0f}, AdamW {u * 1e3:.0f}), {flops_of(a) / 1e9:.1f} GFLOP, forward and backward at "
          f"{share:.3f} of the {a.dtype} and {wide_share:.3f} of the fp32 GEMM rate; memory: process +{most_resident_mib(before):.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
