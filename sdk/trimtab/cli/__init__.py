"""The command line `trimtab`. `import trimtab` does not import it."""
