"""LLaVA with any-resolution pictures, against transformers' LlavaNextForConditionalGeneration and LlavaOnevision.

  python gen_llava_next.py --preset next      --out ../../tests/oracles/llava_next
  python gen_llava_next.py --preset onevision --out ../../tests/oracles/llava_onevision
"""
from case import *
from transformers import (CLIPVisionConfig, LlamaConfig, LlavaNextConfig, LlavaNextForConditionalGeneration,
                          LlavaOnevisionConfig, LlavaOnevisionForConditionalGeneration, Qwen2Config, SiglipVisionConfig)
from transformers.models.llava_next.modeling_llava_next import get_anyres_image_grid_shape

SHAPE = {
    "vision_hidden": 32, "vision_inter": 64, "vision_layers": 3, "vision_heads": 4, "image_size": 28, "patch": 7,
    "hidden": 48, "inter": 96, "layers": 2, "heads": 4, "kv_heads": 2, "vocab": 151, "theta": 50000.0,
    "grids": [[1, 2], [2, 1], [2, 2], [3, 1], [1, 3]], "most_tiles": 2,  # onevision: more than this in patches is scaled down
    # (height, width) of the pictures of each sample: wide, tall, square, upscaled
    "pictures": [[[40, 100]], [[33, 21], [60, 60]]], "text": [20, 24], "new_tokens": 6,
}
a = arguments(["next", "onevision"])
S = {**SHAPE, **a.shape}
ONEVISION = a.preset == "onevision"
side, marker = S["image_size"], S["vocab"] - 1

vision = dict(hidden_size=S["vision_hidden"], intermediate_size=S["vision_inter"], num_hidden_layers=S["vision_layers"],
              num_attention_heads=S["vision_heads"], image_size=side, patch_size=S["patch"])
text = dict(vocab_size=S["vocab"], hidden_size=S["hidden"], intermediate_size=S["inter"], num_hidden_layers=S["layers"],
            num_attention_heads=S["heads"], num_key_value_heads=S["kv_heads"], max_position_embeddings=1024,
            rope_parameters={"rope_type": "default", "rope_theta": S["theta"]})
common = dict(image_token_index=marker, image_grid_pinpoints=[[side * r, side * c] for r, c in S["grids"]])
if ONEVISION:
    config = LlavaOnevisionConfig(
        vision_config=SiglipVisionConfig(vision_use_head=False, **vision),
        text_config=Qwen2Config(rms_norm_eps=1e-6, tie_word_embeddings=True, bos_token_id=None, eos_token_id=S["vocab"] - 2, **text),
        video_token_index=S["vocab"] - 3, vision_feature_layer=-1, vision_feature_select_strategy="full",
        vision_aspect_ratio=f"anyres_max_{S['most_tiles']}", tie_word_embeddings=True, **common)
    model = LlavaOnevisionForConditionalGeneration._from_config(config, attn_implementation="sdpa").eval()
else:
    config = LlavaNextConfig(
        vision_config=CLIPVisionConfig(projection_dim=S["vision_hidden"], **vision),
        text_config=LlamaConfig(rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2, **text),
        vision_feature_layer=-2, vision_feature_select_strategy="default", **common)
    model = LlavaNextForConditionalGeneration._from_config(config, attn_implementation="sdpa").eval()
randomise(model, a.seed)
model.tie_weights()


def published(name):
    """Name of a parameter in the layout of the published llava-hf checkpoints."""
    name = name.removeprefix("model.")
    for memory, disk in (("vision_tower.", "vision_tower.vision_model."), ("language_model.", "language_model.model."),
                         ("lm_head", "language_model.lm_head")):
        if name.startswith(memory):
            return name.replace(memory, disk, 1)
    return name


sizes = [picture for sample in S["pictures"] for picture in sample]
grids = [get_anyres_image_grid_shape(size, config.image_grid_pinpoints, side) for size in sizes]
pixels = torch.cat([normal(a.seed, f"pixels{i}", 1 + rows * columns, 3, side, side)
                    for i, (rows, columns) in enumerate(grids)])
image_sizes = torch.tensor(sizes)


def features(m, given):
    return torch.cat(list(m.get_image_features(pixel_values=given["pixel_values"], image_sizes=image_sizes).pooler_output))


with torch.no_grad():
    counts = [f.shape[0] for f in model.get_image_features(pixel_values=pixels, image_sizes=image_sizes).pooler_output]
left = iter(counts)
placeholders = [[[marker] * next(left) for _ in sample] for sample in S["pictures"]]
lengths = [extra + sum(len(p) for p in sample) for extra, sample in zip(S["text"], placeholders)]
ids, mask, labels = conversations(a.seed, S["vocab"], lengths, placeholders)
inputs = {"input_ids": ids, "attention_mask": mask, "pixel_values": pixels, "image_sizes": image_sizes}

# Greedy tokens behind the first sample's prompt.
tiles = 1 + grids[0][0] * grids[0][1]
prompt = int((labels[0] != -100).nonzero()[0])
answer = greedy(model, lambda row: {"input_ids": row, "attention_mask": torch.ones_like(row),
                                    "pixel_values": pixels[:tiles], "image_sizes": image_sizes[:1]},
                ids[0], prompt, S["new_tokens"], [marker])

small = ("norm", "bias", "multi_modal_projector", "image_newline", "class_embedding", "position_embedding", "layers.0.self_attn.k_proj")
write_folder(a.out, f"LLaVA any resolution, {a.preset}", a.seed, S, model, published, inputs, labels, features,
             {"io": {"image_sizes": image_sizes}, "image_token_id": marker, "image_tokens": counts,
              "tile_grids": [[int(r), int(c)] for r, c in grids], "greedy": {"prompt": prompt, "tokens": answer}},
             lambda n: any(word in n for word in small),
             ["image_newline", "multi_modal_projector.linear_1.bias", "multi_modal_projector.linear_2.weight",
              "language_model.model.norm.weight", "language_model.model.layers.0.self_attn.q_proj.weight",
              "vision_tower.vision_model.embeddings.position_embedding.weight"])
