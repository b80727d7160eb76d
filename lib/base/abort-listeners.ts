/** The functions to call when a signal aborts. The signal has one listener for all of them: Node warns of a leak when it has more than ten. */
const listening = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Call a function once when a signal aborts. A signal that has aborted already does not call it.
 *
 * Any number of subscriptions, iterables and clients of an app may share one signal.
 * @param signal undefined: has no effect
 * @returns releases the function, so that it is no longer called
 */
export function onAbort(signal: AbortSignal | undefined, run: () => void): () => void {
  if (signal === undefined || signal.aborted) return () => undefined;
  const functions = listening.get(signal) ?? listenTo(signal);
  const own = () => run(); // the same function may be passed twice
  functions.add(own);
  return () => {
    functions.delete(own);
    if (functions.size > 0 || listening.get(signal) !== functions) return;
    listening.delete(signal);
    signal.removeEventListener('abort', callAll);
  };
}

function listenTo(signal: AbortSignal): Set<() => void> {
  const functions = new Set<() => void>();
  listening.set(signal, functions);
  signal.addEventListener('abort', callAll);
  return functions;
}

/**
 * Call all functions. An error of one does not prevent the others from being called; it is thrown afterwards, as an error of a listener.
 */
function callAll(this: AbortSignal): void {
  const functions = listening.get(this);
  listening.delete(this);
  this.removeEventListener('abort', callAll);
  const errors: unknown[] = [];
  for (const run of functions ?? [])
    try {
      run();
    } catch (error) {
      errors.push(error);
    }
  if (errors.length === 1) throw errors[0];
  if (errors.length > 1) throw new AggregateError(errors, `${errors.length} listeners of one abort have failed`);
}
