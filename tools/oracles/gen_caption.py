"""A whole Hugging Face directory of a tiny LLaVA with tokenizer and processor, a picture, and what transformers answers.

  python gen_caption.py --out ../../tests/oracles/llava_caption

The tokenizer is a byte-level BPE trained on the words below; weights are random (seed 1), scaled so that answers have
variety. answers.json: token ids of greedy and beam search for each prompt and picture, and the smallest gap between the best and the second
logit on the way. Needs transformers 5.24, tokenizers, Pillow 12.
"""
import argparse
import json
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from PIL import Image
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (CLIPImageProcessor, CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration,
                          LlavaProcessor, PreTrainedTokenizerFast)

parser = argparse.ArgumentParser()
parser.add_argument("--out", required=True)
out = parser.parse_args().out
torch.manual_seed(1)
torch.set_num_threads(1)
SIDE, PATCH, TOKENS = 28, 7, 16

words = ["USER: ASSISTANT: What is in the picture? a cat and a dog on a hill, a red car, two birds", "Describe this picture."] * 4
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
tokenizer.train_from_iterator(words, trainers.BpeTrainer(vocab_size=300, special_tokens=["<s>", "</s>"],
                                                         initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
tokenizer.add_special_tokens([AddedToken("<image>", special=True)])
tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", extra_special_tokens={"image_token": "<image>"})
image_id = tokenizer.token_to_id("<image>")
vocab = tokenizer.get_vocab_size()

config = LlavaConfig(
    vision_config=CLIPVisionConfig(hidden_size=24, intermediate_size=48, num_hidden_layers=3, num_attention_heads=3, image_size=SIDE,
                                   patch_size=PATCH, projection_dim=24),
    text_config=LlamaConfig(vocab_size=vocab, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                            num_key_value_heads=2, max_position_embeddings=512, rms_norm_eps=1e-5, bos_token_id=0, eos_token_id=1),
    image_token_index=image_id, vision_feature_layer=-2, vision_feature_select_strategy="default")
model = LlavaForConditionalGeneration._from_config(config, attn_implementation="eager").eval()
with torch.no_grad():
    for name, parameter in model.named_parameters():
        if parameter.ndim >= 2:
            parameter.copy_(torch.randn_like(parameter) * (1.0 if "embed" in name else 1.6 / parameter[0].numel() ** 0.5))
        elif "bias" in name:
            parameter.copy_(torch.randn_like(parameter) * 0.1)
# The end is likely at times, so that answers have lengths of their own.
    model.lm_head.weight[1] += 0.6 * model.lm_head.weight[[40, 60, 80, 100, 120]].sum(0)
    model.lm_head.weight[image_id] = 0
model.generation_config.eos_token_id = 1
model.generation_config.pad_token_id = 1
processor = LlavaProcessor(
    image_processor=CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE}),
    tokenizer=fast, patch_size=PATCH, vision_feature_select_strategy="default", num_additional_image_tokens=1)
model.save_pretrained(out)
processor.save_pretrained(out)
# Beside the nested form of transformers 5, the file that published directories have.
json.dump(processor.image_processor.to_dict(), open(os.path.join(out, "preprocessor_config.json"), "w"), indent=2, default=str)


def picture(seed, width, height):
    made = torch.Generator().manual_seed(seed)
    coarse = torch.randint(0, 256, (3, 5, 6), generator=made, dtype=torch.uint8)
    return Image.fromarray(coarse.permute(1, 2, 0).numpy()).resize((width, height), Image.Resampling.BILINEAR)


pictures = {"wide.png": picture(1, 61, 40), "tall.png": picture(2, 33, 52)}
for name, image in pictures.items():
    image.save(os.path.join(out, name))
prompts = ["USER: <image>\nWhat is in the picture? ASSISTANT:", "a <image> dog"]
answers = []
for prompt in prompts:
    for name, image in pictures.items():
        inputs = processor(images=image, text=prompt, return_tensors="pt")
        common = dict(**inputs, max_new_tokens=12, do_sample=False, return_dict_in_generate=True, output_logits=True)
        greedy = model.generate(**common)
        start = inputs["input_ids"].shape[1]
        gap = min(float((row[0].topk(2).values @ torch.tensor([1.0, -1.0]))) for row in greedy.logits)
        beams = model.generate(**common, num_beams=3, early_stopping=False)
        cut = lambda ids: [i for i in ids[0, start:].tolist() if i != 1]
        answers.append({"picture": name, "prompt": prompt, "prompt_ids": inputs["input_ids"][0].tolist(), "greedy": cut(greedy.sequences),
                        "gap": gap, "beams3": cut(beams.sequences), "text": fast.decode(cut(greedy.sequences))})
json.dump(answers, open(os.path.join(out, "answers.json"), "w"), indent=1)
for a in answers:
    print(a["picture"], len(a["prompt_ids"]), a["greedy"], a["gap"], a["beams3"], repr(a["text"]))
