"""How far the deployed stack goes: a model of it in virtual time, checked against the local stack, and what it says.

`make capacity` draws the curves, `python -m benchmarks.capacity --rate 500 --worker payments` plans one rate, and
`--validate` compares the model with real consumers. What is modelled, and what is not, is told in docs/capacity.md.
"""
