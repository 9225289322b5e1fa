"""What README, docs/benchmarks.md and docs/cost.md state, each figure by one script: `python -m bench --help`.

A script has `measure(run)`, which returns plain JSON, and `targets(figures)`, what these are to reach. `python -m bench
run` writes both into bench/results, and `python -m bench report` the tables of the docs out of those files.
"""
