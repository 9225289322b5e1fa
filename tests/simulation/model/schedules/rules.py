"""What schedules ask of a change, of those who may not see it yet, and of planners; each may be left out."""

from dataclasses import dataclass, fields


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleRules:
    """The rules, in the order of the steps that keep to them."""

    fence_then_head: bool = True
    head_is_asked_for: bool = True
    cut_is_not_by_the_clock: bool = True
    cut_is_not_before_the_last: bool = True
    changes_what_is_still_known_alone: bool = True
    intent_then_change: bool = True
    old_rule_is_planned_to_the_cut: bool = True
    changes_under_the_fence_alone: bool = True
    changes_its_generation_alone: bool = True
    changes_what_is_planned_as_read_alone: bool = True
    cancels_to_the_next_step: bool = True
    cancels_what_is_not_written: bool = True
    pause_cancels_what_is_put_off: bool = True
    pause_cancels_of_all_generations: bool = True
    generation_is_in_the_id: bool = True

    asked_then_changed: bool = True
    tick_asks_whether_cancelled: bool = True
    late_path_asks_whether_cancelled: bool = True

    newer_is_put_back: bool = True
    generations_are_compared_first: bool = True
    early_is_put_back: bool = True
    step_is_not_by_the_clock: bool = True
    submitted_then_planned_to: bool = True
    next_job_then_planned_to: bool = True
    planned_to_is_conditional: bool = True

    @classmethod
    def names(cls) -> list[str]:
        return [rule.name for rule in fields(cls)]

    def all_ask(self) -> bool:
        """Tell whether nobody takes a cancellation for none that is only not to be seen yet."""
        asks = self.tick_asks_whether_cancelled and self.late_path_asks_whether_cancelled
        return self.asked_then_changed and asks
