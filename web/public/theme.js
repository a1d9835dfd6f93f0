// Before the first paint, so that a chosen theme does not flash. lib/theme.ts writes the choice.
try {
  const theme = localStorage.getItem("trimtab-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // No storage: the system's preference holds.
}
