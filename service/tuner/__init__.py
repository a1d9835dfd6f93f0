"""The whole method without a server: an algorithm joined with the policies for noise, pruning and stopping.

`Method` says what is to be done, `Tuner` does it for one study. Imports core, algorithms and policies alone.
"""
