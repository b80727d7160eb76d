import { type ListenerHandle, type PayloadForm, payloadFields, shownUsername } from '../../../lib/adapter.ts';
import type { BrokerEvents, ClientInfo, EventName, Message } from '../../../lib/index.ts';

/** The type of a field of an event that is not plain data. */
type ObjectField = ClientInfo | Message | ListenerHandle | Error;

/** The form of payloads in events. */
export type EventPayload = PayloadForm['payload'];

/** The same; `hidden` for people who may not see values of messages, which messages of errors can have as well. */
export type EventForm = EventPayload | 'hidden';

/** Payloads are truncated to this many bytes. */
export const MAX_PAYLOAD_BYTES = 1_024;

/** The fields of an event, under their names in the interface. Passwords and tokens are left out. */
export function eventFields<E extends EventName>(value: BrokerEvents[E], payload: EventForm): object {
  return convert(value, payload) as object;
}

/**
 * Convert the value of an event or of one of its fields: names become snake case, objects of the broker become records.
 */
function convert(value: unknown, payload: EventForm): unknown {
  if (value === Infinity) return 'infinity';
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => convert(one, payload));
  const written = objectOf(value as ObjectField, payload);
  if (written !== undefined) return written;
  const record: Record<string, unknown> = {};
  for (const name in value) {
    const field = (value as Record<string, unknown>)[name];
    // the kind of a ban is a field name as well
    record[wireName(name)] = name === 'kind' && field === 'clientId' ? 'clientid' : convert(field, payload);
  }
  return record;
}

function objectOf(value: ObjectField, payload: EventForm): object | undefined {
  if (value instanceof Error)
    return { code: (value as { code?: unknown }).code, message: payload === 'hidden' ? undefined : value.message };
  if ('transportInfo' in value) return clientOf(value);
  if ('open' in value) return { name: value.name, protocol: value.protocol, ...value.address };
  return 'detach' in value ? messageOf(value, payload) : undefined;
}

function clientOf({ clientId, username, transportInfo, protocolVersion, zone }: ClientInfo): object {
  return {
    clientid: clientId,
    username: shownUsername(username),
    ip_address: transportInfo.remoteAddress,
    port: transportInfo.remotePort,
    proto_ver: protocolVersion,
    zone
  };
}

function messageOf(message: Message, payload: EventForm): object {
  const { topic, qos, retain, clientId, bytes, payloadAt } = message;
  const fields = { from_clientid: clientId === '' ? undefined : clientId, topic, qos, retain };
  // without the payload, a detached message does not have to be unpacked
  if (payload === 'none' || payload === 'hidden') return { ...fields, payload_bytes: bytes - payloadAt };
  const { payloadBytes, ...written } = payloadFields(message.payload, { payload, maxPayloadBytes: MAX_PAYLOAD_BYTES });
  return { ...fields, ...convertNames(written), payload_bytes: payloadBytes };
}

function convertNames(value: object): object {
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [wireName(name), one]));
}

/** Names in snake case by their names in the broker. */
const wireNames = new Map<string, string>([['clientId', 'clientid']]);

function wireName(name: string): string {
  let found = wireNames.get(name);
  if (found === undefined) {
    found = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    wireNames.set(name, found);
  }
  return found;
}
