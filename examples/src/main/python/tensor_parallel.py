"""A decoder-only transformer whose weights are divided among the ranks, and greedy decoding with it: TensorParallel in Java.

On a GPU a step is captured in a CUDA graph, with its all-reduces, and launched for each word.
"""

import math

import torch
import torch.distributed as dist
import torch.nn.functional as functional

import job

HEADS = 8
WORDS = 256
SEQUENCES = 4
PROMPT = 8
BOUND = 1e-12


class TensorParallel:
    def __init__(self, device, divided, options):
        """Makes all weights, and keeps those of a rank, or all if the model is not divided."""
        self.device = device
        self.divided = divided
        self.length = PROMPT + options["-t"]
        self.width = options["-w"]
        self.rank = dist.get_rank() if divided else 0
        self.size = dist.get_world_size() if divided else 1
        torch.manual_seed(1)
        width = self.width
        self.embedding = self.random(WORDS, width)
        self.positions = self.random(self.length, width)
        self.layers = []
        for _ in range(options["-l"]):
            projection = self.own(self.random(width, 3 * width), 1)
            output = self.own(self.random(width, width), 0)
            up = self.own(self.random(width, 4 * width), 1)
            down = self.own(self.random(4 * width, width), 0)
            cache = self.zeros(torch.double, 2, SEQUENCES, HEADS // self.size, self.length, width // HEADS)
            self.layers.append((projection, output, up, down, cache))
        self.head = self.own(self.random(width, WORDS), 1)
        self.words = self.zeros(torch.long, SEQUENCES, self.length)
        self.scores = self.zeros(torch.double, self.length, SEQUENCES, WORDS)
        self.last = self.zeros(torch.long, 1)

    def random(self, rows, columns):
        return torch.randn(rows, columns, dtype=torch.double, device=self.device).div_(math.sqrt(self.width))

    def zeros(self, dtype, *shape):
        return torch.zeros(shape, dtype=dtype, device=self.device)

    def own(self, matrix, dimension):
        """This rank's part of a matrix: rows for dimension 0, columns for 1."""
        part = matrix.size(dimension) // self.size
        return matrix.narrow(dimension, self.rank * part, part).contiguous()

    def decode(self, append, then):
        """Makes a text. Collective. append: appends a word to each sequence; then: called after each word"""
        self.words[:, :PROMPT] = torch.arange(SEQUENCES * PROMPT).view(SEQUENCES, PROMPT)
        self.last.fill_(PROMPT - 1)
        at = self.zeros(torch.long, PROMPT).copy_(torch.arange(PROMPT))
        self.choose(self.score(self.words[:, :PROMPT], at))
        then()
        for _ in range(PROMPT + 1, self.length):
            append()
            then()

    def append(self):
        """Appends the word with the highest score to each sequence."""
        self.choose(self.score(self.words.index_select(1, self.last), self.last))

    def choose(self, following):
        self.last.add_(1)
        self.scores.index_copy_(0, self.last, following.unsqueeze(0))
        self.words.index_copy_(1, self.last, following.argmax(1, True))

    def score(self, words, at):
        """Returns the scores of all words as the next one, after words at some positions."""
        known = torch.arange(self.length, device=self.device) <= at.unsqueeze(1)
        state = functional.embedding(words, self.embedding) + self.positions.index_select(0, at)
        for projection, output, up, down, cache in self.layers:
            heads = self.attention(projection, cache, self.normal(state), at, known)
            state = state + self.sum(heads.matmul(output))
            state = state + self.sum(functional.gelu(self.normal(state).matmul(up)).matmul(down))
        own = self.normal(state[:, -1:]).matmul(self.head).view(SEQUENCES, WORDS // self.size)
        if not self.divided:
            return own
        parts = self.zeros(torch.double, self.size * SEQUENCES, WORDS // self.size)
        dist.all_gather_into_tensor(parts, own)
        return parts.view(self.size, SEQUENCES, WORDS // self.size).permute(1, 0, 2).reshape(SEQUENCES, WORDS)

    def normal(self, state):
        return functional.rms_norm(state, (self.width,))

    def sum(self, summand):
        """Adds the summands of all ranks."""
        if self.divided:
            dist.all_reduce(summand)
        return summand

    def attention(self, projection, cache, state, at, known):
        """The heads of this rank."""
        projected = state.matmul(projection).view(
            SEQUENCES, at.size(0), HEADS // self.size, 3, self.width // HEADS).permute(3, 0, 2, 1, 4)
        cache.index_copy_(3, at, projected[1:])
        heads = functional.scaled_dot_product_attention(projected[0], cache[0], cache[1], attn_mask=known)
        return heads.transpose(1, 2).reshape(SEQUENCES, at.size(0), self.width // self.size)


@torch.no_grad()
def main():
    options = job.options("-t 64 -w 128 -l 3 -e 0")
    device = job.begin()
    model = TensorParallel(device, True, options)
    figures = job.Figures(device, options["-t"])
    model.decode(model.append, figures.step)
    append = model.append
    graph = None
    if device.type == "cuda" and options["-e"] == 0:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model.append()
        append = graph.replay
        figures.begin()
    model.decode(append, figures.step)
    text = figures.end(SEQUENCES, "tokens")
    if graph:
        # The end of the process group waits for the graphs that have its collectives.
        graph.reset()

    alone = TensorParallel(device, False, options)
    alone.decode(alone.append, lambda: None)
    checked = job.require_close("scores", model.scores, alone.scores, BOUND)
    if not model.words.equal(alone.words):
        raise ValueError("the words must be those of one rank")
    print(f"rank {model.rank}: {HEADS // model.size} of {HEADS} heads, {SEQUENCES} sequences of {options['-t']} tokens,"
          f" the same words as by one rank, scores: {checked}")
    if model.rank == 0:
        print(text)
    dist.destroy_process_group()


main()
