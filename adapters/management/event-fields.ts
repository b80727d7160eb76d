import {
  type BrokerEvents,
  type ClientInfo,
  type EventName,
  type ListenerHandle,
  type Message,
  messageFields,
  type PayloadForm,
  shownUsername
} from '../../lib/index.ts';

/** The type of a field of an event that is not plain data. */
type ObjectField = ClientInfo | Message | ListenerHandle | Error;

/** How payloads appear in events. */
export type EventPayload = PayloadForm['payload'];

/** Only this many bytes at the beginning of a payload are written. */
export const MAX_PAYLOAD_BYTES = 1_024;

/** The fields of an event, as the interface names them. Passwords and tokens are not among them. */
export function eventFields<E extends EventName>(value: BrokerEvents[E], payload: EventPayload): object {
  return convert(value, payload) as object;
}

/** Convert the value of an event or of one of its fields: names to snake case, objects of the broker to records. */
function convert(value: unknown, payload: EventPayload): unknown {
  if (value === Infinity) return 'infinity';
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => convert(one, payload));
  const written = objectOf(value as ObjectField, payload);
  if (written !== undefined) return written;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [wireName(name), convert(one, payload)]));
}

function objectOf(value: ObjectField, payload: EventPayload): object | undefined {
  if (value instanceof Error) return { code: (value as { code?: unknown }).code, message: value.message };
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

function messageOf(message: Message, payload: EventPayload): object {
  const form = { payload, maxPayloadBytes: MAX_PAYLOAD_BYTES };
  const { publisher, ...fields } = messageFields(message, form) as { readonly publisher?: string };
  return { from_clientid: publisher, ...Object.fromEntries(Object.entries(fields).map(([n, v]) => [wireName(n), v])) };
}

function wireName(name: string): string {
  return name === 'clientId' ? 'clientid' : name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
