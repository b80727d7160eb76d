/** The names of the methods that return promises. */
type AsyncMethod<T> = {
  [K in keyof T]: T[K] extends (...args: never[]) => Promise<unknown> ? K : never;
}[keyof T];

/** Methods that load the object and call its method of the same name. */
export function lazy<T, K extends AsyncMethod<T>>(load: () => Promise<T>, ...names: readonly K[]): Pick<T, K> {
  const methods = names.map((name) => {
    const method = async (...args: unknown[]) =>
      ((await load()) as Record<K, (...given: unknown[]) => unknown>)[name](...args);
    return [name, method] as const;
  });
  return Object.fromEntries(methods) as Pick<T, K>;
}

/** An iterator that is still being made. Its methods wait for it, and reject if that fails. */
export function lazyIterator<T>(making: Promise<AsyncIterableIterator<T>>): AsyncIterableIterator<T> {
  making.catch(() => undefined); // `next` throws it
  return {
    next: () => making.then((made) => made.next()),
    return: () => making.then((made) => made.return!()),
    [Symbol.asyncIterator]() {
      return this;
    }
  };
}

/** Make a value once, also for calls that overlap. After a failure, the next call tries again. */
export function onceMade<T>(make: () => Promise<T>): () => Promise<T> {
  let making: Promise<T> | undefined;
  return () => {
    making ??= make().catch((error) => {
      making = undefined;
      throw error;
    });
    return making;
  };
}
