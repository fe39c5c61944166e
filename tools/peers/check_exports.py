#!/usr/bin/env python3
"""Loads what mmckpt wrote with transformers, peft and diffusers, and compares.

  check_exports.py merged BASE ADAPTER MERGED   logits of peft's model and of the merged directory agree
  check_exports.py load DIR [PICTURE]           transformers loads model, tokenizer and processor of DIR, and answers
  check_exports.py families MMCKPT              of each family a tiny random model and a peft adapter go through our own form and back:
                                                transformers loads every tensor and no other, and logits agree
  check_exports.py diffusers MMCKPT [EXPORT...] a tiny random DiT, PixArt, SD3 and AutoencoderKL go through our own form and back: diffusers
                                                loads every tensor and no other, and outputs agree; so it does of each EXPORT of a run, whose
                                                outputs are finite

BASE, MERGED, DIR: Hugging Face directories; ADAPTER: `mmckpt convert RUN ADAPTER --to peft`; EXPORT: `mmckpt convert RUN EXPORT`. Needs
transformers 5.24, peft 0.21, torch 2.11; diffusers needs torch and diffusers alone.
"""
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch


def load(directory):
    from transformers import AutoModelForImageTextToText

    model, report = AutoModelForImageTextToText.from_pretrained(directory, dtype=torch.float32, output_loading_info=True)
    strange = {k: v for k, v in report.items() if v}
    assert not strange, f"{directory}: {strange}"
    return model.eval()


