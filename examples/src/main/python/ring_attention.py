"""Causal attention over a sequence that is divided among the ranks: RingAttention in Java.

Keys and values travel around the ring of ranks while attention to the previous block is computed. Rank r has chunk r from the
front and chunk r from the end, so that all ranks do equal work.
"""

import torch
import torch.distributed as dist

import job

HEADS = 8
WIDTH = 64
BOUND = 1e-5


class RingAttention:
    def __init__(self, device, tokens):
        self.device = device
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        self.chunk = tokens // self.size // 2

    def number(self, rank, half):
        """The number of the front or the back chunk of a rank."""
        return rank if half == 0 else 2 * self.size - 1 - rank

    def own(self, every, dimension):
        """This rank's two chunks of a tensor with all tokens in a dimension."""
        chunks = [every.narrow(dimension, self.number(self.rank, half) * self.chunk, self.chunk) for half in range(2)]
        return torch.cat(chunks, dimension)

    def half(self, both, half):
        return both.narrow(2, half * self.chunk, self.chunk)

    def attend(self, own):
        """Attention of this rank's queries to the keys of all ranks. Collective."""
        queries = own[0]
        block = own[1:].contiguous()
        following = torch.empty_like(block)
        parts = [None, None]
        for hop in range(self.size):
            requests = []
            if hop + 1 < self.size:
                requests = dist.batch_isend_irecv([
                    dist.P2POp(dist.isend, block, (self.rank + 1) % self.size),
                    dist.P2POp(dist.irecv, following, (self.rank - 1) % self.size),
                ])
            self.merge(parts, queries, block, (self.rank - hop) % self.size)
            for request in requests:
                request.wait()
            block, following = following, block
        return torch.cat([parts[0][0], parts[1][0]], 2)

    def merge(self, parts, queries, block, owner):
        """Adds attention to the block of a rank."""
        for query_half in range(2):
            for key_half in range(2):
                query = self.number(self.rank, query_half)
                key = self.number(owner, key_half)
                if key <= query:
                    part = self.attention(
                        self.half(queries, query_half),
                        self.half(block[0], key_half),
                        self.half(block[1], key_half),
                        key == query,
                    )
                    parts[query_half] = merge(parts[query_half], part) if parts[query_half] else part

    def attention(self, query, key, value, causal):
        if self.device.type == "cuda":
            output, log_sum, *_ = torch.ops.aten._scaled_dot_product_efficient_attention(
                query, key, value, None, True, 0.0, causal)
        else:
            output, log_sum = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
                query, key, value, 0.0, causal)
        # On a GPU it is padded.
        return output, log_sum[:, :, :query.size(2)].unsqueeze(-1)


def merge(first, second):
    log_sum = torch.logaddexp(first[1], second[1])
    return first[0] * (first[1] - log_sum).exp() + second[0] * (second[1] - log_sum).exp(), log_sum


@torch.no_grad()
def main():
    options = job.options("-s 2048 -i 5 -u 1")
    tokens = options["-s"]
    device = job.begin()
    ring = RingAttention(device, tokens)
    torch.manual_seed(1)
    every = torch.randn(3, 1, HEADS, tokens, WIDTH, device=device)
    own = ring.own(every, 3)
    figures = job.Figures(device, options["-u"])
    for _ in range(options["-u"] + options["-i"]):
        ring.attend(own)
        figures.step()
    text = figures.end(tokens, "tokens")

    whole = torch.nn.functional.scaled_dot_product_attention(every[0], every[1], every[2], is_causal=True)
    checked = job.require_close("outputs", ring.attend(own), ring.own(whole, 2), BOUND)
    print(f"rank {ring.rank}: attention of {tokens // ring.size} of {tokens} tokens to all before them as by one rank:"
          f" {checked}")
    if ring.rank == 0:
        print(text)
    dist.destroy_process_group()


main()
