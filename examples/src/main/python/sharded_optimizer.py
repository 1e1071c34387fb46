"""Data-parallel training in which each rank keeps the optimizer's state of a part of the parameters: ShardedOptimizer in Java.

All parameters are views of one flat tensor, and so are their gradients (ZeRO, stage 1).
"""

import math

import torch
import torch.distributed as dist
import torch.nn.functional as functional

import job

INPUTS = 16
MAX_NORM = 0.5
BOUND = 1e-10


class Training:
    def __init__(self, device, divided, options):
        self.device = device
        self.divided = divided
        self.batch = options["-b"]
        self.rank = dist.get_rank() if divided else 0
        self.size = dist.get_world_size() if divided else 1
        width = options["-w"]
        torch.manual_seed(1)
        self.shapes = []
        for i in range(options["-l"] + 1):
            self.shapes += [(width if i else INPUTS, width), (width,)]
        self.shapes.append((width, 1))
        initial = [torch.randn(shape, dtype=torch.double, device=device).flatten() / math.sqrt(width)
                   for shape in self.shapes]
        self.count = sum(values.numel() for values in initial)
        length = -(-self.count // self.size)
        initial.append(initial[0].new_zeros(length * self.size - self.count))
        self.flat = torch.cat(initial).requires_grad_()
        self.part = self.flat.detach()[self.rank * length:(self.rank + 1) * length].requires_grad_()
        self.gradient = torch.zeros_like(self.part)
        self.optimizer = torch.optim.AdamW([self.part], lr=job.learning_rate(width))

    def weights(self):
        return self.flat.detach()[:self.count]

    def train(self, step):
        """Trains with this rank's part of a batch. Collective if the model is divided."""
        self.flat.grad = None
        # The average over the ranks is the mean over the batch, also if it cannot be divided evenly.
        (self.loss(step) * self.size).backward()
        with torch.no_grad():
            if self.divided and dist.get_backend() == "nccl":
                dist.reduce_scatter_tensor(self.gradient, self.flat.grad, op=dist.ReduceOp.AVG)
            elif self.divided:
                # Gloo has no average.
                dist.reduce_scatter_tensor(self.gradient, self.flat.grad)
                self.gradient.div_(self.size)
            else:
                self.gradient.copy_(self.flat.grad)
            squares = self.gradient.square().sum()
            if self.divided:
                dist.all_reduce(squares)
            # No copy to the host, for which a GPU would have to finish its work.
            self.gradient.mul_((MAX_NORM * squares.sqrt().reciprocal()).clamp_max(1.0))
            self.part.grad = self.gradient
            self.optimizer.step()
            if self.divided:
                dist.all_gather_into_tensor(self.flat.detach(), self.part.detach())

    def loss(self, step):
        """The part of this rank's samples in the mean of the squared errors of a batch."""
        torch.manual_seed(1000 + step)
        begin = self.batch * self.rank // self.size
        end = self.batch * (self.rank + 1) // self.size
        inputs = torch.randn(self.batch, INPUTS, dtype=torch.double, device=self.device)[begin:end]
        hidden = inputs
        offset = 0
        for shape in self.shapes:
            weight = self.flat.narrow(0, offset, math.prod(shape)).view(shape)
            offset += weight.numel()
            hidden = hidden.matmul(weight) if len(shape) == 2 else functional.gelu(hidden + weight)
        errors = hidden.view(-1) - inputs.sin().sum(1)
        return errors.square().sum() / self.batch


def main():
    options = job.options("-s 50 -u 5 -w 96 -l 1 -b 48")
    steps = options["-s"]
    device = job.begin()
    training = Training(device, True, options)
    figures = job.Figures(device, options["-u"])
    for step in range(steps):
        training.train(step)
        figures.step()
    text = figures.end(training.batch, "samples")

    alone = Training(device, False, options)
    for step in range(steps):
        alone.train(step)
    checked = job.require_close("weights", training.weights(), alone.weights(), BOUND)
    print(f"rank {training.rank}: state of {training.part.numel()} of {training.count} parameters,"
          f" weights after {steps} steps as by one rank: {checked}")
    if training.rank == 0:
        print(text)
    dist.destroy_process_group()


main()
