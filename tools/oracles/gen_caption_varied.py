"""Whole Hugging Face directories of tiny models whose pictures have tiles or a size of their own, and what transformers answers.

  python gen_caption_varied.py --preset next       --out ../../tests/oracles/llava_next_caption
  python gen_caption_varied.py --preset onevision  --out ../../tests/oracles/llava_onevision_caption
  python gen_caption_varied.py --preset qwen2_5_vl --out ../../tests/oracles/qwen2_5_vl_caption

As gen_caption.py: tokenizer trained here, random weights, pictures, answers.json with greedy tokens and the smallest gap between
the best and the second logit on the way. The image processors are those that resize with Pillow.
"""
from case import *
from PIL import Image
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (CLIPVisionConfig, LlamaConfig, LlavaNextConfig, LlavaNextForConditionalGeneration, LlavaOnevisionConfig,
                          LlavaOnevisionForConditionalGeneration, PreTrainedTokenizerFast, Qwen2_5_VLConfig,
                          Qwen2_5_VLForConditionalGeneration, Qwen2Config, SiglipVisionConfig)
from transformers.models.llava_next.image_processing_pil_llava_next import LlavaNextImageProcessorPil
from transformers.models.llava_onevision.image_processing_pil_llava_onevision import LlavaOnevisionImageProcessorPil
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

a = arguments(["next", "onevision", "qwen2_5_vl"])
QWEN, ONEVISION = a.preset == "qwen2_5_vl", a.preset == "onevision"
SIDE, PATCH, NEW = 28, 7, 10
CHAT = ["<|im_start|>", "<|im_end|>"]
MARKS = (["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"] if QWEN
         else ["<image>", "<video>"] if ONEVISION else ["<image>"])

