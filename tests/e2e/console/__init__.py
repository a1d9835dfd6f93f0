"""A package, since pytest ends a fixture of the scope "package" with the tests of a package, and else with the run."""
