"""Trimtab's `auto` next to other optimisers and guides of experts, on systems that people run."""
