// Each function has its own WebAssembly module: a failure of the interpreter, and its memory, concern no other
// function. Time is real time and is checked by the interpreter every 10,000 steps, since a call is synchronous;
// memory is limited by the module, because the interpreter does not count small pieces. A handle of the interpreter
// must be disposed of on every path. After a failure of the interpreter itself, every call fails with it.

import type { QuickJSContext, QuickJSHandle } from 'quickjs-emscripten';
import { BrokerError } from '../../lib/index.ts';
import type { ScriptCounters, ScriptDescription } from './api.ts';
import { messageOf } from './errors.ts';

/** Limits of a function in JavaScript. */
export interface ScriptLimits {
  readonly timeMs: number;
  readonly memoryBytes: number;
  readonly onLog: ((name: string, text: string) => void) | undefined;
}

/** The name of a script in error positions. */
const FILE = 'script.js';
/**
 * Maximum size of the stack of the interpreter in bytes. It is smaller than that of WebAssembly, so that deep recursion
 * ends with an error of the script.
 */
const STACK_BYTES = 256 * 1024;
/** Minimum time for loading a script, which includes compiling the interpreter. */
const LOAD_MS = 1000;
const MAX_LOG_CHARACTERS = 1000;
/** The size of a page of WebAssembly memory. */
const PAGE_BYTES = 65_536;

/** Converts structures inside the interpreter. */
const CONVERSIONS = `[JSON.parse, ((stringify, Pending) => (value) => {
  if (value instanceof Pending) throw new TypeError('the result must not be a promise');
  return stringify(value, (_key, inner) => typeof inner === 'bigint' ? Number(inner) : inner);
})(JSON.stringify, Promise)]`;

/**
 * A function in JavaScript in a separate interpreter, which is garbage-collected with this object. It offers only the
 * language and `log()`.
 *
 * Structures and results go through JSON, so dates are strings and bytes Base64.
 */
export class Script {
  readonly description: ScriptDescription;
  readonly #limits: ScriptLimits;
  readonly #context: QuickJSContext;
  readonly #memory: Memory;
  #function!: QuickJSHandle;
  #parse!: QuickJSHandle;
  #stringify!: QuickJSHandle;
  #timeMs = 0;
  #deadline = Infinity;
  #isLate = false;
  /** The reason why the interpreter itself has failed. */
  #failure: Error | undefined = undefined;
  readonly #counters = { calls: 0, timeouts: 0, failures: 0 };

  private constructor(description: ScriptDescription, limits: ScriptLimits, context: QuickJSContext, memory: Memory) {
    this.description = description;
    this.#memory = memory;
    this.#limits = limits;
    this.#context = context;
  }

