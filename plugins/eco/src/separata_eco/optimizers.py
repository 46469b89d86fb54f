"""AdamW and SGD with momentum on weights that are stored only quantised (ECO, Algorithms 2 and 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

import torch
from torch import Tensor
from torch.optim import Optimizer

from separata_mixfp4.errors import NonFinite
from separata_mixfp4.formats import Rounding

from .compensation import Compensation, Move, begin, settle, start, undo
from .errors import InvalidSetting, NotSupported, SparseGradient
from .parameter import QuantizedParameter
from .rounding import to_bfloat16

ROUNDINGS = ("stochastic", "nearest_even")
GENERATORS = "generators"
Recorder = Callable[[QuantizedParameter, Tensor], None]


class ErrorCompensating(Optimizer):
    """What both optimizers share: the walk over parameters, rounding, injection, and the state of the draws.

    Args:
        params: Parameters or groups of them, as for every optimizer. Plain ones get the plain step.
        defaults: Options of a group.
        seed: Of the draws of stochastic rounding; under data parallelism the same on each process.
    """

    recorder: Recorder | None = None
    """Called with each quantised parameter and what its rounding has lost; for diagnostics."""

    def __init__(self, params: Any, defaults: dict[str, Any], seed: int) -> None:
        self._seed = seed
        self._generators: dict[str, torch.Generator] = {}
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with their own options.

        Raises:
            InvalidSetting: If an option is out of range.
            NotSupported: If it asks for a variant that errors can't be carried in.
        """
        _check({**self.defaults, **param_group})
        super().add_param_group(param_group)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step on the gradients there are.

        Args:
            closure: Evaluates the model anew and returns the loss.

        Returns:
            The closure's loss.

        Raises:
            SparseGradient: If a gradient is sparse.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)
        return loss

    @property
    def skipped_steps(self) -> int:
        """How often a quantised weight was left as it was because its gradient, or its new value, was not finite."""
        return sum(state.get("skipped", 0) for state in self.state.values())

    def state_dict(self) -> dict[str, Any]:
        """The state of every parameter, the groups' options, and the draws of stochastic rounding."""
        draws = {device: generator.get_state() for device, generator in self._generators.items()}
        return {**super().state_dict(), GENERATORS: draws}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a saved state, bit for bit."""
        rest = {key: value for key, value in state_dict.items() if key != GENERATORS}
        super().load_state_dict(rest)
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        # torch casts the moments to the parameter's dtype; here they have one of their own.
        for index, saved in rest["state"].items():
            parameter = parameters[index]
            self.state[parameter] = {
                key: value.detach().clone().to(parameter.device) if isinstance(value, Tensor) else value
                for key, value in saved.items()
            }
        for device, draws in state_dict.get(GENERATORS, {}).items():
            self._generator(torch.device(device)).set_state(draws.cpu())

    def _update(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if gradient.is_sparse:
            raise SparseGradient(
                f"a gradient of shape {tuple(parameter.shape)} is sparse",
                "use dense gradients (sparse=False)",
            )
        if isinstance(parameter, QuantizedParameter):
            self._update_quantised(parameter, gradient, state, group)
            return
        gradient = -gradient if group["maximize"] else gradient
        if "momentum" not in state:
            state["step"], state["momentum"] = 0, torch.zeros_like(gradient)
            self._start(state, gradient)
        state["step"] += 1
        self._move(state["momentum"], gradient, state, group).apply_(parameter, state["momentum"])

    def _update_quantised(
        self, parameter: QuantizedParameter, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        if not bool(torch.linalg.vector_norm(gradient, float("inf")).isfinite()):
            state["skipped"] = state.get("skipped", 0) + 1
            return
        wide = torch.promote_types(parameter.dtype, torch.float32)
        if "momentum" not in state:
            half = group["momentum_dtype"] == "bfloat16"
            state["step"] = 0
            state["momentum"] = torch.zeros_like(gradient, dtype=torch.bfloat16 if half else wide)
            self._start(state, state["momentum"].to(wide))
            begin(group["compensation"], parameter, state, wide)
        state["step"] += 1
        skipped = False
        # Who records errors wants those of a weight, not of some rows.
        whole = [(slice(None), parameter)]
        for rows, piece in parameter.pieces() if self.recorder is None else whole:
            own = {name: value[rows] if isinstance(value, Tensor) else value for name, value in state.items()}
            upwards = gradient[rows].to(wide)
            skipped |= self._update_piece(piece, -upwards if group["maximize"] else upwards, own, group)
        if skipped:
            state["skipped"] = state.get("skipped", 0) + 1

    def _update_piece(
        self, piece: QuantizedParameter, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> bool:
        """Update some rows, whose state is made of views; True if they had to be left as they are."""
        kept, kind = state["momentum"], group["compensation"]
        momentum = kept.to(gradient.dtype)
        move = self._move(momentum, gradient, state, group)
        skipped = False
        if move.lr:
            start(kind, momentum, move, state)
            weight = state["master"].clone() if kind == "master" else piece.dequantize(gradient.dtype)
            moved = move.apply_(weight, momentum)
            try:
                stored = piece.store_(moved, group["rounding"], self._draws(piece, group["rounding"]))
            except NonFinite:
                skipped = True
                undo(kind, momentum, move, state)
            else:
                if self.recorder is not None:
                    self.recorder(piece, moved - stored)
                settle(kind, moved, stored, momentum, move, state, group["min_lr_injection"])
        if kept.dtype == torch.bfloat16:
            # Rounded to nearest, a momentum that holds errors much larger than gradients would lose the gradients.
            momentum = to_bfloat16(momentum, self._generator(momentum.device))
        if momentum is not kept:
            kept.copy_(momentum)
        return skipped

    def _start(self, state: dict[str, Any], like: Tensor) -> None:
        """Make what is kept beside the momentum."""

    def _move(self, momentum: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> Move:
        """Update the moments in place and say how they move the weight."""
        raise NotImplementedError

    def _draws(self, parameter: Tensor, rounding: Rounding) -> torch.Generator | None:
        return self._generator(parameter.device) if rounding == "stochastic" else None

    def _generator(self, device: torch.device) -> torch.Generator:
        name = str(device)
        if name not in self._generators:
            self._generators[name] = torch.Generator(device).manual_seed(self._seed)
        return self._generators[name]


class ECOAdamW(ErrorCompensating):
    """AdamW without master weights (ECO, Algorithm 3); on plain parameters it is ``torch.optim.AdamW``.

    >>> layer = torch.nn.Linear(64, 8)
    >>> optimizer = ECOAdamW(convert_(layer).parameters(), lr=1e-3)

    Args:
        params: Parameters or groups of them. Those that ``convert_`` made are trained on their codes.
        lr: Learning rate. At 0 nothing moves and nothing is injected; the moments go on.
        betas: Decay of both moments; the first one is above 0, since the momentum carries the errors.
        eps: Added to the root of the second moment.
        weight_decay: Decoupled.
        rounding: ``stochastic`` or ``nearest_even``.
        compensation: ``eco``; or one of its rivals ``none``, ``exact``, ``master``.
        momentum_dtype: Of quantised weights' momentum: ``float32``, or ``bfloat16`` with stochastic rounding, by which
            a parameter takes two bytes less.
        min_lr_injection: Errors are injected as for a learning rate of at least this, so that the momentum does not
            grow as a schedule goes to 0; some of each error is lost below it.
        maximize: Climb instead of descend.
        amsgrad: Not supported.
        seed: Of the draws of stochastic rounding.

    References:
        Nikdan, Zandieh, Alistarh, Mirrokni: ECO: Quantized Training without Full-Precision Master Weights.
        ICML 2026, arXiv 2601.22101.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        *,
        rounding: Rounding = "stochastic",
        compensation: Compensation = "eco",
        momentum_dtype: str = "float32",
        min_lr_injection: float = 0.0,
        maximize: bool = False,
        amsgrad: bool = False,
        seed: int = 0,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "rounding": rounding,
            "compensation": compensation,
            "momentum_dtype": momentum_dtype,
            "min_lr_injection": min_lr_injection,
            "maximize": maximize,
            "amsgrad": amsgrad,
        }
        super().__init__(params, defaults, seed)

    def _start(self, state: dict[str, Any], like: Tensor) -> None:
        state["exp_avg_sq"] = torch.zeros_like(like)

    def _move(self, momentum: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> Move:
        beta1, beta2 = group["betas"]
        momentum.lerp_(gradient, 1 - beta1)
        second = state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        # In torch's order of operations, so that plain parameters get the very numbers of its AdamW.
        root = (1 - beta2 ** state["step"]) ** 0.5
        denominator = (second.sqrt() / root).add_(group["eps"])
        lr = float(group["lr"])
        size = lr / (1 - beta1 ** state["step"])
        return Move(1 - lr * group["weight_decay"], size, denominator, beta1, lr)


class ECOSGD(ErrorCompensating):
    """SGD with momentum without master weights (ECO, Algorithm 2).

    The momentum is torch's, ``m <- momentum m + (1 - dampening) g``; with ``dampening=momentum`` it is the paper's
    average, but for the first gradient, which torch takes whole. Weight decay is decoupled.

    Args:
        params: Parameters or groups of them. Those that ``convert_`` made are trained on their codes.
        lr: Learning rate. At 0 nothing moves and nothing is injected; the momentum goes on.
        momentum: Above 0, since it carries the errors, and below 1.
        dampening: Of the gradient.
        weight_decay: Decoupled.
        rounding: ``stochastic`` or ``nearest_even``.
        compensation: ``eco``; or one of its rivals ``none``, ``exact``, ``master``.
        momentum_dtype: Of quantised weights' momentum: ``float32``, or ``bfloat16`` with stochastic rounding.
        min_lr_injection: As for ``ECOAdamW``.
        maximize: Climb instead of descend.
        nesterov: Not supported.
        seed: Of the draws of stochastic rounding.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        momentum: float = 0.9,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        *,
        rounding: Rounding = "stochastic",
        compensation: Compensation = "eco",
        momentum_dtype: str = "float32",
        min_lr_injection: float = 0.0,
        maximize: bool = False,
        nesterov: bool = False,
        seed: int = 0,
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "rounding": rounding,
            "compensation": compensation,
            "momentum_dtype": momentum_dtype,
            "min_lr_injection": min_lr_injection,
            "maximize": maximize,
            "nesterov": nesterov,
        }
        super().__init__(params, defaults, seed)

    def _move(self, momentum: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> Move:
        beta = group["momentum"]
        momentum.mul_(beta).add_(gradient, alpha=1.0 if state["step"] == 1 else 1 - group["dampening"])
        lr = float(group["lr"])
        return Move(1 - lr * group["weight_decay"], lr, None, beta, lr)


def _check(options: Mapping[str, Any]) -> None:
    """Refuse options of a group that are out of range."""
    for name in ("amsgrad", "nesterov"):
        if options.get(name):
            raise NotSupported(
                f"{name} is set", "no correction is known that carries rounding errors in it: leave it out"
            )
    beta, *others = options.get("betas", (options.get("momentum"),))
    if not 0 < beta < 1:
        raise InvalidSetting(
            f"the momentum's decay is {beta}", "it lies between 0 and 1: the momentum carries the errors"
        )
    if not all(0 <= other < 1 for other in others):
        raise InvalidSetting(f"betas are {options['betas']}", "the second one is at least 0 and below 1")
    for name in ("lr", "eps", "weight_decay", "min_lr_injection", "dampening"):
        if not 0 <= float(options.get(name, 0.0)) < float("inf"):
            raise InvalidSetting(f"{name} is {options[name]}", f"{name} is a number of at least 0")
    for name, choices in (
        ("rounding", ROUNDINGS),
        ("compensation", get_args(Compensation)),
        ("momentum_dtype", ("float32", "bfloat16")),
    ):
        if options[name] not in choices:
            raise InvalidSetting(f"{name} is {options[name]!r}", f"{name} is one of {', '.join(choices)}")
