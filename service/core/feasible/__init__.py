"""The feasible configurations of finite parameters: their number, any of them by its index, uniform draws."""