  /** @throws Error the fault of the script, with its position; BrokerError PACKAGE_MISSING */
  static async compile(description: ScriptDescription, limits: ScriptLimits): Promise<Script> {
    const { newQuickJSWASMModule, newVariant, RELEASE_SYNC } = await loadInterpreter();
    // a separate module for each function: a failure of the interpreter, and its memory, affect no other function. The
    // interpreter does not count small pieces towards its limit, so the memory of the module is limited
    const wasmMemory = memoryOf(limits.memoryBytes);
    const runtime = (await newQuickJSWASMModule(newVariant(RELEASE_SYNC, { wasmMemory }))).newRuntime();
    runtime.setMaxStackSize(STACK_BYTES);
    const script = new Script(description, limits, runtime.newContext(), wasmMemory);
    // Real time, because a call is synchronous and the clock of a test does not advance during it. The interpreter
    // calls this every 10,000 steps.
    runtime.setInterruptHandler(() => {
      if (performance.now() > script.#deadline) script.#isLate = true;
      return script.#isLate;
    });
    script.#guarded(() => script.#load(), Math.max(limits.timeMs, LOAD_MS));
    return script;
  }

  get counters(): ScriptCounters {
    return { ...this.#counters };
  }

  /**
   * Call the function.
   * @throws Error with the position in the script
   */
  call(args: readonly unknown[]): unknown {
    this.#counters.calls++;
    try {
      return this.#guarded(() => this.#call(args));
    } catch (error) {
      if (this.#isLate) this.#counters.timeouts++;
      else this.#counters.failures++;
      throw error;
    }
  }

  #load(): void {
    const context = this.#context;
    const { id, script } = this.description;
    const log = context.newFunction('log', (...args) => this.#log(args));
    context.setProp(context.global, 'log', log);
    log.dispose();
    const conversions = this.#evaluate(CONVERSIONS);
    this.#parse = context.getProp(conversions, 0);
    this.#stringify = context.getProp(conversions, 1);
    conversions.dispose();
    this.#evaluate(script).dispose();
    this.#function = this.#evaluate(`typeof ${id} === 'function' ? ${id} : undefined`);
    if (context.typeof(this.#function) !== 'function')
      throw new Error(`the script does not define the function "${id}"`);
  }

  #evaluate(code: string): QuickJSHandle {
    const result = this.#context.evalCode(code, FILE);
    if (result.error !== undefined) throw this.#errorOf(result.error);
    return result.value;
  }

  #call(args: readonly unknown[]): unknown {
    const context = this.#context;
    const handles: QuickJSHandle[] = [];
    try {
      for (const arg of args) handles.push(this.#toHandle(arg));
      return this.#fromHandle(this.#apply(this.#function, handles));
    } finally {
      for (const handle of handles) if (handle !== context.undefined) handle.dispose();
    }
  }

  #apply(target: QuickJSHandle, args: QuickJSHandle[]): QuickJSHandle {
    const result = this.#context.callFunction(target, this.#context.undefined, ...args);
    if (result.error !== undefined) throw this.#errorOf(result.error);
    return result.value;
  }

  #toHandle(value: unknown): QuickJSHandle {
    const context = this.#context;
    switch (typeof value) {
      case 'number':
        return context.newNumber(value);
      case 'string':
        return context.newString(value);
      case 'boolean':
        return value ? context.true : context.false;
      case 'bigint':
        return context.newBigInt(value);
      case 'object': {
        if (value === null) return context.null;
        const text = context.newString(JSON.stringify(value, replaced));
        try {
          return this.#apply(this.#parse, [text]);
        } finally {
          text.dispose();
        }
      }
      default:
        return context.undefined;
    }
  }

  #fromHandle(handle: QuickJSHandle): unknown {
    const context = this.#context;
    try {
      const type = context.typeof(handle);
      switch (type) {
        case 'number':
          return context.getNumber(handle);
        case 'string':
          return context.getString(handle);
        case 'bigint':
          return context.getBigInt(handle);
        case 'boolean':
        case 'undefined':
          return context.dump(handle) as unknown;
        case 'object': {
          const text = this.#apply(this.#stringify, [handle]);
          try {
            return JSON.parse(context.getString(text)) as unknown;
          } finally {
            text.dispose();
          }
        }
        default:
          throw new Error(`the result is a ${type}, which is not a value`);
      }
    } finally {
      handle.dispose();
    }
  }

  /** Run a function in the interpreter with a time limit. */
  #guarded<T>(run: () => T, timeMs = this.#limits.timeMs): T {
    if (this.#failure !== undefined) throw this.#failure;
    this.#isLate = false;
    this.#timeMs = timeMs;
    this.#deadline = performance.now() + timeMs;
    try {
      return run();
    } catch (error) {
      if ((error as Error | undefined)?.name === 'RuntimeError')
        throw (this.#failure = new Error('the interpreter has failed; replace the function', { cause: error }));
      throw error;
    } finally {
      this.#deadline = Infinity;
    }
  }

  #errorOf(handle: QuickJSHandle): Error {
    const { memoryBytes } = this.#limits;
    try {
      if (this.#isLate) return new Error(`it took longer than ${this.#timeMs} ms, the option scriptTime`);
      const thrown = this.#context.dump(handle) as unknown;
      // null is also thrown if there is no memory for the error; the memory grows by 5 % or more, so it ends before the limit
      const text = `it needs more memory than ${memoryBytes} bytes, the option scriptMemory`;
      if (thrown === null && this.#memory.buffer.byteLength * 1.05 >= maxPages(memoryBytes) * PAGE_BYTES)
        return new Error(`${text}, or has thrown null`);
      if (typeof thrown !== 'object' || thrown === null) return new Error(`it has thrown ${messageOf(thrown)}`);
      const { name = 'Error', message = '', stack } = thrown as Partial<Error>;
      if (message === 'out of memory') return new Error(text);
      return new Error(`${name}: ${messageOf(message)}${positionIn(stack)}`);
    } finally {
      handle.dispose();
    }
  }

  #log(args: readonly QuickJSHandle[]): void {
    const { onLog } = this.#limits;
    if (onLog === undefined) return;
    const text = args.map((each) => {
      const value = this.#context.dump(each) as unknown;
      return typeof value === 'string' ? value : (JSON.stringify(value, replaced) ?? String(value));
    });
    onLog(this.description.id, text.join(' ').slice(0, MAX_LOG_CHARACTERS));
  }
}

type Memory = NonNullable<Parameters<Interpreter['newVariant']>[1]['wasmMemory']>;

/** Memory of WebAssembly: initially 16 MB, as the interpreter was compiled for. */
function memoryOf(bytes: number): Memory {
  // missing in the types of Node
  const { WebAssembly } = globalThis as unknown as { WebAssembly: { Memory: new (size: object) => Memory } };
  return new WebAssembly.Memory({ initial: 256, maximum: maxPages(bytes) });
}

function maxPages(bytes: number): number {
  return Math.max(257, Math.floor(bytes / PAGE_BYTES));
}

type Interpreter = Pick<typeof import('quickjs-emscripten'), 'newQuickJSWASMModule' | 'newVariant' | 'RELEASE_SYNC'>;

function positionIn(stack: unknown): string {
  const [, line, column] = /script\.js:(\d+)(?::(\d+))?/.exec(String(stack ?? '')) ?? [];
  if (line === undefined) return '';
  return ` (line ${line}${column === undefined ? '' : `, column ${column}`})`;
}

/** Convert a value for JSON: integers beyond the precision of numbers are rounded, bytes become Base64. */
function replaced(this: unknown, key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  const own = (this as Record<string, unknown>)[key]; // before toJSON() of Buffer
  return own instanceof Uint8Array ? Buffer.from(own).toString('base64') : value;
}

async function loadInterpreter(): Promise<Interpreter> {
  try {
    return await import('quickjs-emscripten');
  } catch (cause) {
    const text = 'functions in JavaScript need the package quickjs-emscripten: npm install quickjs-emscripten';
    throw new BrokerError('PACKAGE_MISSING', text, { cause });
  }
}
