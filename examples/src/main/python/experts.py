"""A mixture of experts, with an uneven all-to-all to the ranks of the experts and one back: Experts in Java."""

import math

import torch
import torch.distributed as dist
import torch.nn.functional as functional

import job

EXPERTS = 8
CHOICES = 2
BOUND = 1e-5


class Experts:
    def __init__(self, device, width):
        self.device = device
        self.width = width
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        self.own = EXPERTS // self.size
        torch.manual_seed(1)
        self.router = self.random(width, EXPERTS)
        self.up = self.random(EXPERTS, width, 4 * width)
        self.down = self.random(EXPERTS, 4 * width, width)

    def random(self, *shape):
        return torch.randn(shape, device=self.device).div_(math.sqrt(self.width))

    def choose(self, inputs):
        """Returns the weights of the chosen experts, and the experts: both [token, choice]."""
        return torch.topk(torch.softmax(inputs.matmul(self.router), -1), CHOICES)

    def expert(self, expert, inputs):
        return functional.gelu(inputs.matmul(self.up[expert])).matmul(self.down[expert])

    def forward(self, inputs):
        """The layer's output for this rank's tokens. Collective."""
        weights, chosen = self.choose(inputs)
        chosen = chosen.flatten()
        # The choices in the order of their experts, and therefore of the ranks that have them.
        order = torch.argsort(chosen, stable=True)
        counts = torch.bincount(chosen, minlength=EXPERTS)
        counts_from_ranks = torch.empty_like(counts)
        dist.all_to_all_single(counts_from_ranks, counts)
        send = counts.tolist()
        recv = counts_from_ranks.tolist()

        rows = inputs.index_select(0, order.floor_divide(CHOICES))
        received = self.exchange(rows, send, recv)
        computed = self.exchange(self.compute(received, recv), recv, send)

        results = torch.empty_like(computed).index_copy_(0, order, computed)
        return (results.view(-1, CHOICES, self.width) * weights.unsqueeze(-1)).sum(1)

    def exchange(self, rows, send, recv):
        """Sends rows to the ranks, and receives theirs.

        send: the number of rows for each rank and expert
        recv: the number of rows from each rank and for each expert
        """
        received = rows.new_empty(sum(recv), self.width)
        dist.all_to_all_single(received, rows, self.rows(recv), self.rows(send))
        return received

    def rows(self, counts):
        return [sum(counts[i:i + self.own]) for i in range(0, EXPERTS, self.own)]

    def compute(self, received, counts):
        """Applies this rank's experts to rows in the order of the ranks, and for each rank in that of the experts."""
        blocks = received.split(counts)
        outputs = torch.empty_like(received)
        written = outputs.split(counts)
        for expert in range(self.own):
            results = self.expert(self.rank * self.own + expert, torch.cat(blocks[expert::self.own]))
            for output, result in zip(written[expert::self.own], results.split(counts[expert::self.own])):
                output.copy_(result)
        return outputs

    def alone(self, inputs):
        """The same by one rank: all experts for all tokens, those that are not chosen with weight 0."""
        weights, chosen = self.choose(inputs)
        weights = inputs.new_zeros(inputs.size(0), EXPERTS).scatter_(1, chosen, weights)
        outputs = torch.zeros_like(inputs)
        for expert in range(EXPERTS):
            outputs.add_(self.expert(expert, inputs) * weights[:, expert:expert + 1])
        return outputs


@torch.no_grad()
def main():
    options = job.options("-t 512 -w 64 -i 5 -u 1")
    tokens = options["-t"]
    device = job.begin()
    layer = Experts(device, options["-w"])
    torch.manual_seed(2 + layer.rank)
    inputs = torch.randn(tokens, options["-w"], device=device)
    figures = job.Figures(device, options["-u"])
    for _ in range(options["-u"] + options["-i"]):
        layer.forward(inputs)
        figures.step()
    text = figures.end(tokens * layer.size, "tokens")

    checked = job.require_close("outputs", layer.forward(inputs), layer.alone(inputs), BOUND)
    print(f"rank {layer.rank}: {layer.own} of {EXPERTS} experts, {tokens} tokens of {tokens * layer.size},"
          f" outputs as by one rank: {checked}")
    if layer.rank == 0:
        print(text)
    dist.destroy_process_group()


main()
