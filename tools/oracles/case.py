"""What the generators share: seeded random weights, and a folder of reference numbers from one model and one batch.

Deterministic: the same seed and shape give the same files (same package versions, CPU). Everything is float32; the same
code in float64 measures its rounding. The layout of a folder is that of tests/oracles/README.md.
"""
import argparse
import contextlib
import copy
import json
import math
import os
import zlib

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
from safetensors.torch import save_file

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)

OPTIMIZER = {"lr": 1e-3, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1, "clip_global_norm": 1.0, "steps": 10}


def arguments(presets):
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True, help="folder to write")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--preset", default=presets[0], choices=presets)
    parser.add_argument("--shape", default="{}", help="JSON object that overrides entries of the default shape")
    given = parser.parse_args()
    given.shape = json.loads(given.shape)
    os.makedirs(given.out, exist_ok=True)
    return given


def generator(seed, tag):
    """One of its own for every tensor, so that adding a tensor changes no other."""
    made = torch.Generator()
    made.manual_seed((seed * 1000003 + zlib.crc32(tag.encode())) % (2**63))
    return made


def normal(seed, tag, *shape, std=1.0):
    return torch.randn(*shape, generator=generator(seed, tag), dtype=torch.float32) * std


def integers(seed, tag, low, high, *shape):
    return torch.randint(low, high, shape, generator=generator(seed, tag))


def randomise(model, seed):
    """Values of sensible size everywhere: nothing stays zero or one."""
    with torch.no_grad():
        modules = dict(model.named_modules())
        for name, parameter in model.named_parameters():
            owner = modules[name.rpartition(".")[0]]
            if parameter.ndim >= 2:
                fan = parameter.shape[-1] if isinstance(owner, torch.nn.Embedding) else parameter[0].numel()
                parameter.copy_(normal(seed, name, *parameter.shape, std=1 / math.sqrt(fan)))
            elif "norm" in type(owner).__name__.lower() and name.endswith("weight"):
                parameter.copy_(1 + normal(seed, name, *parameter.shape, std=0.1))
            else:
                parameter.copy_(normal(seed, name, *parameter.shape, std=0.1))


@contextlib.contextmanager
def in_float64():
    """Code that names torch.float32 or calls .float() stays in float64."""
    single, to_single = torch.float32, torch.Tensor.float
    torch.float32, torch.Tensor.float, torch.float = torch.float64, torch.Tensor.double, torch.float64
    try:
        yield
    finally:
        torch.float32, torch.Tensor.float, torch.float = single, to_single, single


def widened(value):
    if isinstance(value, dict):
        return {key: widened(v) for key, v in value.items()}
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def length(tensor):
    return float(tensor.detach().double().norm())


def distance(a, b):
    return length(a.double() - b.double()) / max(length(b), 1e-300)


def apart(a, b):
    a, b = (x.item() if isinstance(x, torch.Tensor) else x for x in (a, b))
    return abs(a - b) / max(abs(b), 1e-300)


def gradients(model, loss):
    model.zero_grad(set_to_none=True)
    loss.backward()
    return {n: p.grad.detach().clone() for n, p in model.named_parameters() if p.grad is not None}


def decays(parameter):
    """The rule of these folders: what has fewer than two dimensions does not decay."""
    return parameter.ndim >= 2


def ten_steps(model, loss_of, trained):
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(trained(name))
    moving = [p for _, p in model.named_parameters() if p.requires_grad]
    groups = [{"params": [p for p in moving if decays(p)], "weight_decay": OPTIMIZER["weight_decay"]},
              {"params": [p for p in moving if not decays(p)], "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, lr=OPTIMIZER["lr"], betas=OPTIMIZER["betas"], eps=OPTIMIZER["eps"])
    losses, norms = [], []
    for _ in range(OPTIMIZER["steps"]):
        adamw.zero_grad(set_to_none=True)
        loss = loss_of(model)
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_([p for p in moving if p.grad is not None],
                                                          OPTIMIZER["clip_global_norm"])))
        adamw.step()
        losses.append(loss.item())
    return losses, norms, loss_of(model).item()


def save_tensors(path, tensors):
    single = {k: (v.float() if v.is_floating_point() else v).detach().contiguous().clone() for k, v in tensors.items()}
    save_file(single, path, metadata={"format": "pt"})


def save_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.write("\n")


def conversations(seed, vocab, lengths, pictures):
    """Padded ids, mask and labels. `pictures[b]` are lists of ids that stand for the pictures of row b; they come
    early, a text token between them. Ids 5 to vocab - 12 are text."""
    rows, width = len(lengths), max(lengths)
    ids = torch.zeros(rows, width, dtype=torch.long)
    mask = torch.zeros(rows, width, dtype=torch.long)
    labels = torch.full((rows, width), -100, dtype=torch.long)
    for b, n in enumerate(lengths):
        body = integers(seed, f"ids{b}", 5, vocab - 12, n)
        body[0] = 1
        at = 2
        for picture in pictures[b]:
            body[at:at + len(picture)] = torch.tensor(picture)
            at += len(picture) + 1
        start = min(at + 3, n - 4)
        assert at < start, f"row {b}: {n} tokens are too few for its pictures"
        ids[b, :n], mask[b, :n] = body, 1
        labels[b, start:n] = body[start:n]
        labels[b, start + 1] = -100  # a hole inside the answer
    return ids, mask, labels


