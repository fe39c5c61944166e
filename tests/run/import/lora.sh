#!/bin/bash
# LLaVA-1.5 with adapters on 4 devices, two accumulated. Usage: lora.sh MODEL VERSION
model=$1
version=${2:-v1}

COMMON=(
    --deepspeed ./zero3.json
    --vision_tower openai/clip-vit-large-patch14-336
    --pretrain_mm_mlp_adapter ./checkpoints/stage1/mm_projector.bin
    --mm_projector_type mlp2x_gelu --mm_vision_select_layer -2
    --mm_use_im_start_end False --mm_use_im_patch_token False
    --image_aspect_ratio pad        # the mean colour around
    --group_by_modality_length True --lazy_preprocess True --bf16 True --tf32 True
)

torchrun --nproc_per_node=4 --nnodes=1 llava/train/train_mem.py "${COMMON[@]}" \
    --model_name_or_path $model --version $version \
    --lora_enable True --lora_r 128 --lora_alpha 256 --mm_projector_lr 2e-5 \
    --data_path ./data/llava_v1_5_mix665k.json --image_folder ./data \
    --num_train_epochs 1 --per_device_train_batch_size 16 --gradient_accumulation_steps 2 \
    --learning_rate 2e-4 --weight_decay 0. --warmup_ratio 0.03 --lr_scheduler_type cosine \
    --model_max_length 2048 --gradient_checkpointing True --dataloader_num_workers 4 \
    --save_strategy no --logging_steps 1 --report_to none --output_dir ./checkpoints/lora
