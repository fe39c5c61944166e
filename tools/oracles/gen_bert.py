"""BERT as sentence encoders have it, against transformers' BertModel: padded rows, with and without its own pooler.

  python gen_bert.py --out ../../tests/oracles/text_bert
"""
from case import *
from transformers import BertConfig, BertModel

SHAPE = {"vocab": 140, "hidden": 48, "inter": 96, "layers": 3, "heads": 4, "positions": 64, "lengths": [30, 11, 2]}
a = arguments(["bert"])
S = {**SHAPE, **a.shape}
config = BertConfig(vocab_size=S["vocab"], hidden_size=S["hidden"], intermediate_size=S["inter"], num_hidden_layers=S["layers"],
                    num_attention_heads=S["heads"], max_position_embeddings=S["positions"])
ids = torch.zeros(len(S["lengths"]), max(S["lengths"]), dtype=torch.long)
for row, count in enumerate(S["lengths"]):
    ids[row, :count] = integers(a.seed, f"ids{row}", 1, S["vocab"], count)
mask = torch.zeros_like(ids)
for row, count in enumerate(S["lengths"]):
    mask[row, :count] = 1

io = {}
for name, pooler in (("bert", True), ("bert_bare", False)):
    model = BertModel(config, add_pooling_layer=pooler).eval()
    randomise(model, a.seed)
    with torch.no_grad():
        hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state
    kept = mask.unsqueeze(-1)
    os.makedirs(f"{a.out}/{name}", exist_ok=True)
    model.config.architectures = ["BertModel"]
    model.config.save_pretrained(f"{a.out}/{name}")
    save_file({n: p.detach().contiguous() for n, p in model.named_parameters()}, f"{a.out}/{name}/model.safetensors",
              metadata={"format": "pt"})
    io |= {f"{name}/input_ids": ids.clone(), f"{name}/attention_mask": mask.clone(), f"{name}/last_hidden_state": hidden,
           f"{name}/mean_pooled": (hidden * kept).sum(1) / kept.sum(1)}
save_file(io, f"{a.out}/io.safetensors")
with open(f"{a.out}/expected.json", "w", encoding="utf-8") as f:
    json.dump({"what": "text encoders", "seed": a.seed, "shape": S}, f, indent=1)
    f.write("\n")
