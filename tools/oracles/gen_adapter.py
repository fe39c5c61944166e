"""A LoRA adapter written by the peft package (0.21) on the llava oracle's model, and what that model says with it.

  python gen_adapter.py --model ../../tests/oracles/llava --out ../../tests/oracles/llava_peft

adapter_config.json and adapter_model.safetensors are peft's own files; io.safetensors holds the logits of the first
sample's last positions and one merged weight. Language model: rank 4 on three kinds of linears, the projector is saved
whole. Deterministic on one CPU.
"""
import argparse
import json
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import LlavaForConditionalGeneration

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
parser.add_argument("--out", required=True)
given = parser.parse_args()
torch.manual_seed(3)
torch.set_num_threads(1)

base = LlavaForConditionalGeneration.from_pretrained(given.model, dtype=torch.float32, attn_implementation="eager")
# The tower has layers of these names too: only the language model's are meant.
config = LoraConfig(r=4, lora_alpha=10, target_modules=["q_proj", "v_proj", "up_proj"], exclude_modules=".*vision_tower.*",
                    modules_to_save=["multi_modal_projector"], init_lora_weights=False)
model = get_peft_model(base, config).eval()
with torch.no_grad():
    for name, parameter in model.named_parameters():
        if "modules_to_save" in name:
            parameter.add_(torch.randn_like(parameter) * 0.05)
model.save_pretrained(given.out)
path = os.path.join(given.out, "adapter_config.json")
stated = json.load(open(path))
stated["base_model_name_or_path"] = "llava"
json.dump(stated, open(path, "w"), indent=2, sort_keys=True)
if os.path.exists(os.path.join(given.out, "README.md")):
    os.remove(os.path.join(given.out, "README.md"))

io = load_file(os.path.join(given.model, "io.safetensors"))
length = int(io["attention_mask"][0].sum())
with torch.no_grad():
    logits = model(input_ids=io["input_ids"][:1, :length], pixel_values=io["pixel_values"][:1]).logits[0, -6:]
    merged = model.merge_and_unload()
    weight = merged.model.language_model.layers[0].self_attn.q_proj.weight.clone()
save_file({"logits": logits.contiguous(), "q_proj": weight.contiguous()}, os.path.join(given.out, "io.safetensors"))
