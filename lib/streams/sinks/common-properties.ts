import type { PropertyTable } from '../types.ts';

const ACCEPTED = 'Accepted for compatibility, without effect.';

/** The properties that all sinks have [stream rules 8.1]. Those of a sink with the same name come first. */
export const COMMON_SINK_PROPERTIES: PropertyTable = {
  sendSingle: { type: 'boolean', default: false, about: 'Send each row of an output apart, instead of all as a list.' },
  omitIfEmpty: { type: 'boolean', default: false, about: 'Send nothing for an output without values.' },
  dataTemplate: { type: 'string', about: "Template of what is sent, in the form of Go's text/template." },
  dataField: { type: 'string', about: 'Send only what this column has; of several rows that of the first.' },
  fields: { type: 'array', about: 'Send only these columns.' },
  excludeFields: { type: 'array', about: 'Send all columns but these.' },
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
    about: 'Compression of what is sent.'
  },
  encryption: {
    type: 'string',
    choices: ['', 'none'],
    about: 'Not supported: nothing is sent as if it were encrypted.'
  },
  batchSize: {
    type: 'number',
    default: 0,
    range: [0, 1_000_000],
    about: 'Collect so many rows, and send them as one output. 0: no collecting by number.'
  },
  lingerInterval: {
    type: 'number',
    unit: 'ms',
    default: 0,
    range: [0, Infinity],
    about: 'Longest time for which rows are collected. 0: until there are batchSize.'
  },
  bufferLength: {
    type: 'number',
    default: 1024,
    range: [1, Infinity],
    about:
      'Most outputs that wait for earlier ones to be sent. Beyond it an output is dropped and counted as an exception.'
  },
  runAsync: { type: 'boolean', default: false, about: 'Do not wait for earlier outputs; the order may be lost.' },
  concurrency: { type: 'number', default: 1, about: ACCEPTED },
  enableCache: {
    type: 'boolean',
    default: false,
    about:
      'Keep outputs that cannot be sent, and send them again in their order; they survive a restart if the broker has a store.'
  },
  memoryCacheThreshold: { type: 'number', default: 1024, range: [0, Infinity], about: 'Outputs that are kept.' },
  maxDiskCache: {
    type: 'number',
    default: 1_024_000,
    range: [0, Infinity],
    about: 'Outputs that are kept in addition. Beyond both the oldest one is dropped.'
  },
  resendInterval: {
    type: 'number',
    unit: 'ms',
    range: [0, Infinity],
    about: 'Time between two attempts. Default: from 250 ms on, doubled up to one minute.'
  },
  retryInterval: { type: 'number', unit: 'ms', range: [0, Infinity], about: 'The earlier name of resendInterval.' },
  retryCount: {
    type: 'number',
    range: [0, Infinity],
    about: 'Most attempts with the cache; then an output is dropped. Default: any number.'
  },
  cleanCacheAtStop: { type: 'boolean', default: false, about: 'Drop what is kept when the rule stops.' },
  bufferPageSize: { type: 'number', about: ACCEPTED },
  cacheLength: { type: 'number', about: ACCEPTED },
  cacheSaveInterval: { type: 'number', about: ACCEPTED },
  resendAlterQueue: { type: 'boolean', about: ACCEPTED },
  resendPriority: { type: 'number', about: ACCEPTED },
  resendIndicatorField: { type: 'string', about: ACCEPTED },
  resendDestination: { type: 'string', about: ACCEPTED }
};

/** The common properties, after they were read. */
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
