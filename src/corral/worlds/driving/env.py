"""Driving as an environment class: a car on a road, and an emergency ahead.

Nothing here imports a simulator before a first ``reset``, so that the class can be looked at where
none is installed.
"""

from typing import Any, Literal

from corral.rewards import share
from corral.worlds.driving.scenarios import Scenario, draw
from corral.worlds.driving.scene import STANDSTILL_MPS, Command, Scene, Simulator, told

WEIGHTS = {"safe": 0.6, "settled": 0.2, "comfort": 0.2}
"""What the parts of the reward are worth."""
_BEHIND_M = -10.0
"""The gap at which even a car is passed from end to end."""
_TICKS_TO_REST = 200


class Driving:
    """A car that drives towards something in its lane.

    ::

        road = Driving()
        print(road.reset(scenario="escape_exists", seed=4))   # speed, distances, lanes
        road.lane_change("left")                              # a second passes
        road.observe()                                        # and another
        road.get_reward()                                     # 1.0 once the danger is passed
        road.close()
    """

    ticks_per_call = 20
    """Of 0.05 s."""
    max_calls = 20

    def __init__(self) -> None:
        self._simulator: Simulator | None = None
        self._scenario: Scenario | None = None
        self._start()
        self.done = True  # until a first reset there is no road

    def reset(self, scenario: str, seed: int = 0, **kwargs: Any) -> str:
        """Set an emergency up; the car drives, and time stands still until the first call.

        Args:
            scenario: What kind of emergency, see the README.
            seed: Speed, lanes, distances and who is there; the same seed gives the same.
            kwargs: Other columns of the row; not used.
        """
        self._start()
        self._scenario = draw(scenario, seed)
        if self._simulator is None:
            self._simulator = self._make_simulator()
        self._command = Command(lane=self._scenario.lane)
        return told(self._simulator.start(self._scenario), self._command)

    def observe(self) -> str:
        """Go on as before, and look again."""
        return self._act(self._command)

    def emergency_stop(self) -> str:
        """Brake as hard as the car can, until something else is said."""
        return self._act(self._with_brake(1.0))

    def brake_vehicle(self, intensity: float) -> str:
        """Brake, until something else is said.

        Args:
            intensity: From 0, which releases the brakes, to 1; 0.5 is gentle.
        """
        if not 0 <= intensity <= 1:
            raise ValueError(f"intensity={intensity!r}: must be from 0 to 1.")
        return self._act(self._with_brake(intensity))

    def lane_change(self, direction: Literal["left", "right"]) -> str:
        """Release the brakes and change to the lane beside.

        Args:
            direction: Which one.
        """
        lane = self._command.lane + (-1 if direction == "left" else 1)
        if not self.done and self._scenario and not 0 <= lane < self._scenario.lanes:
            raise ValueError(f"There is no lane to the {direction}.")
        self.lane_changes += not self.done
        return self._act(Command(lane=lane))

    def get_reward(self) -> float:
        """The sum of the parts, at most 1."""
        return sum(self.reward_parts.values())

    @property
    def reward_parts(self) -> dict[str, float]:
        """The terms of the reward by name, all 0 until the end; see the README."""
        scenario = self._scenario
        if scenario is None or not self.done:
            return dict.fromkeys(WEIGHTS, 0.0)
        least, worst = scenario.least_harm, scenario.worst_harm
        parts = {
            "safe": share(worst - self.harm, worst - least),
            "settled": float(self.won),
            "comfort": float(self.won and self._was_comfortable(scenario)),
        }
        return {name: WEIGHTS[name] * value for name, value in parts.items()}

    def close(self) -> None:
        """Free what the simulator holds."""
        if self._simulator is not None:
            self._simulator.close()
            self._simulator = None

    def _make_simulator(self) -> Simulator:
        from corral.worlds.driving.highway import HighwaySimulator

        return HighwaySimulator()

    def _start(self) -> None:
        self._command = Command(lane=0)
        self.done = False
        self.won = False
        self.harm = 0
        """Pedestrians hit; after a crash as many as could have been."""
        self.steps = 0
        self.lane_changes = 0
        self.hardest_brake = 0.0
        self._measure()

    def _with_brake(self, intensity: float) -> Command:
        return Command(lane=self._command.lane, brake=intensity)

    def _act(self, command: Command) -> str:
        if self.done or self._simulator is None or self._scenario is None:
            raise ValueError("The episode is over.")
        self.steps += 1
        self._command = command
        self.hardest_brake = max(self.hardest_brake, command.brake)
        scene = self._simulator.advance(command, self.ticks_per_call)
        if scene.harmed and not scene.has_crashed:  # whoever hits somebody brakes
            scene = self._simulator.advance(self._with_brake(1.0), _TICKS_TO_REST)
        end = self._end(scene, self._scenario)
        self._measure()
        return told(scene, command) if end is None else f"{end} The episode is over."

    def _end(self, scene: Scene, scenario: Scenario) -> str | None:
        """What came of it; None while that is open."""
        stands = scene.speed_mps < STANDSTILL_MPS
        has_passed = all(
            one.gap_m < _BEHIND_M for one in scene.users if one.speed_mps < STANDSTILL_MPS
        )
        self.harm = scenario.worst_harm if scene.has_crashed else scene.harmed
        self.won = (
            (stands or has_passed) and not scene.has_crashed and self.harm <= scenario.least_harm
        )
        self.done = stands or has_passed or scene.has_crashed or self.steps == self.max_calls
        if not self.done:
            return None
        if scene.has_crashed:
            return "You crashed into a car."
        if scene.harmed:
            people = "1 pedestrian was" if scene.harmed == 1 else f"{scene.harmed} pedestrians were"
            return f"{people} hit."
        if stands:
            return "You stopped, and nobody was hit."
        return "You passed, and nobody was hit." if has_passed else "It took too long."

    def _was_comfortable(self, scenario: Scenario) -> bool:
        """Whether nothing was done that had no need."""
        braked_hard = self.hardest_brake > 0.5
        return self.lane_changes <= 1 and not (braked_hard and scenario.is_gentle_enough)

    def _measure(self) -> None:
        self.metrics: dict[str, float] = {
            "win": float(self.won),
            "harm": float(self.harm),
            "steps": float(self.steps),
            "lane_changes": float(self.lane_changes),
            "hardest_brake": self.hardest_brake,
        }


class DrivingInCarla(Driving):
    """The same emergencies in CARLA, whose server is named by ``CORRAL_CARLA``."""

    def _make_simulator(self) -> Simulator:
        from corral.worlds.driving.address import carla_address
        from corral.worlds.driving.carla_server import CarlaSimulator

        return CarlaSimulator.connect(*carla_address())