def inputs_of(model):
    config, made = model.config, torch.Generator().manual_seed(5)
    side, marker = config.vision_config.image_size, config.image_token_index
    class_token = config.vision_config.model_type == "clip_vision_model" and config.vision_feature_select_strategy == "full"
    patches = (side // config.vision_config.patch_size) ** 2 + class_token
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
    from transformers import AutoProcessor

    model, processor = load(directory), AutoProcessor.from_pretrained(directory)
    print(type(processor).__name__, type(processor.image_processor).__name__, type(processor.tokenizer).__name__)
    marker = processor.tokenizer.convert_tokens_to_ids("<image>")
    assert marker == model.config.image_token_index, f"<image> is {marker}, config.json says {model.config.image_token_index}"
    if picture:
        from PIL import Image

        inputs = processor(images=Image.open(picture).convert("RGB"), text="<image>", return_tensors="pt")
        said = model.generate(**inputs, max_new_tokens=12, do_sample=False)[0, inputs["input_ids"].shape[1]:]
        print(said.tolist(), repr(processor.tokenizer.decode(said)))


def tiny_models():
    """(name, model) of each family; vocabulary 150, the image token 149."""
    import transformers as t

    vocab, side, patch = 150, 28, 7
    text = dict(vocab_size=vocab, hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                max_position_embeddings=1024, bos_token_id=1, eos_token_id=2)
    tower = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4, image_size=side, patch_size=patch)
    clip = lambda: t.CLIPVisionConfig(projection_dim=32, **tower)
    siglip = lambda: t.SiglipVisionConfig(vision_use_head=False, **tower)
    grids = [[side * r, side * c] for r, c in ([1, 2], [2, 1], [2, 2], [3, 1], [1, 3])]
    common = dict(image_token_index=vocab - 1)
    full = dict(vision_feature_layer=-1, vision_feature_select_strategy="full")
    qwen_text = dict(text, num_attention_heads=3, num_key_value_heads=1)
    yield "llava", t.LlavaForConditionalGeneration, t.LlavaConfig(vision_config=clip(), text_config=t.LlamaConfig(**text), **common)
    yield "llava, SigLIP, Qwen2 tied", t.LlavaForConditionalGeneration, t.LlavaConfig(
        vision_config=siglip(), text_config=t.Qwen2Config(tie_word_embeddings=True, **text), tie_word_embeddings=True, **full, **common)
    yield "llava, Mistral", t.LlavaForConditionalGeneration, t.LlavaConfig(
        vision_config=clip(), text_config=t.MistralConfig(sliding_window=None, **text), **common)
    yield "llava, Qwen3", t.LlavaForConditionalGeneration, t.LlavaConfig(
        vision_config=clip(), text_config=t.Qwen3Config(head_dim=12, **text), **common)
    yield "llava_next", t.LlavaNextForConditionalGeneration, t.LlavaNextConfig(
        vision_config=clip(), text_config=t.LlamaConfig(**text), image_grid_pinpoints=grids, **common)
    yield "llava_onevision", t.LlavaOnevisionForConditionalGeneration, t.LlavaOnevisionConfig(
        vision_config=siglip(), text_config=t.Qwen2Config(**text), image_grid_pinpoints=grids, vision_aspect_ratio="anyres_max_2",
        video_token_index=vocab - 2, **full, **common)
    yield "qwen2_5_vl", t.Qwen2_5_VLForConditionalGeneration, t.Qwen2_5_VLConfig(
        vision_config=dict(depth=2, hidden_size=32, intermediate_size=44, num_heads=2, patch_size=patch, window_size=4 * patch, out_hidden_size=48,
                           fullatt_block_indexes=[1], spatial_merge_size=2, temporal_patch_size=2),
        text_config=dict(rope_parameters={"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]}, **qwen_text),
        image_token_id=vocab - 1, video_token_id=vocab - 2, vision_start_token_id=vocab - 3, vision_end_token_id=vocab - 4)


def varied_inputs(model):
    """A picture of 28 x 56 pixels between words."""
    config, made = model.config, torch.Generator().manual_seed(5)
    family, marker = config.model_type, config.image_token_id
    if family == "llava":
        return inputs_of(model)
    if family == "qwen2_5_vl":
        grid = torch.tensor([[1, 4, 8]])
        pictures = {"pixel_values": torch.randn(32, 3 * 2 * 49, generator=made), "image_grid_thw": grid}
        count = 8
    else:
        pictures = {"pixel_values": torch.randn(1, 3, 3, 28, 28, generator=made), "image_sizes": torch.tensor([[28, 56]])}
        count = model.get_image_features(**pictures).pooler_output[0].shape[0]
    words = torch.randint(3, config.text_config.vocab_size - 5, (12,), generator=made)
    opening = [config.vision_start_token_id] if family == "qwen2_5_vl" else []
    ids = torch.tensor([words[:4].tolist() + opening + [marker] * count + words[4:].tolist()])
    more = {"mm_token_type_ids": (ids == marker).int()} if family == "qwen2_5_vl" else {}
    return {"input_ids": ids, **pictures, **more}


def randomise(parameters, made, gain=1.0):
    with torch.no_grad():
        for parameter in parameters:
            if parameter.ndim >= 2:
                parameter.copy_(torch.randn(parameter.shape, generator=made) * gain / parameter[0].numel() ** 0.5)
            else:
                parameter.add_(torch.randn(parameter.shape, generator=made) * 0.1)


def families(mmckpt):
    from peft import LoraConfig, get_peft_model

    def tool(*words):
        subprocess.run([mmckpt, *map(str, words)], check=True, capture_output=True)

    apart = lambda a, b: float((a - b).norm() / b.norm())
    for name, kind, config in tiny_models():
        made = torch.Generator().manual_seed(3)
        model = kind._from_config(config).eval()
        randomise(model.parameters(), made)
        model.tie_weights()
        with tempfile.TemporaryDirectory() as at, torch.no_grad():
            model.save_pretrained(f"{at}/base")
            inputs = varied_inputs(model)
            plain = model(**inputs).logits
            tool("convert", f"{at}/base", f"{at}/own", "--to", "own")
            tool("convert", f"{at}/own", f"{at}/hf")
            back = load(f"{at}/hf")
            equal = all(torch.equal(value, back.state_dict()[key]) for key, value in model.state_dict().items())
            ours = back(**inputs).logits
            adapted = get_peft_model(model, LoraConfig(r=4, lora_alpha=8, lora_dropout=0.05, target_modules=["q_proj", "v_proj", "down_proj"]))
            randomise([p for n, p in adapted.named_parameters() if "lora_" in n], made, gain=0.5)
            adapted.eval().save_pretrained(f"{at}/adapter")
            expected = adapted(**inputs).logits
            tool("merge", f"{at}/base", f"{at}/adapter", f"{at}/merged")
            merged_logits = load(f"{at}/merged")(**inputs).logits
            tool("convert", f"{at}/merged", f"{at}/merged_own", "--to", "own")
            tool("convert", f"{at}/merged_own", f"{at}/again")
            again = load(f"{at}/again")(**inputs).logits
        print(f"{name}: weights {'equal' if equal else 'DIFFER'}, logits {apart(ours, plain):.2g}; adapter moves them by "
              f"{apart(expected, plain):.2g}, merged differs from peft by {apart(merged_logits, expected):.2g}, its round trip by "
              f"{apart(again, merged_logits):.2g}")
        assert equal and apart(ours, plain) == 0 and apart(again, merged_logits) == 0
        assert apart(merged_logits, expected) < 1e-5 < apart(expected, plain)


def tiny_diffusion():
    """Models of 8 x 8 latents with random weights."""
    import diffusers as d

    heads = dict(num_attention_heads=2, attention_head_dim=24, num_layers=2, sample_size=8, patch_size=2)
    yield d.DiTTransformer2DModel(in_channels=4, out_channels=8, num_embeds_ada_norm=10, norm_elementwise_affine=False, **heads)
    yield d.PixArtTransformer2DModel(in_channels=4, out_channels=8, cross_attention_dim=48, caption_channels=16, **heads)
    yield d.PixArtTransformer2DModel(in_channels=4, out_channels=8, cross_attention_dim=48, caption_channels=16, use_additional_conditions=True,
                                     interpolation_scale=2, **heads)
    sd3 = dict(in_channels=4, out_channels=4, joint_attention_dim=16, caption_projection_dim=48, pooled_projection_dim=12, pos_embed_max_size=12)
    yield d.SD3Transformer2DModel(**sd3, **heads)
    yield d.SD3Transformer2DModel(qk_norm="rms_norm", dual_attention_layers=(0,), **sd3, **heads)
    yield d.AutoencoderKL(block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4, latent_channels=4,
                          down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2)


def diffusion_output(model):
    """What the model says of two noisy latents, or an autoencoder of two pictures."""
    made, config = torch.Generator().manual_seed(5), model.config
    draw = lambda *shape: torch.randn(*shape, generator=made)
    kind, side = type(model).__name__, config.sample_size
    with torch.no_grad():
        if kind == "AutoencoderKL":
            return model(draw(2, 3, 32, 32)).sample
        latents, times = draw(2, config.in_channels, side, side), torch.tensor([20.0, 700.0])
        if kind == "DiTTransformer2DModel":
            return model(latents, timestep=times.long(), class_labels=torch.tensor([0, config.num_embeds_ada_norm])).sample
        if kind == "PixArtTransformer2DModel":
            sizes = {"resolution": torch.tensor([[64.0, 64.0]] * 2), "aspect_ratio": torch.ones(2, 1)} if config.use_additional_conditions else {}
            return model(latents, encoder_hidden_states=draw(2, 5, config.caption_channels), timestep=times.long(),
                         added_cond_kwargs={"resolution": None, "aspect_ratio": None, **sizes}).sample
        return model(latents, encoder_hidden_states=draw(2, 5, config.joint_attention_dim),
                     pooled_projections=draw(2, config.pooled_projection_dim), timestep=times).sample


def load_diffusion(directory):
    import json

    import diffusers

    with open(f"{directory}/config.json") as file:
        kind = getattr(diffusers, json.load(file)["_class_name"])
    model, report = kind.from_pretrained(directory, output_loading_info=True, low_cpu_mem_usage=False)
    own_text = [name for name in report["unexpected_keys"] if not name.startswith("text_encoder.")]
    assert not report["missing_keys"] and not own_text and not report["mismatched_keys"], f"{directory}: {report}"
    return model.float().eval()


def diffusion_families(mmckpt, *exports):
    for model in tiny_diffusion():
        randomise(model.parameters(), torch.Generator().manual_seed(3))
        model.eval()
        with tempfile.TemporaryDirectory() as at:
            model.save_pretrained(f"{at}/base")
            for source, to, form in (("base", "own", "own"), ("own", "hf", "hf")):
                subprocess.run([mmckpt, "convert", f"{at}/{source}", f"{at}/{to}", "--to", form], check=True, capture_output=True)
            back = load_diffusion(f"{at}/hf")
        equal = all(torch.equal(value, back.state_dict()[key]) for key, value in model.state_dict().items())
        apart = float((diffusion_output(back) - diffusion_output(model)).norm())
        print(f"{type(model).__name__}: weights {'equal' if equal else 'DIFFER'}, outputs {apart:.2g} apart")
        assert equal and apart == 0
    for directory in exports:
        output = diffusion_output(load_diffusion(directory))
        print(f"{directory}: output of {output.std():.3g}")
        assert output.isfinite().all()


if __name__ == "__main__":
    verbs = {"merged": merged, "load": loads, "families": families, "diffusers": diffusion_families}
    if len(sys.argv) < 3 or sys.argv[1] not in verbs:
        sys.exit(__doc__)
    verbs[sys.argv[1]](*sys.argv[2:])
