"""How the periods of a deployment must fit together, in seconds."""

_MINUTE = 60


def check_periods(*, tick_period: int, is_local: bool, lease: int, lookahead: int, direct_horizon: int) -> None:
    """Raise ValueError for a period that does not fit the others."""
    if tick_period != _MINUTE and not is_local:
        raise ValueError(
            f"tick_period is {tick_period}: it must be {_MINUTE}, which is how often EventBridge Scheduler"
            " fires, unless local_run is true"
        )
    least = max(3 * tick_period, 2 * tick_period + lease) + 5
    if lookahead < least:
        raise ValueError(
            f"lookahead is {lookahead}: it must be at least max(3 tick_period, 2 tick_period + lease) + 5,"
            f" which is {least}"
        )
    least = lookahead + tick_period
    if direct_horizon < least:
        raise ValueError(
            f"direct_horizon is {direct_horizon}: it must be at least lookahead + tick_period, which is {least}"
        )
