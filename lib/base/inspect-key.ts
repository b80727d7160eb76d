/** The key of the method that `console.log` calls, `inspect.custom` of `node:util`. */
export const INSPECT: unique symbol = Symbol.for('nodejs.util.inspect.custom') as never;