def write_folder(out, what, seed, shape, model, published, inputs, labels, features, settings, shown, after):
    """`inputs` go to the model, and with `labels` and `settings["io"]` into io.safetensors. `features(model, inputs)` gives
    what replaces the placeholders. `shown(name)`: gradients kept in full; `after`: parameters kept after ten steps."""
    forward = lambda m, given: m(**given, labels=labels)
    result = forward(model, inputs)
    hidden = model.model(**inputs).last_hidden_state
    shown_features = features(model, inputs)
    grads = gradients(model, result.loss)
    wide, wide_inputs = copy.deepcopy(model).double(), widened(inputs)
    with in_float64():
        wide_features = features(wide, wide_inputs)
        wide_result = forward(wide, wide_inputs)
        wide_grads = gradients(wide, wide_result.loss)
    total = math.sqrt(sum(length(g)**2 for g in wide_grads.values()))
    null = sorted(n for n, g in wide_grads.items() if length(g) < 1e-11 * total)
    worst = max((distance(grads[n], wide_grads[n]), n) for n in grads if n not in null)

    start = dict(model.named_parameters())
    save_tensors(f"{out}/model.safetensors", {published(n): p for n, p in start.items()})
    model.config.save_pretrained(out)
    kept = inputs["attention_mask"].bool()
    io = {"labels": labels, "image_features": shown_features, "final_hidden": hidden, "logits": result.logits,
          **settings.pop("io"), **{k: v for k, v in inputs.items() if k in ("input_ids", "attention_mask", "pixel_values")}}
    io.update({"grad/" + published(n): g for n, g in grads.items() if shown(n)})

    train = {}
    for tag, trained in (("vision_frozen", lambda n: "visual.blocks" not in n and "visual.patch" not in n and "vision_tower" not in n),
                         ("all_trained", lambda n: True)):
        narrow, double = copy.deepcopy(model), copy.deepcopy(model).double()
        for m in (narrow, double):
            m.tie_weights()
        losses, norms, last = ten_steps(narrow, lambda m: forward(m, inputs).loss, trained)
        with in_float64():
            wide_losses, _, wide_last = ten_steps(double, lambda m: forward(m, wide_inputs).loss, trained)
        way = {n: length(p - start[n]) for n, p in narrow.named_parameters()}
        wide_end = dict(double.named_parameters())
        errors = sorted(length(p.double() - wide_end[n]) / way[n] for n, p in narrow.named_parameters()
                        if way[n] > 0 and n not in null)
        train[tag] = {
            "losses": losses, "loss_after": last, "grad_norms_before_clip": norms,
            "losses_float64": wide_losses, "loss_after_float64": wide_last,
            "measured_worst_rel_loss_vs_float64": max(apart(x, y) for x, y in zip(losses, wide_losses)),
            "param_change_l2": {published(n): d for n, d in sorted(way.items()) if d > 0},
            "measured_rel_param_change_vs_float64": {"median": errors[len(errors) // 2], "worst": errors[-1]},
        }
        for n, p in narrow.named_parameters():
            if published(n) in after:
                io[f"after10/{tag}/" + published(n)] = p
    save_tensors(f"{out}/io.safetensors", io)
    save_json(f"{out}/expected.json", {
        "what": what, "seed": seed, "shape": shape, **settings,
        "tied_embeddings": bool(model.config.tie_word_embeddings),
        "loss": result.loss.item(), "loss_float64": wide_result.loss.item(),
        "supervised_tokens": int((labels[:, 1:] != -100).sum()),
        "gradients": {"l2": {published(n): length(g) for n, g in sorted(grads.items())},
                      "total_l2": math.sqrt(sum(length(g)**2 for g in grads.values())),
                      "null_grad_params": [published(n) for n in null],
                      "measured_worst_rel_l2_vs_float64": {"value": worst[0], "param": published(worst[1])}},
        "params_without_gradient": sorted(published(n) for n in start if n not in grads),
        "optimizer": {"name": "AdamW", **OPTIMIZER, "same_batch_every_step": True,
                      "no_decay": sorted(published(n) for n, p in start.items() if not decays(p))},
        "train": train,
        "measured": {"image_features_f32_vs_f64": distance(shown_features, wide_features),
                     "logits_f32_vs_f64": distance(result.logits[kept], wide_result.logits[kept]),
                     "loss_f32_vs_f64_rel": apart(result.loss, wide_result.loss)},
        "logits_std": float(result.logits[kept].std()),
    })
    print(what, "loss", result.loss.item(), wide_result.loss.item(), "gradients", worst,
          {t: r["measured_rel_param_change_vs_float64"] for t, r in train.items()})
    return result


def greedy(model, inputs, row, prompt, count, banned):
    """The `count` most likely tokens behind the first `prompt` tokens of `row`, one full pass a token. `inputs(ids)`
    gives the model's inputs for one row of ids."""
    ids = row[:prompt].tolist()
    for _ in range(count):
        with torch.no_grad():
            logits = model(**inputs(torch.tensor([ids]))).logits[0, -1].clone()
        logits[banned] = -math.inf
        ids.append(int(logits.argmax()))
    return ids[prompt:]
