import { readFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { basename } from 'node:path';
import { pathToFileURL } from 'node:url';
import { upperFirst } from './content.ts';
import { installError, messageOf } from './errors.ts';

/** The exports of a library. */
export interface Library {
  /**
   * The export of a plugin or a function: its name with an upper-case first letter, or the name itself.
   * @returns undefined if there is none
   */
  find(name: string): unknown;
}

/** The folders with the files of a plugin. */
export interface PluginPlace {
  /** `DATA_DIR/streams/etc/TYPE/NAME`; it exists if the archive had a folder `etc`. */
  readonly etcDir: string;
}

/** Names that occur in a shared library that registers itself with Node-API. */
const REGISTRATIONS = ['napi_register_module_v1', 'napi_module_register'];

/**
 * Load a library. Node and the system cache libraries by path, so each installation has a unique path.
 * @param path of a Node-API library (`.so`) or a module (`.js`, `.mjs`, `.cjs`)
 * @throws BrokerError PLUGIN_INSTALL_FAILED
 */
export async function loadLibrary(path: string): Promise<Library> {
  const exported = path.endsWith('.so') ? await loadNative(path) : await loadModule(path);
  return {
    find(name) {
      for (const each of [upperFirst(name), name])
        for (const from of [exported, exported.default as Exports | undefined])
          if (from !== undefined && from !== null && Object.hasOwn(from, each)) return from[each];
      return undefined;
    }
  };
}

type Exports = Readonly<Record<string, unknown>>;

async function loadNative(path: string): Promise<Exports> {
  const file = basename(path);
  const bytes = await readFile(path);
  if (!REGISTRATIONS.some((name) => bytes.includes(name)))
    throw installError(
      `cannot open ${file}: it is not a Node-API library, because it does not export ${REGISTRATIONS[0]}`
    );
  if (isTruncated(bytes)) throw installError(`cannot open ${file}: it is truncated`);
  const module: { exports: Exports } = { exports: {} };
  try {
    process.dlopen(module, path, constants.dlopen.RTLD_NOW);
  } catch (error) {
    throw installError(`cannot open ${file}: ${messageOf(error)}`, { cause: error });
  }
  return isObject(module.exports) ? module.exports : {};
}

/** Check whether the end of a 64-bit ELF file is missing: loading it would end the process by a signal. */
function isTruncated(bytes: Buffer): boolean {
  const isElf = bytes.length >= 64 && bytes.readUInt32BE(0) === 0x7f454c46 && bytes[4] === 2 && bytes[5] === 1;
  if (!isElf) return false;
  const sections = Number(bytes.readBigUInt64LE(40)) + bytes.readUInt16LE(58) * bytes.readUInt16LE(60);
  return sections > bytes.length;
}

async function loadModule(path: string): Promise<Exports> {
  try {
    return (await import(pathToFileURL(path).href)) as Exports;
  } catch (error) {
    throw installError(`cannot load ${basename(path)}: ${messageOf(error)}`, { cause: error });
  }
}

function isObject(value: unknown): value is Exports {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

/**
 * Create the object of an export: a function is called without arguments, with `new` if possible; another value is used
 * unchanged.
 * @throws errors of the constructor
 */
export function instance(exported: unknown): unknown {
  if (typeof exported !== 'function') return exported;
  const isConstructor = canConstruct(exported);
  return isConstructor ? Reflect.construct(exported as new () => unknown, []) : (exported as () => unknown)();
}

function canConstruct(target: object): boolean {
  try {
    Reflect.construct(Object, [], target as () => void); // reads the prototype of `target` without calling it
    return true;
  } catch {
    return false;
  }
}