words = ["system You are a helpful assistant. user assistant USER: ASSISTANT: What is in the picture? a cat and a dog on a hill"] * 4
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
tokenizer.train_from_iterator(words, trainers.BpeTrainer(vocab_size=300, special_tokens=["<s>", "</s>"],
                                                         initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
tokenizer.add_special_tokens([AddedToken(mark, special=True) for mark in (CHAT if a.preset != "next" else []) + MARKS])
if a.preset == "next":
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
vocab, id_of = tokenizer.get_vocab_size(), tokenizer.token_to_id
marker = id_of("<|image_pad|>" if QWEN else "<image>")

text = dict(vocab_size=vocab, hidden_size=48, intermediate_size=64, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1,
            max_position_embeddings=1024, bos_token_id=0, eos_token_id=1)
vision = dict(hidden_size=24, intermediate_size=48, num_hidden_layers=3, num_attention_heads=3, image_size=SIDE, patch_size=PATCH)
grids = [[SIDE * rows, SIDE * columns] for rows, columns in ([1, 2], [2, 1], [2, 2], [3, 1], [1, 3])]
if QWEN:
    config = Qwen2_5_VLConfig(
        vision_config=dict(depth=2, hidden_size=24, intermediate_size=44, num_heads=3, patch_size=PATCH, window_size=4 * PATCH,
                           out_hidden_size=48, fullatt_block_indexes=[1], spatial_merge_size=2, temporal_patch_size=2),
        text_config=dict(rms_norm_eps=1e-6, rope_parameters={"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]}, **text),
        image_token_id=marker, video_token_id=id_of("<|video_pad|>"), vision_start_token_id=id_of("<|vision_start|>"),
        vision_end_token_id=id_of("<|vision_end|>"), tie_word_embeddings=False)
    model, processor = Qwen2_5_VLForConditionalGeneration, Qwen2VLImageProcessorPil(patch_size=PATCH, min_pixels=784, max_pixels=7 * 784)
elif ONEVISION:
    config = LlavaOnevisionConfig(
        vision_config=SiglipVisionConfig(vision_use_head=False, **vision), text_config=Qwen2Config(rms_norm_eps=1e-6, **text),
        image_token_index=marker, video_token_index=id_of("<video>"), image_grid_pinpoints=grids, vision_feature_layer=-1,
        vision_feature_select_strategy="full", vision_aspect_ratio="anyres_max_2", tie_word_embeddings=False)
    model = LlavaOnevisionForConditionalGeneration
    processor = LlavaOnevisionImageProcessorPil(size={"height": SIDE, "width": SIDE}, image_grid_pinpoints=grids,
                                                image_mean=[0.5] * 3, image_std=[0.5] * 3)
else:
    config = LlavaNextConfig(
        vision_config=CLIPVisionConfig(projection_dim=24, **vision), text_config=LlamaConfig(rms_norm_eps=1e-5, **text),
        image_token_index=marker, image_grid_pinpoints=grids, vision_feature_layer=-2, vision_feature_select_strategy="default")
    model = LlavaNextForConditionalGeneration
    processor = LlavaNextImageProcessorPil(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE},
                                           image_grid_pinpoints=grids)
model = model._from_config(config, attn_implementation="eager").eval()
randomise(model, a.seed)
with torch.no_grad():
    model.get_input_embeddings().weight.mul_(6)
    for name, parameter in model.named_parameters():
        if parameter.ndim >= 2 and "embed" not in name:
            parameter.mul_(1.5)
    # The end is likely at times, marks never are.
    model.lm_head.weight[1] += 0.6 * model.lm_head.weight[[40, 60, 80, 100, 120]].sum(0)
    model.lm_head.weight[vocab - len(MARKS):] = 0
model.generation_config.eos_token_id = model.generation_config.pad_token_id = 1
model.save_pretrained(a.out)
fast.save_pretrained(a.out)
save_json(os.path.join(a.out, "preprocessor_config.json"), json.loads(json.dumps(processor.to_dict(), default=str)))


def picture(seed, width, height):
    coarse = torch.randint(0, 256, (3, 5, 6), generator=generator(seed, "picture"), dtype=torch.uint8)
    return Image.fromarray(coarse.permute(1, 2, 0).numpy()).resize((width, height), Image.Resampling.BILINEAR)


def inputs_of(image, prompt):
    """The prompt's ids with the mark as often as the picture has features, and the picture."""
    given = processor(images=[image], return_tensors="pt")
    if QWEN:
        count = int(given["image_grid_thw"].prod()) // 4
    else:
        count = model.get_image_features(pixel_values=given["pixel_values"], image_sizes=given["image_sizes"]).pooler_output[0].shape[0]
    ids = [i for one in fast(prompt)["input_ids"] for i in ([one] * count if one == marker else [one])]
    ids = torch.tensor([ids])
    more = {"mm_token_type_ids": (ids == marker).int()} if QWEN else {}
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), **given, **more}


pictures = {"wide.png": picture(1, 61, 40), "tall.png": picture(2, 33, 52)}
for name, image in pictures.items():
    image.save(os.path.join(a.out, name))
mark = "<|vision_start|><|image_pad|><|vision_end|>" if QWEN else "<image>\n"
prompts = [f"USER: {mark}What is in the picture? ASSISTANT:", f"a {mark} dog"]
answers = []
with torch.no_grad():
    for prompt in prompts:
        for name, image in pictures.items():
            inputs = inputs_of(image, prompt)
            said = model.generate(**inputs, max_new_tokens=NEW, do_sample=False, return_dict_in_generate=True, output_logits=True)
            start = inputs["input_ids"].shape[1]
            gap = min(float(row[0].topk(2).values @ torch.tensor([1.0, -1.0])) for row in said.logits)
            greedy_ids = [i for i in said.sequences[0, start:].tolist() if i != 1]
            answers.append({"picture": name, "prompt": prompt, "prompt_ids": inputs["input_ids"][0].tolist(), "greedy": greedy_ids,
                            "gap": gap, "text": fast.decode(greedy_ids)})
save_json(os.path.join(a.out, "answers.json"), answers)
for answer in answers:
    print(answer["picture"], len(answer["prompt_ids"]), answer["greedy"], answer["gap"], repr(answer["text"]))
