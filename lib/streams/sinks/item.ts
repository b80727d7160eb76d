import { createHash } from '../../base/builtins.ts';
import type { Cascade } from '../../packets/named-publisher.ts';
import { parseJson } from '../formats/json.ts';
import { jsonText } from '../formats/json-text.ts';
import type { Properties, SinkItem } from '../types.ts';
import { type Cause, withCascade } from '../values/cause.ts';
import type { DynamicProperties } from './dynamic.ts';
import type { Output } from './transform.ts';

/** Properties shared by all items of a sink. */
export interface ItemKind {
  readonly properties: Properties;
  readonly dynamic: DynamicProperties;
  /** Prefix of the ids. */
  readonly prefix: string;
  /** @throws StreamFailure */
  encode(value: unknown): Buffer;
  /**
   * The result of `encode` as text, for a value that is not encoded yet; undefined if the format is binary.
   * @throws StreamFailure
   */
  readonly text: ((value: unknown) => string) | undefined;
}

/** An item that is sent from memory. Its bytes and properties are computed when a sink asks for them. */
export class MadeItem implements SinkItem {
  readonly value: unknown;
  readonly cause: Cause | undefined;
  readonly #rows: unknown;
  readonly #kind: ItemKind;
  readonly #number: number;
  #bytes: Buffer | undefined;
  #filled: Map<string, unknown> | undefined;

  constructor({ rows, value }: Output, kind: ItemKind, number: number, cause?: Cause) {
    this.value = value;
    this.cause = cause;
    this.#rows = rows;
    this.#kind = kind;
    this.#number = number;
  }

  get id(): string {
    return `${this.#kind.prefix}-${this.#number.toString(36)}`;
  }

  get bytes(): Buffer {
    return (this.#bytes ??= this.#kind.encode(this.value));
  }

  get text(): string | undefined {
    const { value } = this;
    if (this.#kind.text === undefined || value instanceof Uint8Array) return undefined;
    return typeof value === 'string' ? value : this.#kind.text(value);
  }

  property(name: string): unknown {
    const fill = this.#kind.dynamic.get(name);
    if (fill === undefined) return this.#kind.properties[name];
    this.#filled ??= new Map();
    if (!this.#filled.has(name)) this.#filled.set(name, fill(this.#rows));
    return this.#filled.get(name);
  }
}

/** The properties of a kind of items, and those that are filled in. */
export type FilledKind = Pick<ItemKind, 'properties' | 'dynamic'>;

/** An item that is sent from an entry of an outbox. */
export class EntryItem implements SinkItem {
  readonly id: string;
  readonly bytes: Buffer;
  readonly value: unknown;
  readonly cause: Cause | undefined;
  readonly #filled: Readonly<Record<string, unknown>>;
  /** True if the templates are those with which the item was made. */
  readonly #isCurrent: boolean;
  readonly #kind: FilledKind;

  constructor(id: string, content: Buffer, kind: FilledKind, cascade?: Cascade) {
    const end = 4 + content.readUInt32BE(0);
    const head = parseJson(content.toString('utf8', 4, end)) as ItemHead;
    this.id = id;
    this.bytes = content.subarray(end);
    this.cause = withCascade(head.cause, cascade);
    this.#filled = head.filled;
    this.#isCurrent = head.templates === undefined || head.templates === templatesOf(kind);
    this.#kind = kind;
    if (head.kind === 'bytes') this.value = this.bytes;
    else if (head.kind === 'value') this.value = head.value;
    else this.value = head.kind === 'text' ? this.bytes.toString() : parseJson(this.bytes.toString());
  }

  /**
   * The values of templates that have changed since the item was made are not used: they may contain secrets of another
   * server, or name it. The templates are filled in again from the value.
   */
  property(name: string): unknown {
    const { dynamic, properties } = this.#kind;
    const fill = dynamic.get(name);
    if (fill === undefined) return properties[name];
    return this.#isCurrent && Object.hasOwn(this.#filled, name) ? this.#filled[name] : fill(this.value);
  }
}

interface ItemHead {
  /** The kind of the value: the bytes, their text, the JSON in them, or the member `value`. */
  readonly kind: 'bytes' | 'text' | 'json' | 'value';
  readonly value?: unknown;
  readonly filled: Readonly<Record<string, unknown>>;
  /** See `templatesOf`. Absent if there are none, and in entries of 0.2. */
  readonly templates?: string;
  readonly cause?: Cause;
}

const TEMPLATES = new WeakMap<FilledKind['dynamic'], string>();

/** A short string that identifies the templates of a kind, because they may be long, and contain secrets. */
function templatesOf({ properties, dynamic }: FilledKind): string {
  const known = TEMPLATES.get(dynamic);
  if (known !== undefined) return known;
  const text = jsonText([...dynamic.keys()].map((name) => [name, properties[name]]));
  const made = createHash('sha256').update(text).digest('base64url').slice(0, 22);
  TEMPLATES.set(dynamic, made);
  return made;
}

/**
 * Encode an item as the content of an entry: the length of the head in 4 bytes, the head as JSON, and the bytes of the item.
 * @param made the properties with which it was made
 * @param isJson whether the bytes are the JSON of the value, or the string itself
 * @throws StreamFailure
 */
export function encodeEntry(item: SinkItem, made: FilledKind, isJson: boolean): Buffer {
  const { value, bytes, cause } = item;
  const filled = Object.fromEntries([...made.dynamic.keys()].map((name) => [name, item.property(name)]));
  const templates = made.dynamic.size === 0 ? undefined : templatesOf(made);
  const kind = value instanceof Uint8Array ? 'bytes' : !isJson ? 'value' : typeof value === 'string' ? 'text' : 'json';
  const head: ItemHead = {
    ...{ kind, filled },
    ...(templates !== undefined && { templates }),
    ...(kind === 'value' && { value }),
    ...(cause && { cause })
  };
  const text = Buffer.from(jsonText(head));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(text.length);
  return Buffer.concat([length, text, bytes]);
}
