#!/bin/bash
# Megatron-LM's first stage: the projector between a frozen Mistral and a frozen CLIP.
export CUDA_DEVICE_MAX_CONNECTIONS=1
NAME="mistral-clip-projector"

if [[ -z $STORE ]]; then
    echo "STORE is not set"
    exit 1
fi

ROOT=`pwd`
SAVE="${STORE}/${NAME}/checkpoints"
DEBUG=0
if [[ $DEBUG -eq 1 ]]; then
    BATCH=32
    DROP=0.0
    MORE="--num-workers 1"
else
    BATCH=256
    DROP=0.1
    MORE=""
fi

OPTIONS=" \
    --use-checkpoint-args \
    --use-distributed-optimizer \
    --transformer-impl transformer_engine \
    --apply-layernorm-1p \
    --attention-softmax-in-fp32 \
    --normalization RMSNorm \
    --group-query-attention \
    --num-query-groups 8 \
    --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 14336 \
    --rotary-base 1000000 \
    --rotary-percent 1.0 \
    --swiglu \
    --attention-dropout 0.0 \
    --hidden-dropout ${DROP} \
    --tensor-model-parallel-size 4 \
    --seq-length 576 \
    --decoder-seq-length 1024 \
    --max-position-embeddings 4096 \
    --train-iters 20000 \
    --micro-batch-size 1 \
    --global-batch-size ${BATCH} \
    --lr 0.00015 \
    --min-lr 1.0e-5 \
    --lr-decay-style cosine \
    --lr-decay-iters 20000 \
    --lr-warmup-fraction .01 \
    --clip-grad 1.0 \
    --weight-decay 1e-2 \
    --adam-beta1 0.9 \
    --adam-beta2 0.95 \
    --log-interval 10 \
    --eval-iters 10 \
    --eval-interval 1000 \
    --save-interval 1000 \
    --tokenizer-model ${STORE}/tokenizer.model \
    --tokenizer-type MistralTokenizer \
    --data-path ${ROOT}/pretrain.yaml \
    --prompt-path ${ROOT}/prompts.json \
    --save ${SAVE} \
    --load ${SAVE} \
    --pretrained-checkpoint ${STORE}/combined \
    --split 100,0,0 \
    --bf16 \
    --freeze-LM \
    --freeze-ViT \
    --patch-dim 14 --img-h 336 --img-w 336 \
    --language-model-type=mistral_7b \
    --disable-vision-class-token \
    --num-workers 2 \
    ${MORE} \
"
torchrun --nproc_per_node 8 examples/multimodal/train.py ${OPTIONS}
