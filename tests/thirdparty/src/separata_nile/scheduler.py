"""An exponential moving average, a working example of a scheduler: put the paper's rule here."""

from __future__ import annotations

import math
from typing import Any


class AverageScheduler:
    """Decides the moving average of the numbers that it has seen.

    Args:
        strength: Share of the past in each decision, from 0 up to, but not including, 1.
    """

    def __init__(self, strength: float = 0.5) -> None:
        if not 0 <= strength < 1:
            raise ValueError(f"strength is {strength}; it lies from 0 up to, but not including, 1")
        self.strength = strength
        self.average = 0.0

    def step(self, observation: float) -> float:
        """Take one number, return the average so far.

        Raises:
            ValueError: If the number is not finite.
        """
        if not math.isfinite(observation):
            raise ValueError(f"the observation is {observation}; give a finite number")
        self.average = self.strength * self.average + (1 - self.strength) * observation
        return self.average

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on from here."""
        return {"average": self.average}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.average = float(state["average"])
