"""The command line `trimtab`. Nothing of it is imported by `import trimtab`."""
