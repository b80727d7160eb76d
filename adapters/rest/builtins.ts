// Modules of Node that an import of `embermq/management` does not load, for the reason in lib/base/builtins.ts: together they took 17 ms.

const buffer = once(() => process.getBuiltinModule('node:buffer'));
/** The module `node:crypto`. */
export const crypto = once(() => process.getBuiltinModule('node:crypto'));
/** The module `node:net`. */
export const net = once(() => process.getBuiltinModule('node:net'));
/** The module `node:stream`. */
export const stream: () => typeof import('node:stream') = once(() => process.getBuiltinModule('node:stream'));

/** `isUtf8` of `node:buffer`. */
export function isUtf8(bytes: Uint8Array): boolean {
  return buffer().isUtf8(bytes);
}

/** Make a value when it is first asked for. */
export function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
