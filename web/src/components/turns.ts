const waiting: (() => void)[] = [];
let isBusy = false;

function next(): void {
  const task = waiting.shift();
  isBusy = task !== undefined;
  if (task === undefined) return;
  // A timer is a task of its own, so the page answers clicks and paints between two of them.
  setTimeout(() => {
    try {
      task();
    } finally {
      next();
    }
  });
}

/** Run a task after all that came before, each in a task of its own. Returns a function that removes it if it has not run. */
export function inTurn(task: () => void): () => void {
  waiting.push(task);
  if (!isBusy) next();
  return () => {
    const place = waiting.indexOf(task);
    if (place >= 0) waiting.splice(place, 1);
  };
}
