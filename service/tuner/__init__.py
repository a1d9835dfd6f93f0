"""The whole method without a server: an algorithm with the policies for noise, pruning and stopping.

`Method` describes the method, and `Tuner` applies it to one study. The package imports only core, algorithms and
policies.
"""
