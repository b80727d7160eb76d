// A source is shared by all rules whose streams have the same definition text. A replaced stream has two sources
// while rules still use the previous definition. A source is opened after the previous source of its stream has
// closed. The last rule that is detached closes it. A change of the configuration does not affect an open source:
// the service stops all of its rules when one of them starts, so that it is opened again.

import { isDeepStrictEqual } from 'node:util';
import { InvalidInput, NotFound } from '../../base/errors.ts';
import type { Consumer, Need } from '../graph/consumer.ts';
import type { ConnectionCounters } from '../graph/metrics.ts';
import type { LookupTable } from '../operators/operator.ts';
import type { NotedStream, SourceType, StreamDefinition } from '../types.ts';
import type { Metadata } from '../values/tuple.ts';
import type { StreamValueObject } from '../values/values.ts';
import type { FirstRows } from './first-rows.ts';
import type { HubPorts } from './hub-ports.ts';
import { definitionOfPlace, notesOf, placeOf } from './notes.ts';
import { SharedSource, type SourceCounters } from './shared-source.ts';
import {
  givenProperties,
  type SourceSections,
  StreamSettings,
  sourceProperties,
  sourceTypeName
} from './stream-settings.ts';

/** A rule attached to its source. */
export interface Attachment {
  /**
   * Resolves when the source is open, possibly before it is connected.
   * @throws the reason why the source cannot be used at all
   */
  readonly opened: Promise<void>;
  /** Resolves when the rule, or the table, has received all first rows of the source. Rejects as `opened`. */
  readonly fed: Promise<void>;
  readonly connection: ConnectionCounters;
  /** The counters of the source since its first rule opened it. */
  readonly counters: SourceCounters;
  /**
   * Report that the rule has no room, or has room again. A source that can wait does not read while a rule has no room;
   * others keep producing rows.
   */
  setFull(isFull: boolean): void;
  /** Pass the rows to another consumer instead of the attached one. */
  swap(next: Consumer): void;
  /**
   * Mark the consumer as a placeholder for a rule that is being replaced: rows with an acknowledgement wait.
   * @returns a function that ends this
   */
  hold(): () => void;
  /**
   * Number of remaining rows for the rule of a message whose rows arrive in several turns, and of messages that wait
   * after it.
   */
  readonly left: { readonly rows: number; readonly messages: number };
  /**
   * Detach the rule, which receives no further rows. Resolves when the source is closed, if this was its last rule.
   * Calls after the first have no effect.
   */
  detach(): Promise<void>;
}

/**
 * The sources of streams. Rules on the same stream share a source, which is opened with the first rule and closed with
 * the last.
 */
export class SourceHub {
  readonly #ports: HubPorts;
  /** Sources by the text of the definition: a replaced stream has two sources while rules use the previous one. */
  readonly #sources = new Map<string, SharedSource>();
  /** The configuration with which open sources were opened. */
  readonly #configurations = new WeakMap<SharedSource, unknown>();
  /** Sources that are being closed, by the name of the stream: the next one is opened afterwards. */
  readonly #closing = new Map<string, Promise<void>>();

  constructor(ports: HubPorts) {
    this.#ports = ports;
  }

  /**
   * Attach a rule to a stream or a table.
   * @param first takes the first rows of a stream, before all others; if undefined, the rule receives none
   * @throws InvalidInput STREAM_INVALID, PROPERTY_INVALID; NotFound SOURCE_NOT_FOUND
   */
  attach(definition: StreamDefinition, need: Need, consumer: Consumer, first?: FirstRows): Attachment {
    if (need.isEventTime === true && definition.kind === 'stream' && !definition.options.TIMESTAMP) {
      const text = `stream ${definition.name} needs the option TIMESTAMP, because the rule has isEventTime`;
      throw new InvalidInput('STREAM_INVALID', 'TIMESTAMP', 'the name of a column', undefined, text);
    }
    // the time of rows of tables is their arrival
    const own = definition.kind === 'table' ? { ...need, isEventTime: false } : need;
    const known = this.#sources.get(definition.sql);
    let fed: Promise<void> | undefined;
    const add = (to: SharedSource) => {
      fed = to.add(consumer, own, first);
      fed.catch(() => undefined); // handled by the callers of attach
    };
    const source = known ?? this.#open(definition, add);
    if (known !== undefined) add(source);
    let attached = consumer;
    let isAttached = true;
    let isFull = false;
    const setFull = (value: boolean) => {
      if (isFull === value || !isAttached) return;
      isFull = value;
      source.setFull(value);
    };
    return {
      opened: source.opened,
      fed: fed ?? source.opened,
      get connection() {
        return source.connection;
      },
      get counters() {
        return source.counters;
      },
      get left() {
        return isAttached ? source.leftOf(attached) : { rows: 0, messages: 0 };
      },
      setFull,
      hold: () => source.hold(),
      swap: (next) => {
        if (isAttached) source.swap(attached, next);
        attached = next;
      },
      detach: async () => {
        if (!isAttached) return;
        setFull(false);
        isAttached = false;
        source.delete(attached);
        first?.end();
        if (source.isUnused) await this.#close(source);
      }
    };
  }

  /**
   * Check the type and the options of a stream or a table without opening its source.
   * @param config the configuration that is or will be in use
   * @throws InvalidInput STREAM_INVALID, PROPERTY_INVALID; NotFound SOURCE_NOT_FOUND
   */
  check(definition: StreamDefinition, config: SourceSections & Pick<HubPorts, 'formats'>): void {
    const { parseTime } = this.#ports;
    const type = this.#typeOf(definition);
    const isLookup = definition.options.KIND?.toLowerCase() === 'lookup';
    const kind = isLookup ? 'lookup' : definition.kind;
    const opens = isLookup ? type.openLookup : type.open;
    if (opens === undefined || type.for?.includes(kind) === false) throw unsuited(definition, type, kind);
    if (!isLookup) new StreamSettings(definition, type, parseTime, config.formats());
    sourceProperties(type, definition, config, () => undefined);
  }

