#!/bin/bash
# Stage 1 of LLaVA-1.5 on 8 devices: the projector alone, 256 samples a step.

LANGUAGE=lmsys/vicuna-7b-v1.5
PER_DEVICE=32   # x 8 devices

deepspeed --num_gpus 8 llava/train/train_mem.py \
    --deepspeed ./zero2.json \
    --model_name_or_path $LANGUAGE \
    --vision_tower openai/clip-vit-large-patch14-336 \
    --mm_projector_type mlp2x_gelu \
    --mm_vision_select_layer -2 \
    --mm_use_im_start_end False \
    --mm_use_im_patch_token False \
    --tune_mm_mlp_adapter True \
    --version plain \
    --data_path ./data/blip_laion_cc_sbu_558k.json \
    --image_folder ./data/images \
    --num_train_epochs 1 \
    --per_device_train_batch_size $PER_DEVICE \
    --per_device_eval_batch_size 4 \
    --gradient_accumulation_steps 1 \
    --learning_rate 1e-3 \
    --weight_decay 0. \
    --warmup_ratio 0.03 \
    --lr_scheduler_type "cosine" \
    --bf16 True \
    --tf32 True \
    --model_max_length 2048 \
    --gradient_checkpointing True \
    --dataloader_num_workers 4 \
    --lazy_preprocess True \
    --evaluation_strategy "no" \
    --save_strategy "steps" \
    --save_steps 24000 \
    --save_total_limit 1 \
    --logging_steps 1 \
    --report_to wandb \
    --output_dir ./checkpoints/stage1
