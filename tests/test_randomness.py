"""One seed, independent stages."""

import numpy as np
import torch

from countermove.randomness import generator, torch_generator


def test_same_seed_and_stage_same_numbers():
    assert np.array_equal(generator(3, "split").random(5), generator(3, "split").random(5))
    draws = [torch.rand(3, generator=torch_generator(3, "train")) for _ in range(2)]
    assert torch.equal(*draws)


def test_stages_and_seeds_differ():
    first = generator(3, "split").random(5)
    assert not np.array_equal(first, generator(3, "train").random(5))
    assert not np.array_equal(first, generator(4, "split").random(5))
