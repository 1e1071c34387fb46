"""What `nccl4j startup` does, with PyTorch: a rank of torchrun, or of two plain processes."""

import os
import sys
import time

import torch
import torch.distributed as dist

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
data = torch.ones(1, device="cuda")
dist.all_reduce(data)
torch.cuda.synchronize()
now = time.time_ns()
assert data.item() == dist.get_world_size()
# In one piece: the ranks write into one pipe.
sys.stdout.write(f"FIRST {now}\n")
sys.stdout.flush()
dist.destroy_process_group()
