import { randomBytes } from 'node:crypto';
import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import type { Clock } from '../../base/clock.ts';
import { InvalidInput } from '../../base/errors.ts';
import { fieldsOf } from '../../base/fields.ts';
import type { Outboxes } from '../../outbox/outboxes.ts';
import { checkOpened } from '../../targets/type-checks.ts';
import type { FormatType } from '../format.ts';
import { makeFormat } from '../formats/formats.ts';
import { readProperties } from '../properties.ts';
import type { TemplateTools } from '../template/functions-tools.ts';
import { compileTemplate } from '../template/template.ts';
import type { Properties, SinkType } from '../types.ts';
import { StreamFailure } from '../values/values.ts';
import { SinkCache } from './cache.ts';
import { COMMON_SINK_PROPERTIES, type CommonProperties } from './common-properties.ts';
import { type DynamicProperties, findDynamic } from './dynamic.ts';
import { Emitter } from './emitter.ts';
import { makeTransform, type Transform } from './transform.ts';

/** Settings and dependencies for checking the actions of rules. */
export interface SinkPlanSetup {
  /** One object for all rules, whose templates share functions. */
  readonly tools: TemplateTools;
  /** Maximum number of characters that one template creates: the limit of the same name. */
  readonly templateCharacters: number;
  /** Formats of the app and of plugins. */
  readonly formats?: readonly FormatType[];
  /** Called with a sentence for each property that has no effect. */
  warn?(text: string): void;
}

/** Settings and dependencies for opening an action. */
interface SinkRun {
  readonly ruleId: string;
  /** Index of the action, from 0. */
  readonly index: number;
  readonly clock: Clock;
  readonly dataDir: string | undefined;
  readonly outboxes: Pick<Outboxes, 'open'>;
  /**
   * True if messages of this broker are published with the checkpoints of the rule. This needs no cache, which would
   * forget them too early. Default false.
   */
  readonly isHolding?: boolean;
  /** Write a line to the log of the service. */
  log(text: string): void;
  warn(text: string): void;
  /** Report a failure that belongs to no call of `push`. */
  failed(error: unknown): void;
}

/** An action with validated properties. It holds no state, so that its rule can be started again. */
export interface SinkPlan {
  readonly type: SinkType;
  /** The properties of the type and the common ones, with defaults. */
  readonly properties: Properties;
  readonly transform: Transform;
  /** The properties that are filled in for each output. */
  readonly dynamic: DynamicProperties;
  readonly encoder: Encoder;
  /** Begin to accept outputs. @throws the errors of the sink if it cannot be used at all; StateError OUTBOX_IN_USE */
  open(run: SinkRun): Promise<Emitter>;
}

/**
 * Check the properties of an action, and prepare it.
 * @param definition the properties as written in the definition of the rule
 * @throws InvalidInput PROPERTY_INVALID; `field` is the property
 */
export function planSink(type: SinkType, definition: unknown, setup: SinkPlanSetup): SinkPlan {
  const what = `${type.name} sink`;
  const table = { ...COMMON_SINK_PROPERTIES, ...fieldsOf(type.properties) };
  // a type without a table may know any property
  const warn = type.properties === undefined ? undefined : setup.warn?.bind(setup);
  const properties = readProperties(table, definition, what, warn);
  const given = properties as unknown as CommonProperties;
  // a sink with a property `fields` selects columns itself, because it uses others as well
  const common = type.properties?.fields === undefined ? given : { ...given, fields: undefined };
  checkNames(common, what);
  const { tools, templateCharacters: most } = setup;
  const { dataTemplate } = common;
  const fill =
    dataTemplate === undefined || dataTemplate === '' ? undefined : compileTemplate(dataTemplate, tools, { most });
  const transform = makeTransform(common, fill);
  const dynamic = findDynamic(table, properties, { tools, most });
  const ownsCompression = type.properties?.compression !== undefined;
  const encoder = makeEncoder(common, what, ownsCompression, setup.formats);
  const prepared = { type, what, properties, transform, dynamic, encoder };
  return { ...prepared, open: (run) => openSink(prepared, run) };
}

