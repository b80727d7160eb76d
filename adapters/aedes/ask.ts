/** The arguments that a handler has passed to its callback. */
export interface Answer<T> {
  readonly error: Error | undefined;
  readonly value: T | undefined;
}

/**
 * Call a handler that answers through a callback.
 * @returns the answer, synchronously if the handler has called back synchronously. Errors and rejections become the
 * error of the answer
 */
export function ask<T>(
  call: (callback: (error?: Error | null, value?: T | null) => void) => unknown
): Answer<T> | Promise<Answer<T>> {
  let answer: Answer<T> | undefined;
  let settle: ((answer: Answer<T>) => void) | undefined;
  const callback = (error?: Error | null, value?: T | null): void => {
    if (answer !== undefined) return;
    answer = { error: error ? asError(error) : undefined, value: value ?? undefined };
    settle?.(answer);
  };
  try {
    const result = call(callback);
    if (isPromise(result)) result.then(undefined, (error: unknown) => callback(asError(error)));
  } catch (error) {
    callback(asError(error));
  }
  return answer ?? new Promise((resolve) => (settle = resolve));
}

/** Apply a function to a value, or to the result of a promise. */
export function after<T, R>(value: T | Promise<T>, run: (value: T) => R | Promise<R>): R | Promise<R> {
  return isPromise(value) ? value.then(run) : run(value);
}

/** The thrown value, if it is an error; otherwise an error with its text. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

export function noop(): void {}

export function isPromise<T>(value: unknown): value is Promise<T> {
  return typeof (value as Promise<T> | undefined)?.then === 'function';
}
