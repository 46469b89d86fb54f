from __future__ import annotations

import torch
from torch import nn

from separata_eco import ECOAdamW, convert_, memory_report

SIZE = 64 * 32


def trained(**options: object) -> tuple[nn.Module, ECOAdamW]:
    model = convert_(nn.Sequential(nn.Linear(64, 32, bias=False)))
    optimizer = ECOAdamW(model.parameters(), **options)
    model(torch.randn(2, 64)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    return model, optimizer


def test_bytes_by_kind() -> None:
    report = memory_report(*trained(momentum_dtype="bfloat16"))
    expected = {"codes": SIZE, "scales": 32 * 4, "momentum": 2 * SIZE, "second moment": 4 * SIZE}
    assert {kind: size for kind, size in report.items() if size and kind != "total"} == expected
    assert report["total"] == sum(expected.values())


def test_rivals_hold_more() -> None:
    assert memory_report(*trained(compensation="master"))["master weights"] == 4 * SIZE
    model, optimizer = trained(compensation="exact")
    assert memory_report(model, optimizer)["errors"] == 4 * SIZE


def test_gradients_are_counted() -> None:
    model, optimizer = trained()
    model(torch.randn(2, 64)).sum().backward()
    assert memory_report(model, optimizer)["gradients"] == 4 * SIZE


def test_a_hidden_copy_would_be_found() -> None:
    model, optimizer = trained()
    optimizer.shadow = {"somewhere": [torch.zeros(SIZE)]}
    assert memory_report(model, optimizer)["other"] == 4 * SIZE
