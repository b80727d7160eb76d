import { type FieldValues, field, isPlainObject } from '../../lib/adapter.ts';
import { type Broker, type BrokerOptions, type Duration, InvalidInput } from '../../lib/index.ts';
import type { ManagementOptions } from '../management/index.ts';
import type { AttachOptions, ListenOptions, Transport } from '../net/index.ts';
import type { StreamsApiOptions } from '../streams-api/index.ts';
import type { WebhookOptions } from '../webhook/index.ts';

/** A listener with a separate port: the argument of `listen` of `embermq/net`. */
export type HostListener = number | string | ListenOptions | Transport;

/** Options of a broker that runs as a part of an app of a web framework. */
export interface HostOptions {
  /**
   * The broker, or the options of a new one. Default: a new one with default options. A new broker logs to the logger of the app, unless
   * its options have a `logger`. A broker that the app has started itself is not stopped when the app closes.
   */
  readonly broker?: Broker | BrokerOptions;
  /** MQTT over WebSocket on the server of the app: the path, or options of `attachWebSocket`; false: none. Default `/mqtt`. */
  readonly webSocket?: string | false | AttachOptions;
  /** Separate ports for MQTT over TCP, TLS and so on: one or several descriptions, as for `listen`. Default: none. */
  readonly listen?: HostListener | readonly HostListener[];
  /** Mount the management interface: options of one revision or of several, as for `managementApis`; true: the defaults. Default false. */
  readonly management?: boolean | ManagementOptions | readonly ManagementOptions[];
  /** Mount the interface of stream rules: options of `streamsApi`, with the prefix `/streams-api` by default. Default false. */
  readonly streamsApi?: boolean | StreamsApiOptions;
  /** Webhooks that send events while the app runs: options of `webhook`, or a list of them. Default: none. */
  readonly webhooks?: WebhookOptions | readonly WebhookOptions[];
  /** Maximum time that the broker keeps running for HTTP requests in progress when the app closes. Default `2s`. */
  readonly closeTimeout?: Duration;
}

/** The longest delay of a Node timer. */
const MAX_MS = 2 ** 31 - 1;

/** The rows of `HostOptions`. */
export const HOST_OPTIONS = {
  broker: field('object', {} as Broker | BrokerOptions, 'The broker, or its options.', {
    check: (value, field) => objectOf(value, field, 'a broker, or options of createBroker')
  }),
  webSocket: field('object', { path: '/mqtt' } as AttachOptions | false, 'MQTT over WebSocket.', {
    check: (value, field) => {
      if (value === false) return false;
      if (value === true) return {};
      return typeof value === 'string' ? { path: value } : objectOf(value, field, 'a path, options, or false');
    }
  }),
  listen: field('object', [] as readonly HostListener[], 'Separate ports.', { check: listOf }),
  management: field('object', [] as readonly ManagementOptions[], 'The management interface.', { check: mountsOf }),
  streamsApi: field('object', [] as readonly StreamsApiOptions[], 'The interface of stream rules.', {
    check: mountsOf
  }),
  webhooks: field('object', [] as readonly WebhookOptions[], 'Webhooks.', { check: listOf }),
  closeTimeout: field('duration', 2_000, 'Time for HTTP requests in progress.', { unit: 'ms', max: MAX_MS })
};

/** The checked options. */
export type HostSettings = FieldValues<typeof HOST_OPTIONS>;

function objectOf(value: unknown, field: string, expected: string): object {
  if (isPlainObject(value)) return value;
  throw new InvalidInput('OPTION_INVALID', field, expected, value);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value];
}

function mountsOf(value: unknown, field: string): readonly unknown[] {
  if (value === false) return [];
  if (value === true) return [{}];
  return listOf(value).map((item) => objectOf(item, field, 'true, or options of the interface'));
}
