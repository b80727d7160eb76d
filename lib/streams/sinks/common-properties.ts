import type { FieldTable } from '../../base/fields.ts';

const ACCEPTED = 'Accepted for compatibility, without effect.';

/** The properties of all sinks [stream rules 8.1]. A sink's property of the same name takes precedence. */
export const COMMON_SINK_PROPERTIES: FieldTable = {
  sendSingle: {
    type: 'boolean',
    default: false,
    about: 'Send each row of an output separately, instead of all as a list.'
  },
  omitIfEmpty: { type: 'boolean', default: false, about: 'Send nothing for an output without values.' },
  dataTemplate: { type: 'string', about: "Template of the data to be sent, in the form of Go's text/template." },
  dataField: { type: 'string', about: 'Send only the value of this column; of several rows, that of the first.' },
  fields: { type: 'array', about: 'Send only these columns.' },
  excludeFields: { type: 'array', about: 'Send all columns except these.' },
  format: {
    type: 'string',
    default: 'json',
    about: 'Format of the bytes: json, delimited, binary, or one of a plugin.'
  },
  schemaId: { type: 'string', about: 'Schema of the format.' },
  delimiter: { type: 'string', default: ',', about: 'Separator of the columns of the format delimited.' },
  compression: {
    type: 'string',
    choices: ['', 'none', 'gzip', 'zlib', 'flate'],
    default: 'none',
    about: 'Compression of the data.'
  },
  encryption: {
    type: 'string',
    choices: ['', 'none'],
    about: 'Not supported: data is never sent as if it were encrypted.'
  },
  batchSize: {
    type: 'number',
    default: 0,
    min: 0,
    max: 1_000_000,
    about: 'Collect this many rows, and send them as one output. 0: no limit by number.'
  },
  lingerInterval: {
    type: 'duration',
    unit: 'ms',
    default: 0,
    min: 0,
    about: 'Maximum time for which rows are collected. 0: until there are batchSize rows.'
  },
  bufferLength: {
    type: 'number',
    default: 1024,
    min: 1,
    about:
      'Maximum number of outputs that wait for earlier ones to be sent. Beyond it, an output is dropped and counted as an exception.'
  },
  runAsync: { type: 'boolean', default: false, about: 'Do not wait for earlier outputs; the order may be lost.' },
  concurrency: { type: 'number', default: 1, about: ACCEPTED },
  enableCache: {
    type: 'boolean',
    default: false,
    about:
      'Keep outputs that cannot be sent, and send them again in order; they survive a restart if the broker has a store.'
  },
  memoryCacheThreshold: {
    type: 'number',
    default: 1024,
    min: 0,
    about: 'Maximum number of outputs that are kept.'
  },
  maxDiskCache: {
    type: 'number',
    default: 1_024_000,
    min: 0,
    about: 'Maximum number of further outputs that are kept. Beyond both limits, the oldest output is dropped.'
  },
  resendInterval: {
    type: 'duration',
    unit: 'ms',
    min: 0,
    about: 'Time between two attempts. Default: 250 ms, doubled after each attempt up to one minute.'
  },
  retryInterval: { type: 'duration', unit: 'ms', min: 0, about: 'The earlier name of resendInterval.' },
  retryCount: {
    type: 'number',
    min: 0,
    about: 'Maximum number of attempts with the cache, after which an output is dropped. Default: no limit.'
  },
  cleanCacheAtStop: { type: 'boolean', default: false, about: 'Drop the outputs that are kept when the rule stops.' },
  bufferPageSize: { type: 'number', about: ACCEPTED },
  cacheLength: { type: 'number', about: ACCEPTED },
  cacheSaveInterval: { type: 'number', about: ACCEPTED },
  resendAlterQueue: { type: 'boolean', about: ACCEPTED },
  resendPriority: { type: 'number', about: ACCEPTED },
  resendIndicatorField: { type: 'string', about: ACCEPTED },
  resendDestination: { type: 'string', about: ACCEPTED }
};

/** The common properties after validation. */
export interface CommonProperties {
  readonly sendSingle: boolean;
  readonly omitIfEmpty: boolean;
  readonly dataTemplate: string | undefined;
  readonly dataField: string | undefined;
  readonly fields: readonly string[] | undefined;
  readonly excludeFields: readonly string[] | undefined;
  readonly format: string;
  readonly schemaId: string | undefined;
  readonly delimiter: string;
  readonly compression: string;
  readonly batchSize: number;
  readonly lingerInterval: number;
  readonly bufferLength: number;
  readonly runAsync: boolean;
  readonly enableCache: boolean;
  readonly memoryCacheThreshold: number;
  readonly maxDiskCache: number;
  readonly resendInterval: number | undefined;
  readonly retryInterval: number | undefined;
  readonly retryCount: number | undefined;
  readonly cleanCacheAtStop: boolean;
}
