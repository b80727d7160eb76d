// Sparkplug 3.0, section 10.1.4: what an MQTT server does to be Sparkplug Aware. It is attached to the routes of the
// topics concerned, so that it costs nothing for others. A payload is edited as bytes: field 1 of a Sparkplug payload
// is its timestamp, and protobuf allows fields in any order.

import { DECIDERS } from '../../events/deciders.ts';
import { Message } from '../../packets/message.ts';
import type { Routing } from '../../routing/routing.ts';
import type { TopicSchema } from '../../routing/topic-schemas.ts';
import type { Watcher } from '../../routing/watchers.ts';
import { MAX_TOPIC_BYTES } from '../../topics/topic.ts';
import type { SparkplugOptions } from '../configuration/sparkplug-options.ts';
import { boundProperties, newMessage } from '../new-message.ts';
import type { Services } from '../services.ts';
import type { Publishing } from './publishing.ts';

const BIRTHS = ['spBv1.0/+/NBIRTH/+', 'spBv1.0/+/DBIRTH/+/+'];
const NODE_DEATHS = 'spBv1.0/+/NDEATH/+';
const CERTIFICATES = '$sparkplug/certificates/';

/** Makes the birth certificates of edge nodes and devices available as retained messages. */
export class Sparkplug implements Watcher {
  readonly order = -1;
  readonly #services: Services;
  readonly #routing: Routing;
  readonly #publishing: Publishing;

  constructor(services: Services, routing: Routing, publishing: Publishing) {
    this.#services = services;
    this.#routing = routing;
    this.#publishing = publishing;
    for (const filter of BIRTHS) routing.watch(filter, this);
  }

  watched(message: Message): void {
    const { payload, qos } = message;
    if (payload.length === 0) return; // it would delete the certificate
    const topic = `${CERTIFICATES}${message.topic}`;
    if (Buffer.byteLength(topic) > MAX_TOPIC_BYTES) {
      const detail = `the topic of its certificate would be longer than ${MAX_TOPIC_BYTES} bytes`;
      this.#services.announcer.dropped(message, 'not_retained', undefined, undefined, { code: 'not_retained', detail });
      return;
    }
    const properties = boundProperties(message);
    const certificate = newMessage({ topic, payload, qos, retain: true, properties }, undefined, this.#services.time);
    this.#publishing.route(certificate, this.#routing.of(topic), true);
  }
}

/** The actions of the broker on messages to the topics of Sparkplug, before they are routed. @param now the wall-clock time in milliseconds */
export function sparkplugChecks(options: SparkplugOptions | undefined, now: () => number): TopicSchema[] {
  if (options === undefined) return [];
  const check = (filter: string, act: TopicSchema['act']): TopicSchema => ({ ...UNASKED, filter, act });
  const reserved = check('$sparkplug/#', () => DECIDERS.sparkplugTopic);
  const dated = check(NODE_DEATHS, (message) => withTimestamp(message, now()));
  return options.ndeathTimestamp === true ? [reserved, dated] : [reserved];
}

const UNASKED = { decode: 'bytes', hasPlainIssues: true, validate: (value: unknown) => ({ value }) } as const;

function withTimestamp(message: Message, timestampMs: number): Message {
  const payload = dated(message.payload, timestampMs);
  if (payload === undefined) return message;
  const { topic, qos, retain, origin, takenAtMs, timestamp } = message;
  return Message.from(
    { topic, payload, qos, retain, properties: boundProperties(message) },
    origin,
    takenAtMs,
    timestamp
  );
}

/** The wire types of the fields of a Sparkplug payload: timestamp, metrics, seq, uuid, body. */
const WIRE_TYPES: readonly (number | undefined)[] = [undefined, 0, 2, 0, 2, 2];

/** A Sparkplug payload with another timestamp; undefined: the bytes are not one. */
function dated(payload: Buffer, timestampMs: number): Buffer | undefined {
  const kept: Buffer[] = [];
  let at = 0;
  while (at < payload.length) {
    const start = at;
    const key = varintAt(payload, at);
    if (key === undefined) return undefined;
    const field = key.value >>> 3;
    const wireType = key.value & 7;
    if (field === 0 || wireType !== (WIRE_TYPES[field] ?? wireType)) return undefined;
    const end = endOf(payload, key.end, wireType);
    if (end === undefined || end > payload.length) return undefined;
    if (field !== 1) kept.push(payload.subarray(start, end));
    at = end;
  }
  return payload.length === 0 ? undefined : Buffer.concat([Buffer.from([1 << 3, ...varintOf(timestampMs)]), ...kept]);
}

/** The offset after the value of a field; undefined: it is not valid. */
function endOf(payload: Buffer, at: number, wireType: number): number | undefined {
  const value = wireType === 0 || wireType === 2 ? varintAt(payload, at) : undefined;
  if (wireType === 0) return value?.end;
  if (wireType === 2) return value && value.end + value.value;
  if (wireType === 1) return at + 8;
  return wireType === 5 ? at + 4 : undefined;
}

function varintAt(payload: Buffer, at: number): { readonly value: number; readonly end: number } | undefined {
  let value = 0;
  for (let n = 0; n < 10 && at + n < payload.length; n++) {
    const byte = payload[at + n];
    value += (byte & 127) * 2 ** (7 * n);
    if (byte < 128) return { value, end: at + n + 1 };
  }
  return undefined;
}

function varintOf(value: number): number[] {
  const bytes: number[] = [];
  for (let left = value; ; left = Math.floor(left / 128)) {
    if (left < 128) return [...bytes, left];
    bytes.push((left % 128) | 128);
  }
}
