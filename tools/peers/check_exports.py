#!/usr/bin/env python3
"""Loads what mmckpt wrote with transformers and peft, and compares.

  check_exports.py merged BASE ADAPTER MERGED   logits of peft's model and of the merged directory agree
  check_exports.py load DIR [PICTURE]           transformers loads model, tokenizer and processor of DIR, and answers

BASE, MERGED, DIR: Hugging Face LLaVA directories; ADAPTER: `mmckpt convert RUN ADAPTER --to peft`. Needs transformers 5.24, peft 0.21, torch 2.11.
"""
import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
from transformers import AutoProcessor, LlavaForConditionalGeneration


def load(directory):
    model, report = LlavaForConditionalGeneration.from_pretrained(directory, dtype=torch.float32, output_loading_info=True)
    strange = {k: v for k, v in report.items() if v}
    assert not strange, f"{directory}: {strange}"
    return model.eval()


def inputs_of(model):
    config, made = model.config, torch.Generator().manual_seed(5)
    side, marker = config.vision_config.image_size, config.image_token_index
    patches = (side // config.vision_config.patch_size) ** 2 + (config.vision_feature_select_strategy == "full")
    words = torch.randint(3, min(config.text_config.vocab_size, marker), (12,), generator=made)
    ids = torch.cat([words[:4], torch.full((patches,), marker), words[4:]])[None]
    return {"input_ids": ids, "pixel_values": torch.randn(1, 3, side, side, generator=made)}


def merged(base, adapter, directory):
    from peft import PeftModel

    plain = load(base)
    inputs = inputs_of(plain)
    with torch.no_grad():
        before = plain(**inputs).logits
        adapted = PeftModel.from_pretrained(plain, adapter).eval()(**inputs).logits
        ours = load(directory)(**inputs).logits
    moved = float((adapted - before).norm() / before.norm())
    error = float((adapted - ours).norm() / adapted.norm())
    print(f"adapter moves the logits by {moved:.3g}, merged directory differs from peft by {error:.3g}")
    assert error < 1e-5 and moved > 100 * error


def loads(directory, picture=None):
    model, processor = load(directory), AutoProcessor.from_pretrained(directory)
    print(type(processor).__name__, type(processor.image_processor).__name__, type(processor.tokenizer).__name__)
    marker = processor.tokenizer.convert_tokens_to_ids("<image>")
    assert marker == model.config.image_token_index, f"<image> is {marker}, config.json says {model.config.image_token_index}"
    if picture:
        from PIL import Image

        inputs = processor(images=Image.open(picture).convert("RGB"), text="<image>", return_tensors="pt")
        said = model.generate(**inputs, max_new_tokens=12, do_sample=False)[0, inputs["input_ids"].shape[1]:]
        print(said.tolist(), repr(processor.tokenizer.decode(said)))


if __name__ == "__main__":
    verbs = {"merged": merged, "load": loads}
    if len(sys.argv) < 3 or sys.argv[1] not in verbs:
        sys.exit(__doc__)
    verbs[sys.argv[1]](*sys.argv[2:])
