#!/usr/bin/env python3
"""Loads with transformers the text encoder that mmckpt wrote beside a PixArt of ours, and compares it with plain torch.

  check_text_export.py DIR [CAPTION ...]

DIR: `mmckpt convert RUN DIR`. The reference is computed from DIR's own file (tensors `text_encoder.`) by the formulas of lib/model/caption_encoder.h.
Needs transformers 5.24, torch 2.11, safetensors.
"""
import json
import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from transformers import AutoTokenizer, MegatronBertModel


def reference(weights, heads, ids):
    w = {k.removeprefix("text_encoder."): v.double() for k, v in weights.items() if k.startswith("text_encoder.")}
    linear = lambda name, x: F.linear(x, w[name + ".weight"], w[name + ".bias"])
    norm = lambda name, x: F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], 1e-5)
    split = lambda x: x.view(len(ids), heads, -1).transpose(0, 1)
    x = w["embed_tokens.weight"][ids] + w["position_embedding.weight"][: len(ids)]
    for i in range(sum(k.endswith("mlp.fc1.weight") for k in w)):
        at = f"layers.{i}."
        n = norm(at + "layer_norm1", x)
        q, k, v = (split(linear(at + f"self_attn.{p}_proj", n)) for p in "qkv")
        mixed = F.softmax(q @ k.transpose(1, 2) / q.shape[-1] ** 0.5, -1) @ v
        x = x + linear(at + "self_attn.out_proj", mixed.transpose(0, 1).reshape(len(ids), -1))
        x = x + linear(at + "mlp.fc2", F.gelu(linear(at + "mlp.fc1", norm(at + "layer_norm2", x)), approximate="tanh"))
    return norm("final_layer_norm", x)


def main(directory, captions):
    weights = {}
    for name in os.listdir(directory):
        if name.endswith(".safetensors"):
            weights |= load_file(os.path.join(directory, name))
    heads = json.load(open(os.path.join(directory, "config.json")))["caption_encoder"]["num_attention_heads"]
    text = os.path.join(directory, "text_encoder")
    model, report = MegatronBertModel.from_pretrained(text, add_pooling_layer=False, dtype=torch.float64, output_loading_info=True)
    strange = {k: v for k, v in report.items() if v}
    assert not strange, strange
    tokenizer = AutoTokenizer.from_pretrained(text) if os.path.exists(os.path.join(text, "tokenizer.json")) else None
    vocab = model.config.vocab_size
    lists = [tokenizer(c)["input_ids"] for c in captions] if tokenizer and captions else [
        torch.randint(0, vocab, (n,), generator=torch.Generator().manual_seed(n)).tolist() for n in (1, 5, model.config.max_position_embeddings)]
    longest, worst = max(map(len, lists)), 0.0
    ids = torch.tensor([l + [0] * (longest - len(l)) for l in lists])
    mask = torch.tensor([[1] * len(l) + [0] * (longest - len(l)) for l in lists])
    with torch.no_grad():
        states = model.eval()(ids, attention_mask=mask).last_hidden_state
    for l, state in zip(lists, states):
        want = reference(weights, heads, torch.tensor(l))
        worst = max(worst, float((state[: len(l)] - want).norm() / want.norm()))
    print(f"{len(lists)} captions of up to {longest} tokens: differ by {worst:.2g}")
    assert worst < 1e-6


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
