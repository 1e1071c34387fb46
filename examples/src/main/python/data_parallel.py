"""Data-parallel training with DistributedDataParallel: DataParallel in Java with -q 1, since here no rank is killed."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import job

INPUTS = 16
BOUND = 1e-10


class Training:
    def __init__(self, device, divided, options):
        self.device = device
        self.batch = options["-b"]
        self.rank = dist.get_rank() if divided else 0
        self.size = dist.get_world_size() if divided else 1
        torch.manual_seed(1)
        widths = [INPUTS] + [options["-w"]] * (options["-l"] + 1)
        layers = [layer for pair in zip(widths, widths[1:]) for layer in (nn.Linear(*pair), nn.GELU())]
        self.model = nn.Sequential(*layers, nn.Linear(widths[-1], 1)).double().to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=job.learning_rate(options["-w"]))
        self.forward = self.model
        if divided:
            self.forward = DistributedDataParallel(self.model, gradient_as_bucket_view=True)

    def train(self, step):
        """Trains with this rank's part of a batch. Collective if the model is divided."""
        self.optimizer.zero_grad()
        # The average over the ranks is the mean over the batch, also if it cannot be divided evenly.
        (self.loss(step) * self.size).backward()
        self.optimizer.step()

    def loss(self, step):
        """The part of this rank's samples in the mean of the squared errors of a batch."""
        torch.manual_seed(1000 + step)
        begin = self.batch * self.rank // self.size
        end = self.batch * (self.rank + 1) // self.size
        inputs = torch.randn(self.batch, INPUTS, dtype=torch.double, device=self.device)[begin:end]
        errors = self.forward(inputs).view(-1) - inputs.sin().sum(1)
        return errors.square().sum() / self.batch

    def weights(self):
        return torch.cat([parameter.detach().flatten() for parameter in self.model.parameters()])


def main():
    options = job.options("-s 60 -u 5 -w 64 -l 1 -b 48 -q 1")
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
    print(f"rank {training.rank}: trained {steps} of {steps} steps, weights as by one rank: {checked}")
    if training.rank == 0:
        print(text)
    dist.destroy_process_group()


main()
