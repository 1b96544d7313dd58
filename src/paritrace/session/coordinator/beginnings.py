"""The rule of what a new generation begins with: configuration, revision, checkpoint, inputs (SE-9, SE-20, SE-37)."""

from paritrace.session.coordinator.configurations import Configurations
from paritrace.session.coordinator.generations import Started
from paritrace.session.coordinator.opening_request import Opening
from paritrace.session.coordinator_events import StartRanks
from paritrace.session.coordinator_record import Coordinator


class Beginnings:
    """`revision`, `inputs_digest`: the last ones of an earlier coordinator of this directory."""

    def __init__(
        self, opening: Opening, configurations: Configurations, *, revision: int, inputs_digest: str | None = None
    ) -> None:
        self._opening = opening
        self._inputs_digest = inputs_digest
        self._configurations = configurations
        earlier = configurations.last_requested(revision)
        again = earlier is not None and opening.config in ({}, earlier)
        self.first_revision = revision if again or earlier is None else revision + 1
        configurations.requested = dict(earlier if again and earlier is not None else opening.config)

    def of(self, action: StartRanks, machine: Coordinator) -> Started:
        """Return what a generation is started with: at first what was opened, later what a command asks for."""
        recovering = machine.starting
        if recovering is None:
            return Started(
                action.generation,
                self._configurations.requested,
                machine.config_revision,
                self._opening.start_from,
                self._inputs_digest,
            )
        given = action.body.get("values", {})  # the last request once they have come up: what is wrong is not kept
        return Started(
            action.generation,
            {**self._configurations.requested, **given},
            machine.config_revision + 1,
            action.body.get("checkpoint"),
            machine.inputs_digest or self._inputs_digest,
            action.body.get("inputs"),
            bool(action.body.get("tolerate_unknown", False)),
        )
