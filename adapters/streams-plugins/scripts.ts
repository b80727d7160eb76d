import { BrokerError, InvalidInput, NotFound, StateError } from '../../lib/index.ts';
import type { ScriptCounters, ScriptDescription, ScriptInput, ScriptsApi } from './api.ts';
import type { Changes } from './changes.ts';
import type { Definition } from './definitions.ts';
import { messageOf } from './errors.ts';
import { callable } from './function-object.ts';
import { checkFree } from './names.ts';
import type { PluginsHost } from './options.ts';
import type { PluginList } from './plugin-list.ts';
import { redefine } from './registry.ts';
import { Script, type ScriptLimits } from './script.ts';

const MAX_SCRIPT_BYTES = 256 * 1024;
const MAX_DESCRIPTION_CHARACTERS = 4096;

/** A defined function. */
interface Running {
  readonly script: Script;
  readonly definition: Definition;
}

/** The functions in JavaScript. */
export class Scripts implements ScriptsApi {
  readonly #host: PluginsHost;
  readonly #list: PluginList;
  readonly #changes: Changes;
  readonly #limits: ScriptLimits & { readonly max: number };
  readonly #running = new Map<string, Running>();

  /** @internal */
  constructor(host: PluginsHost, list: PluginList, changes: Changes, limits: ScriptLimits & { readonly max: number }) {
    this.#host = host;
    this.#list = list;
    this.#changes = changes;
    this.#limits = limits;
  }

  create(input: ScriptInput): Promise<ScriptDescription> {
    return this.#put(input, false);
  }

  replace(input: ScriptInput): Promise<ScriptDescription> {
    return this.#put(input, true);
  }

  async list(): Promise<string[]> {
    return this.#list.scripts.map(({ id }) => id).sort();
  }

  async get(id: string): Promise<ScriptDescription> {
    return this.#find(id);
  }

  /** @deprecated Use `get`. */
  describe(id: string): Promise<ScriptDescription> {
    return this.get(id);
  }

  delete(id: string): Promise<void> {
    return this.#changes.run(async () => {
      const found = this.#find(id);
      await this.#list.setScripts(this.#list.scripts.filter((each) => each !== found));
      const running = this.#running.get(id);
      this.#running.delete(id);
      if (running !== undefined) await redefine(this.#host.streams, [running.definition], []);
    });
  }

  /** @deprecated Use `delete`. */
  drop(id: string): Promise<void> {
    return this.delete(id);
  }

  async counters(id: string): Promise<ScriptCounters> {
    this.#find(id);
    return this.#running.get(id)?.script.counters ?? { calls: 0, timeouts: 0, failures: 0 };
  }

  /** @deprecated Use `counters`. */
  figures(id: string): Promise<ScriptCounters> {
    return this.counters(id);
  }

  /**
   * Define the functions that are not defined yet. Failures are reported. Called within a change.
   * @internal
   */
  async begin(): Promise<void> {
    for (const description of this.#list.scripts) {
      if (this.#running.has(description.id)) continue;
      try {
        const running = await this.#compile(description);
        await redefine(this.#host.streams, [], [running.definition]);
        this.#running.set(description.id, running);
      } catch (error) {
        this.#host.failed(error, `defining the javascript function ${description.id}`);
      }
    }
  }

  async #put(input: ScriptInput, isReplacing: boolean): Promise<ScriptDescription> {
    const description = checkScript(input);
    return this.#changes.run(async () => {
      const { id } = description;
      const old = this.#list.scripts.find((each) => each.id === id);
      checkFree([id], this.#list, isReplacing ? { script: id } : {});
      if (old === undefined && this.#list.scripts.length >= this.#limits.max)
        throw new StateError(
          'SCRIPTS_FULL',
          `the maximum of ${this.#limits.max} functions is reached (option maxScripts)`
        );
      const fresh = await this.#compile(description);
      const running = this.#running.get(id);
      const definitions = running === undefined ? [] : [running.definition];
      await redefine(this.#host.streams, definitions, [fresh.definition]);
      try {
        await this.#list.setScripts([...this.#list.scripts.filter((each) => each !== old), description]);
      } catch (error) {
        await redefine(this.#host.streams, [fresh.definition], definitions);
        throw error;
      }
      this.#running.set(id, fresh);
      return description;
    });
  }

  async #compile(description: ScriptDescription): Promise<Running> {
    const { id, isAgg } = description;
    try {
      const script = await Script.compile(description, this.#limits);
      const type = callable(id, {
        about: description.description === '' ? 'Function in JavaScript.' : description.description,
        isAggregate: isAgg,
        start: () => (args) => script.call(args)
      });
      return { script, definition: { what: 'function', name: id, type } };
    } catch (cause) {
      if (cause instanceof BrokerError) throw cause;
      throw scriptError('script', 'a valid script', `javascript function ${id}: ${messageOf(cause)}`, cause);
    }
  }

  #find(id: string): ScriptDescription {
    const found = this.#list.scripts.find((each) => each.id === id);
    if (found === undefined) throw new NotFound('SCRIPT_NOT_FOUND', 'not found');
    return found;
  }
}

function scriptError(field: string, expected: string, message: string, cause?: unknown): InvalidInput {
  const error = new InvalidInput('SCRIPT_INVALID', field, expected, undefined, message);
  if (cause !== undefined) error.cause = cause;
  return error;
}

function checkScript(input: ScriptInput): ScriptDescription {
  const { id, description = '', script, isAgg = false } = input ?? {};
  const fail = (field: string, expected: string): never => {
    throw scriptError(field, expected, `invalid ${field}: expected ${expected}`);
  };
  if (typeof id !== 'string' || !/^[A-Za-z_]\w{0,63}$/.test(id))
    return fail('id', 'a name of 1 to 64 letters, digits and "_"');
  if (typeof description !== 'string' || description.length > MAX_DESCRIPTION_CHARACTERS)
    return fail('description', `a string of at most ${MAX_DESCRIPTION_CHARACTERS} characters`);
  if (typeof script !== 'string' || script.trim() === '' || Buffer.byteLength(script) > MAX_SCRIPT_BYTES)
    return fail('script', `code of at most ${MAX_SCRIPT_BYTES} bytes that defines the function ${id}`);
  if (typeof isAgg !== 'boolean') return fail('isAgg', 'true or false');
  return { id, description, script, isAgg };
}
