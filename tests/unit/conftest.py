import gc

from hypothesis import HealthCheck, settings

# How long an example takes says how busy the machine is, and nothing of the code.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# To look over all that is imported, for every 700 objects more, takes a seventh of the time: most is freed before.
gc.set_threshold(100_000, 20, 20)
