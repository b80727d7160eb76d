import { InvalidInput, NotFound, StateError } from '../base/errors.ts';
import { nearest } from '../base/fields.ts';
import { checkTable } from '../targets/type-checks.ts';
import type { FormatType, StreamFormat } from './format.ts';
import { FORMATS, formatTypeOf } from './formats/formats.ts';
import type { StreamFunction } from './function.ts';
import type { SinkType, SourceType } from './types.ts';

const NAME = /^[A-Za-z][\w-]{0,63}$/;
const NAME_TEXT = 'a name (a letter, then at most 63 letters, digits, "_" or "-")';
const TYPES = ['any', 'bigint', 'float', 'number', 'string', 'boolean', 'datetime', 'array', 'struct'];
const PARAMETER = new RegExp(`^(${TYPES.join('|')})(\\?|\\.\\.\\.)?$`);
const FUNCTION_KINDS = ['scalar', 'context', 'aggregate', 'analytic', 'rows', 'columns'];

/** The source types, sink types and functions that statements and rules can name. */
export class Registry {
  readonly #sources = new Map<string, SourceType>();
  readonly #sinks = new Map<string, SinkType>();
  readonly #functions = new Map<string, StreamFunction>();
  readonly #formats = new Map<string, FormatType>();

  /** The functions by name, in lower case. */
  get functions(): ReadonlyMap<string, StreamFunction> {
    return this.#functions;
  }

  /** The formats of the app. */
  formats(): readonly FormatType[] {
    return [...this.#formats.values()];
  }

  sources(): SourceType[] {
    return sorted(this.#sources);
  }

  sinks(): SinkType[] {
    return sorted(this.#sinks);
  }

  /** @throws NotFound SOURCE_NOT_FOUND */
  source(name: string): SourceType {
    return find(this.#sources, name.toLowerCase(), 'source');
  }

  /** @throws NotFound SINK_NOT_FOUND */
  sink(name: string): SinkType {
    return find(this.#sinks, name.toLowerCase(), 'sink');
  }

  /** @throws InvalidInput SOURCE_INVALID; StateError SOURCE_EXISTS */
  defineSource(type: SourceType): void {
    checkType(type, 'source', ['open', 'openLookup']);
    checkTable(type.properties, `${type.name}.properties`, 'SOURCE_INVALID');
    add(this.#sources, type.name.toLowerCase(), type, 'source');
  }

  /** @throws InvalidInput SINK_INVALID; StateError SINK_EXISTS */
  defineSink(type: SinkType): void {
    checkType(type, 'sink', ['open']);
    checkTable(type.properties, `${type.name}.properties`, 'SINK_INVALID');
    add(this.#sinks, type.name.toLowerCase(), type, 'sink');
  }

  /** @throws InvalidInput FUNCTION_INVALID; StateError FUNCTION_EXISTS */
  defineFunction(definition: StreamFunction): void {
    checkFunction(definition);
    add(this.#functions, definition.name.toLowerCase(), definition, 'function');
  }

  /** @throws InvalidInput FORMAT_INVALID; StateError FORMAT_EXISTS */
  defineFormat(format: StreamFormat | FormatType): void {
    const { name, make, decode, encode } = (format ?? {}) as Partial<StreamFormat & FormatType>;
    const hasMethods = typeof make === 'function' || (typeof decode === 'function' && typeof encode === 'function');
    if (typeof name !== 'string' || !NAME.test(name) || !hasMethods) {
      const expected = `an object with ${NAME_TEXT} and decode() and encode(), or make()`;
      throw new InvalidInput('FORMAT_INVALID', 'format', expected, format);
    }
    const type = formatTypeOf(format);
    if (FORMATS.some(({ name }) => name === type.name))
      throw new StateError('FORMAT_EXISTS', `format ${type.name} is built in: give the format another name`);
    add(this.#formats, type.name, type, 'format');
  }

  /** @returns false if the name is not defined @throws InvalidInput STREAM_INVALID */
  undefine(what: 'function' | 'source' | 'sink', name: string): boolean {
    const all = new Map<unknown, Map<string, unknown>>([
      ['function', this.#functions],
      ['source', this.#sources],
      ['sink', this.#sinks]
    ]).get(what);
    if (all === undefined) throw new InvalidInput('STREAM_INVALID', 'what', '"function", "source" or "sink"', what);
    if (typeof name !== 'string') throw new InvalidInput('STREAM_INVALID', 'name', 'a string', name);
    return all.delete(name.toLowerCase());
  }
}

function sorted<T extends { readonly name: string }>(all: ReadonlyMap<string, T>): T[] {
  return [...all.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function find<T>(all: ReadonlyMap<string, T>, name: string, what: 'source' | 'sink'): T {
  const found = all.get(name);
  if (found !== undefined) return found;
  const near = nearest(name, [...all.keys()]);
  const hint = near === undefined ? `known: ${[...all.keys()].sort().join(', ')}` : `did you mean ${near}?`;
  throw new NotFound(`${what.toUpperCase()}_NOT_FOUND`, `unknown ${what} type ${name}; ${hint}`);
}

function add<T>(all: Map<string, T>, name: string, type: T, what: string): void {
  if (all.has(name)) throw new StateError(`${what.toUpperCase()}_EXISTS`, `${what} name ${name} already exists`);
  all.set(name, type);
}

function checkType(type: object, what: string, methods: readonly string[]): void {
  const given = type as Readonly<Record<string, unknown>> | null | undefined;
  const isGood =
    typeof given === 'object' &&
    given !== null &&
    typeof given.name === 'string' &&
    NAME.test(given.name) &&
    methods.some((method) => typeof given[method] === 'function');
  if (!isGood) {
    const expected = `an object with ${NAME_TEXT} and ${methods.join(' or ')}()`;
    throw new InvalidInput(`${what.toUpperCase()}_INVALID`, what, expected, type);
  }
}

function checkFunction(definition: StreamFunction): void {
  const { name, kind, params } = (definition ?? {}) as Partial<StreamFunction>;
  const expected = 'an object with name, kind, params, about and run, make or make and load';
  const fault = (field: string, what: string, got: unknown) => new InvalidInput('FUNCTION_INVALID', field, what, got);
  if (typeof name !== 'string' || !/^[A-Za-z]\w{0,63}$/.test(name)) throw fault('function', expected, definition);
  if (!FUNCTION_KINDS.includes(kind as string))
    throw fault(`${name}.kind`, `one of ${FUNCTION_KINDS.join(', ')}`, kind);
  if (!Array.isArray(params)) throw fault(`${name}.params`, 'an array of types', params);
  for (const [at, param] of params.entries())
    if (typeof param !== 'string' || !PARAMETER.test(param))
      throw fault(`${name}.params[${at}]`, `one of ${TYPES.join(', ')}, optionally followed by "?" or "..."`, param);
  const methods = definition as Partial<Record<'run' | 'make' | 'load', unknown>>;
  const needed = kind === 'scalar' ? (['run'] as const) : (['make'] as const);
  const also = kind === 'aggregate' || kind === 'analytic' ? (['load'] as const) : [];
  for (const method of [...needed, ...also]) {
    const call = methods[method];
    if (typeof call !== 'function') throw fault(`${name}.${method}`, 'a function', call);
    if (call.constructor.name === 'AsyncFunction')
      throw fault(`${name}.${method}`, 'a function that is not async, because rows do not wait', call);
  }
}
