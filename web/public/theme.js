// Runs before the first paint, so that the page does not flash in another theme. lib/theme.ts stores the choice.
try {
  const theme = localStorage.getItem("trimtab-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Without storage, the system's preference applies.
}
