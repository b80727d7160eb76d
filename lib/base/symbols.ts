/**
 * Define `Symbol.asyncDispose` in realms that lack it: Node 20 and 22 define it in the main realm only, and Jest runs tests in another one.
 * Modules whose classes have the method for `await using` call it before the class; otherwise the method would get the name "undefined".
 * The value is the one that compilers use as a fallback.
 */
export function defineAsyncDispose(): void {
  if ((Symbol.asyncDispose as symbol | undefined) === undefined)
    Object.defineProperty(Symbol, 'asyncDispose', { value: Symbol.for('Symbol.asyncDispose') });
}

/** The key of the method that `console.log` calls, `inspect.custom` of `node:util`. */
export const INSPECT: unique symbol = Symbol.for('nodejs.util.inspect.custom') as never;
