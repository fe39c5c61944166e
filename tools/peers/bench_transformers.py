"""Processor time and memory of a LLaVA training step (forward, backward, AdamW with --optimizer) by transformers, eager or compiled.

The models and batches are those of tools/bench_llava (shapes 50m and 300m, samples of one picture and 20 to 150 text tokens, half of them targets),
padded to the longest sample with an attention mask, as a data collator does. One thread; time is processor time of the process; memory is the most
that the process had resident over what it had before the model was made. bf16 is the whole model in bf16 (its gradients and moments too); autocast keeps
weights, gradients and moments in fp32 and multiplies in bf16, as mmkit's bf16 does. Prints one line like bench_llava's.

    bench_transformers.py --shape 50m --dtype bf16 --mode compiled
"""
import argparse
import statistics
import time

import torch
import transformers
from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration

from step_cost import add_common, compute_dtype, gemm_rate, most_resident_mib, resident_bytes


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", choices=["50m", "300m"], default="50m")
    add_common(parser, steps=3, dtypes=["fp32", "bf16", "autocast"])
    parser.add_argument("--attention", choices=["sdpa", "eager"], default="sdpa")
    parser.add_argument("--tokens", type=int, default=2048, help="real tokens at most")
    parser.add_argument("--flush-denormals", action="store_true")
    parser.add_argument("--optimizer", action="store_true", help="torch.optim.AdamW too")
    return parser.parse_args()


def model_config(a):
    small = a.shape == "50m"
    vocab = 16000 if small else 32000
    vision = CLIPVisionConfig(hidden_size=384 if small else 768, intermediate_size=1536 if small else 3072, num_hidden_layers=7 if small else 13,
                              num_attention_heads=6 if small else 12, image_size=112, patch_size=16)
    text = LlamaConfig(vocab_size=vocab, hidden_size=512 if small else 1024, intermediate_size=1408 if small else 2816,
                       num_hidden_layers=8 if small else 14, num_attention_heads=8 if small else 16, num_key_value_heads=4 if small else 8,
                       head_dim=64, max_position_embeddings=2048)
    return LlavaConfig(vision_config=vision, text_config=text, image_token_index=vocab - 1, image_seq_length=49, vision_feature_layer=-2)


def batch_of(a, config, dtype):
    patches, lengths = 49, []
    while True:
        length = patches + 20 + len(lengths) * 53 % 131
        if lengths and sum(lengths) + length > a.tokens:
            break
        lengths.append(length)
    rows, longest = len(lengths), max(lengths)
    ids = torch.zeros(rows, longest, dtype=torch.long)
    mask, labels = torch.zeros_like(ids), torch.full_like(ids, -100)
    for row, length in enumerate(lengths):
        start = patches + (length - patches) // 2 + 1
        ids[row, :length] = torch.arange(length) * 31 % 15000
        ids[row, :patches] = config.image_token_index
        mask[row, :length] = 1
        labels[row, start:length] = torch.arange(start, length) * 17 % 15000
    pixels = torch.randn(rows, 3, 112, 112).to(dtype)
    return {"input_ids": ids, "attention_mask": mask, "labels": labels, "pixel_values": pixels}, sum(lengths), int((labels >= 0).sum())


def main():
    a = arguments()
    torch.set_num_threads(a.threads)
    if a.flush_denormals:
        torch.set_flush_denormal(True)
    dtype = compute_dtype(a.dtype)
    gemm_rate(dtype, 0.1)
    before = resident_bytes()
    torch.manual_seed(1)
    config = model_config(a)
    config._attn_implementation = a.attention
    model = LlavaForConditionalGeneration(config).to(dtype).train()
    batch, real, targets = batch_of(a, config, dtype)
    step = torch.compile(model) if a.mode == "compiled" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5) if a.optimizer else None
    width = 2 if a.dtype == "bf16" else 4
    each = f"weight {width} + gradient {width}" + (" + copy 2" if a.dtype == "autocast" else "") + (f" + moments {2 * width}" if a.optimizer else "")
    times, rates, warm = [], [], time.monotonic()
    for turn in range(a.steps + (2 if a.mode == "compiled" else 1)):
        model.zero_grad(set_to_none=True)
        rates.append(gemm_rate(torch.float32))
        start = time.process_time()
        with torch.autocast("cpu", torch.bfloat16, enabled=a.dtype == "autocast"):
            loss = step(**batch, use_cache=False).loss
        loss.backward()
        if optimizer:
            optimizer.step()
        times.append(time.process_time() - start)
        if turn == 0:
            warm = time.monotonic() - warm
    times = times[-a.steps:]
    middle = statistics.median(times)
    parameters = sum(p.numel() for p in model.parameters())
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, {torch.get_num_threads()} thread(s)")
    print(f"transformers {a.shape} {parameters / 1e6:.0f}M {a.dtype} {a.mode} {a.attention}: {real} real of {batch['input_ids'].numel()} tokens, "
          f"{len(batch['pixel_values'])} pictures, {targets} targets; step {middle * 1e3:.0f} ms, {real / middle:.0f} real tokens/s; fp32 GEMM rate "
          f"{statistics.median(rates) / 1e9:.0f} GFLOP/s; first step {warm:.0f} s; memory: process "
          f"+{most_resident_mib(before):.0f} MiB; bytes a parameter: {each}", flush=True)


if __name__ == "__main__":
    main()
