"""Qwen2.5-VL, against transformers' Qwen2_5_VLForConditionalGeneration.

  python gen_qwen2_5_vl.py --out ../../tests/oracles/qwen2_5_vl
"""
from case import *
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

SHAPE = {
    "vision_hidden": 32, "vision_inter": 44, "vision_layers": 3, "vision_heads": 2, "patch": 4, "window": 16, "full": [1],
    "hidden": 48, "inter": 96, "layers": 2, "heads": 3, "kv_heads": 1, "sections": [2, 3, 3], "vocab": 151, "theta": 50000.0,
    # (height, width) in patches of the pictures of each sample: whole windows, cut windows, one row, smaller than a window
    "pictures": [[[8, 8]], [[6, 10], [2, 2]], []], "text": [20, 26, 15], "new_tokens": 6,
}
a = arguments(["qwen2_5_vl"])
S = {**SHAPE, **a.shape}
patch, marker, opening, closing = S["patch"], S["vocab"] - 1, S["vocab"] - 4, S["vocab"] - 3

config = Qwen2_5_VLConfig(
    vision_config=dict(depth=S["vision_layers"], hidden_size=S["vision_hidden"], intermediate_size=S["vision_inter"],
                       num_heads=S["vision_heads"], patch_size=patch, window_size=S["window"], out_hidden_size=S["hidden"],
                       fullatt_block_indexes=S["full"], spatial_merge_size=2, temporal_patch_size=2),
    text_config=dict(vocab_size=S["vocab"], hidden_size=S["hidden"], intermediate_size=S["inter"], num_hidden_layers=S["layers"],
                     num_attention_heads=S["heads"], num_key_value_heads=S["kv_heads"], max_position_embeddings=1024,
                     rms_norm_eps=1e-6, bos_token_id=None, eos_token_id=S["vocab"] - 2,
                     rope_parameters={"rope_type": "default", "rope_theta": S["theta"], "mrope_section": S["sections"]}),
    image_token_id=marker, video_token_id=S["vocab"] - 5, vision_start_token_id=opening, vision_end_token_id=closing,
    tie_word_embeddings=False)
model = Qwen2_5_VLForConditionalGeneration._from_config(config, attn_implementation="sdpa").eval()
randomise(model, a.seed)


def published(name):
    """Name of a parameter in the layout of the published checkpoints."""
    for memory, disk in (("model.visual.", "visual."), ("model.language_model.", "model.")):
        if name.startswith(memory):
            return name.replace(memory, disk, 1)
    return name


def patches_of(picture):
    """[3, height, width] -> [patches, 3 * 2 * patch * patch]: neighbours of 2 x 2 together, the picture as two frames."""
    _, height, width = picture.shape
    cut = picture.reshape(3, height // patch // 2, 2, patch, width // patch // 2, 2, patch).permute(1, 4, 2, 5, 0, 3, 6)
    frames = cut.unsqueeze(5).expand(*cut.shape[:5], 2, *cut.shape[5:])
    return frames.reshape(height * width // patch**2, -1)


sizes = [picture for sample in S["pictures"] for picture in sample]
pictures = [normal(a.seed, f"picture{i}", 3, rows * patch, columns * patch) for i, (rows, columns) in enumerate(sizes)]
grids = torch.tensor([[1, rows, columns] for rows, columns in sizes])
pixels = torch.cat([patches_of(p) for p in pictures])

placeholders = [[[opening] + [marker] * (rows * columns // 4) + [closing] for rows, columns in sample] for sample in S["pictures"]]
lengths = [extra + sum(len(p) for p in sample) for extra, sample in zip(S["text"], placeholders)]
ids, mask, labels = conversations(a.seed, S["vocab"], lengths, placeholders)
inputs = {"input_ids": ids, "attention_mask": mask, "pixel_values": pixels, "image_grid_thw": grids,
          "mm_token_type_ids": (ids == marker).int()}
position_ids, _ = model.model.get_rope_index(ids, inputs["mm_token_type_ids"], image_grid_thw=grids, attention_mask=mask)
inputs["position_ids"] = position_ids


def features(m, given):
    return torch.cat(list(m.get_image_features(given["pixel_values"], image_grid_thw=grids).pooler_output))


first = sizes[0][0] * sizes[0][1]
prompt = int((labels[0] != -100).nonzero()[0])
answer = greedy(model, lambda row: {"input_ids": row, "attention_mask": torch.ones_like(row), "pixel_values": pixels[:first],
                                    "image_grid_thw": grids[:1], "mm_token_type_ids": (row == marker).int()},
                ids[0], prompt, S["new_tokens"], [marker])

small = ("norm", "ln_q", "bias", "merger", "patch_embed", "layers.0.self_attn", "blocks.0.attn.qkv")
write_folder(a.out, "Qwen2.5-VL", a.seed, S, model, published, inputs, labels, features,
             {"io": {"image_grid_thw": grids, "position_ids": position_ids}, "image_token_id": marker,
              "image_tokens": [rows * columns // 4 for rows, columns in sizes], "greedy": {"prompt": prompt, "tokens": answer}},
             lambda n: any(word in n for word in small),
             ["visual.patch_embed.proj.weight", "visual.blocks.1.attn.qkv.weight", "visual.merger.mlp.2.bias",
              "model.norm.weight", "model.layers.0.self_attn.q_proj.weight"])
