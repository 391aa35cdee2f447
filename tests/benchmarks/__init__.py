"""What the product costs, as ratios to `true` in one run on one computer.

Run with `make bench`, or `python -m tests.benchmarks --help`.
"""
