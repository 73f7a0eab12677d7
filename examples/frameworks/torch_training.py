"""A network trained with an op of two kernels: relu(x + bias)**2 and its gradient, under torch.compile.

On CPU tensors the kernels run in the emulator, on CUDA tensors on their GPU. The same network of torch's own operations
is trained beside it, from the same weights, and has to learn the same.
"""

from time import perf_counter
from typing import Any

import torch

import ptxdsl.torch
from ptxdsl import Array, Ptr, f32, maximum, ptx, ptx_kernel
from ptxdsl.bench import Row, error_of, report


@ptx_kernel
def squared_relu(x: Array[f32, 2], bias: Ptr[f32], out: Array[f32, 2]) -> None:
    row, column = ptx.ctaid.x, ptx.tid.x
    value = maximum(x[row, column] + bias[column], 0.0)
    out[row, column] = value * value


@ptx_kernel
def squared_relu_backward(
    x: Array[f32, 2], bias: Ptr[f32], grad_out: Array[f32, 2], grad_x: Array[f32, 2], grad_bias: Ptr[f32]
) -> None:
    row, column = ptx.ctaid.x, ptx.tid.x
    slope = 2.0 * maximum(x[row, column] + bias[column], 0.0) * grad_out[row, column]
    grad_x[row, column] = slope
    ptx.red.global_.add.f32(grad_bias + column, slope)


activation = ptxdsl.torch.register(
    squared_relu, "examples::squared_relu", grid=lambda x: x.shape[0], block=lambda x: x.shape[1],
    outputs={"out": "x"}, backward=squared_relu_backward,
)


def torchs_own(x: Any, bias: Any) -> Any:
    return torch.relu(x + bias) ** 2


def train(function: Any, weights: list[Any], x: Any, y: Any, steps: int) -> list[float]:
    """The loss at each step; the weights are trained in place."""
    def loss() -> Any:
        first, bias, second = weights
        return ((function(x @ first, bias) @ second - y) ** 2).mean()

    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    optimizer = torch.optim.SGD(weights, lr=0.005, momentum=0.9)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = compiled()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


def main(samples: int = 200, width: int = 64, steps: int = 100) -> Row:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.rand(samples, 3, device=device) * 2 - 1
    y = torch.sin(3 * x.sum(1, keepdim=True))
    drawn = [torch.randn(3, width, device=device), torch.rand(width, device=device), torch.randn(width, 1) / width]
    copies = [[weight.to(device).clone().requires_grad_() for weight in drawn] for _ in range(2)]
    expected = train(torchs_own, copies[0], x, y, steps)
    start = perf_counter()
    losses = train(activation, copies[1], x, y, steps)
    seconds = perf_counter() - start
    print(f"loss {losses[0]:.4f}, after {steps} steps {losses[-1]:.4f}")
    return Row(f"{steps} steps, {samples} x 3 x {width}", device, seconds, error_of(losses, expected), 1e-3)


if __name__ == "__main__":
    report(main())