  /** Check whether the source of a stream is open with another configuration than the current one. */
  isOutdated(definition: StreamDefinition): boolean {
    const source = this.#sources.get(definition.sql);
    if (source === undefined) return false;
    try {
      return !isDeepStrictEqual(this.#configurationOf(definition), this.#configurations.get(source));
    } catch {
      return true; // the next start reports why it cannot be used
    }
  }

  /** The properties as they are given, because those that a type has made of them, such as functions, always differ. */
  #configurationOf(definition: StreamDefinition): unknown {
    const { sections } = this.#ports;
    const given = givenProperties(this.#typeOf(definition), definition, sections);
    return { given, schema: sections.schemaText(definition) };
  }

  /**
   * Open a lookup table.
   * @param columns the columns that the statement uses
   * @throws InvalidInput STREAM_INVALID, PROPERTY_INVALID; NotFound SOURCE_NOT_FOUND; the reason why the source cannot
   *   be used
   */
  async openLookup(definition: StreamDefinition, columns: readonly string[]): Promise<LookupTable> {
    const type = this.#typeOf(definition);
    if (type.openLookup === undefined) throw unsuited(definition, type, 'lookup');
    const { clock, dataDir, sections } = this.#ports;
    const properties = sourceProperties(type, definition, sections, (text) => this.#ports.warn(text));
    const { name, options } = definition;
    const { DATASOURCE: datasource = '', KEY: key } = options;
    const open = await type.openLookup({ stream: name, datasource, properties, dataDir, clock, columns, key });
    return { open, properties };
  }

  /**
   * Notify open sources that rules or streams have changed, and remove state on other servers that no stream needs.
   * @param signal aborts when the service stops
   */
  tidy(signal: AbortSignal): void {
    for (const source of this.#sources.values()) source.changed();
    for (const type of this.#ports.sources()) void this.#tidy(type, signal);
  }

  async #tidy(type: SourceType, signal: AbortSignal): Promise<void> {
    if (type.tidy === undefined) return;
    const { clock, dataDir, node, notes } = this.#ports;
    const warn = (text: string) => this.#ports.warn(text);
    const stream = (place: string) => this.#noted(place, type);
    try {
      await type.tidy({ ...{ clock, dataDir, node, warn, signal, stream }, notes: notesOf(notes, type.name) });
    } catch (error) {
      this.#ports.failed(error, `tidying up after sources of the type ${type.name}`);
    }
  }

  #noted(place: string, type: SourceType): NotedStream {
    const definition = definitionOfPlace(place);
    const { name: stream } = definition;
    const present = this.#ports.find(stream);
    const isDefined = present !== undefined && placeOf(present) === place;
    const { sections } = this.#ports;
    return {
      ...{ stream, isDefined, isKept: isDefined && this.#ports.isKept(stream) },
      get properties() {
        return sourceProperties(type, definition, sections, () => undefined);
      }
    };
  }

  /**
   * Push a row into a stream, as if its source had produced it. No effect if no rule uses the stream. The row must not
   * be changed afterwards.
   */
  push(stream: string, values: StreamValueObject, metadata?: Metadata): void {
    for (const source of [...this.#sources.values()])
      if (source.definition.name === stream) source.push(values, metadata);
  }

  /** @throws NotFound SOURCE_NOT_FOUND, with the name of the stream or the table */
  #typeOf(definition: StreamDefinition): SourceType {
    try {
      return this.#ports.source(sourceTypeName(definition));
    } catch (error) {
      if (!(error instanceof NotFound)) throw error;
      throw new NotFound(error.code, `${definition.kind} ${definition.name}: ${error.message}`);
    }
  }

  /** @param ready called before the source is opened, which may produce rows immediately */
  #open(definition: StreamDefinition, ready: (source: SharedSource) => void): SharedSource {
    const { parseTime, sections } = this.#ports;
    const type = this.#typeOf(definition);
    if (type.open === undefined || type.for?.includes(definition.kind) === false)
      throw unsuited(definition, type, definition.kind);
    const settings = new StreamSettings(definition, type, parseTime, this.#ports.formats());
    const properties = sourceProperties(type, definition, sections, (text) => this.#ports.warn(text));
    const source = new SharedSource(definition, type, settings, this.#ports);
    this.#sources.set(definition.sql, source);
    this.#configurations.set(source, this.#configurationOf(definition));
    ready(source);
    source.start(properties, this.#closing.get(definition.name));
    // the next rule tries again
    source.opened.catch(() => this.#forget(source));
    return source;
  }

  #forget(source: SharedSource): void {
    if (this.#sources.get(source.definition.sql) === source) this.#sources.delete(source.definition.sql);
  }

  async #close(source: SharedSource): Promise<void> {
    if (source.isClosed) return;
    const { definition } = source;
    this.#forget(source);
    const closing = Promise.all([source.close(), this.#closing.get(definition.name)]).then(() => undefined);
    this.#closing.set(definition.name, closing);
    await closing;
    if (this.#closing.get(definition.name) === closing) this.#closing.delete(definition.name);
  }
}

function unsuited({ kind, name }: StreamDefinition, type: SourceType, use: string): InvalidInput {
  const text = `${kind} ${name}: a source of the type ${type.name} cannot be used for a ${use === 'lookup' ? 'lookup table' : use}`;
  return new InvalidInput('STREAM_INVALID', 'TYPE', `a type for a ${use}`, type.name, text);
}
