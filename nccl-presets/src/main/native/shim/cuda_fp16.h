/* Replaces CUDA's header: nccl.h includes it and uses nothing of it. */