type Prepared = Omit<SinkPlan, 'open'> & { readonly what: string };

async function openSink(
  { type, what, properties, transform, dynamic, encoder }: Prepared,
  run: SinkRun
): Promise<Emitter> {
  const { ruleId, index, clock, dataDir, outboxes } = run;
  const common = properties as unknown as CommonProperties;
  const prefix = randomBytes(6).toString('base64url');
  const kind = { properties, dynamic, prefix, encode: encoder.encode, text: encoder.text };
  const failed = (error: unknown) => run.failed(error);
  const emitter = new Emitter({ what, properties: common, transform, kind, clock, failed });
  const opened = await type.open({
    ...{ ruleId, index, properties, dataDir, clock },
    connected: () => emitter.connected(),
    disconnected: (reason) => emitter.disconnected(reason),
    log: (text) => run.log(text),
    warn: (text) => run.warn(text)
  });
  const sink = checkOpened(opened, ['send', 'close'], `${type.name}.open()`, 'SINK_INVALID');
  try {
    const { isJson } = encoder;
    const cacheSetup = { outboxes, ruleId, index, type: type.name, properties: common, kind, isJson, failed };
    const usesCache = common.enableCache && !(run.isHolding === true && 'isLocal' in sink);
    emitter.begin(sink, usesCache ? new SinkCache(cacheSetup, sink) : undefined);
  } catch (error) {
    await sink.close();
    throw error;
  }
  return emitter;
}

/** @throws InvalidInput PROPERTY_INVALID */
function checkNames({ fields, excludeFields }: CommonProperties, what: string): void {
  for (const [name, list] of Object.entries({ fields, excludeFields })) {
    const wrong = list?.find((each) => typeof each !== 'string');
    if (wrong === undefined) continue;
    const text = `${what}: property ${name} must be a list of column names`;
    throw new InvalidInput('PROPERTY_INVALID', name, 'a list of column names', list, text);
  }
}

/** Converts values to the bytes of a sink. */
interface Encoder {
  encode(value: unknown): Buffer;
  /** The result of `encode` as text; undefined if the format is binary. */
  readonly text: ((value: unknown) => string) | undefined;
  /** True if the bytes are the JSON of the value. */
  readonly isJson: boolean;
}

const COMPRESSIONS: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  gzip: (bytes) => gzipSync(bytes),
  zlib: (bytes) => deflateSync(bytes),
  flate: (bytes) => deflateRawSync(bytes)
};

/** @param ownsCompression whether the sink compresses the data itself @throws InvalidInput PROPERTY_INVALID */
function makeEncoder(
  properties: CommonProperties,
  what: string,
  ownsCompression: boolean,
  own: readonly FormatType[] | undefined
): Encoder {
  const { format: name, delimiter, schemaId, fields, compression } = properties;
  const options = { DELIMITER: delimiter, ...(schemaId === undefined ? {} : { SCHEMAID: schemaId }) };
  const columns = fields?.map((each) => ({ name: each, type: { type: 'string' } as const }));
  let format: ReturnType<typeof makeFormat>;
  try {
    const isDelimited = name.toLowerCase() === 'delimited';
    format = makeFormat(name, { what, options, columns: isDelimited ? columns : undefined }, own);
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    throw new InvalidInput('PROPERTY_INVALID', 'format', error.expected, name, error.message);
  }
  const isJson = format.name === 'json';
  const plain = (value: unknown): Buffer => {
    if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    return isJson && typeof value === 'string' ? Buffer.from(value) : format.encode(value);
  };
  const compress = ownsCompression ? undefined : COMPRESSIONS[compression];
  if (compress === undefined) return { encode: plain, text: format.text?.bind(format), isJson };
  return {
    isJson: false,
    text: undefined,
    encode(value) {
      try {
        return compress(plain(value));
      } catch (error) {
        throw error instanceof StreamFailure ? error : new StreamFailure(`${what}: compression fails`, error);
      }
    }
  };
}
