import { InvalidInput } from '../../base/errors.ts';
import type { Awaitable } from '../../events/hooks.ts';
import type { Message } from '../../packets/message.ts';
import type { Properties as PacketProperties } from '../../packets/types.ts';
import type { Watcher } from '../../routing/watchers.ts';
import { checkTopicFilter, parseSharedFilter } from '../../topics/topic.ts';
import type { StreamMessages } from '../host.ts';
import type { FirstMessage, OpenSource, SourceSetup, SourceType } from '../types.ts';
import { chainOf } from '../values/cause.ts';
import type { Metadata } from '../values/tuple.ts';
import type { StreamValue, StreamValueObject } from '../values/values.ts';

/** Stream rules receive a message after the rules over events. */
const ORDER = 2 ** 52;

/**
 * If one of these properties is set, the messages are those of another server, unless it is a listener of this broker.
 */
const REMOTE = ['server', 'servers', 'connectionSelector'];

/** Dependencies of the source on the broker. */
type SourceMessages = Pick<StreamMessages, 'watch'> & Partial<Pick<StreamMessages, 'isOwn' | 'retained'>>;

/**
 * The source `mqtt`: messages of this broker, without a connection; or those of another server, if one is specified.
 *
 * DATASOURCE is one or more topic filters, separated by commas. A rule that starts receives the retained messages
 * first. Metadata: `topic`, `messageid` (a string), `qos`, `retain`, `clientid`, `username`, and with MQTT 5.0
 * `properties`, which contains the user properties by name, and the others such as `contentType`.
 * @param remote the source for other servers; undefined if the app has registered none
 */
export function mqttSource(messages: SourceMessages, remote?: SourceType): SourceType {
  const metadataOf = sharedMetadata();
  return {
    name: 'mqtt',
    about: 'Messages of this broker, or of another MQTT server.',
    ...(remote?.properties === undefined ? {} : { properties: remote.properties }),
    ...(remote?.sections === undefined ? {} : { sections: remote.sections }),
    ...(remote?.tidy === undefined ? {} : { tidy: (setup) => remote.tidy?.(setup) }),
    open: (setup) => (isRemote(setup, messages) ? openRemote(setup, remote) : openLocal(setup, messages, metadataOf))
  };
}

/** The topic filters of DATASOURCE, which are separated by commas. */
export function topicFilters(datasource: string): string[] {
  return datasource.split(',').map((filter) => filter.trim());
}

function isRemote(
  { properties, datasource }: Pick<SourceSetup, 'properties' | 'datasource'>,
  { isOwn }: SourceMessages
): boolean {
  if (!REMOTE.some((name) => properties[name] !== undefined && properties[name] !== '')) return false;
  const [first] = Array.isArray(properties.servers) ? (properties.servers as readonly unknown[]) : [];
  const server = properties.server ?? first;
  // only a client can be a member of a shared subscription
  return (
    typeof server !== 'string' ||
    topicFilters(datasource).some((filter) => parseSharedFilter(filter) !== undefined) ||
    isOwn?.(server) !== true
  );
}

function openRemote(setup: SourceSetup, remote: SourceType | undefined): Awaitable<OpenSource> {
  if (remote?.open !== undefined) return remote.open(setup);
  const text = `stream ${setup.stream}: messages of another server need the source of embermq/streams/mqtt among the sources of the app`;
  throw new InvalidInput('PROPERTY_INVALID', 'server', 'no server, for messages of this broker', undefined, text);
}

function openLocal(
  setup: SourceSetup,
  messages: SourceMessages,
  metadataOf: (message: Message) => Metadata
): OpenSource {
  const filters = checkFilters(setup);
  const watcher: Watcher = {
    order: ORDER,
    watched: (message) => setup.bytes(message.payload, metadataOf(message), message.timestamp, chainOf(message.origin))
  };
  const { retained } = messages;
  const unwatch = messages.watch(filters, watcher);
  setup.connected();
  return {
    ...(retained === undefined ? {} : { first: () => firstOf(retained(filters)) }),
    close: unwatch
  };
}

/** The first messages of a rule: the retained ones. */
function* firstOf(messages: Iterator<Message | undefined, void>): Generator<FirstMessage | undefined, void> {
  for (let step = messages.next(); step.done !== true; step = messages.next()) {
    const message = step.value;
    yield message && {
      payload: message.payload,
      metadata: makeMetadata(message, true),
      cause: chainOf(message.origin)
    };
  }
}

/** The topic filters of DATASOURCE, which are separated by commas. @throws InvalidInput STREAM_INVALID */
function checkFilters({ stream, datasource }: SourceSetup): readonly string[] {
  const fault = (text: string) =>
    new InvalidInput('STREAM_INVALID', 'DATASOURCE', 'topic filters', datasource, `stream ${stream}: ${text}`);
  if (datasource === '') throw fault('the option DATASOURCE is missing: set it to a topic filter');
  const filters = topicFilters(datasource);
  for (const filter of filters) {
    const invalid = filter === '' ? 'a topic filter between its commas is empty' : checkTopicFilter(filter);
    if (invalid !== undefined) throw fault(`DATASOURCE: ${invalid}`);
    const shared = parseSharedFilter(filter);
    if (typeof shared === 'object')
      throw fault(
        `DATASOURCE "${filter}": a stream receives all messages of this broker and shares none with clients; use "${shared.filter}"`
      );
  }
  return filters;
}

/** Creates the metadata of a message once for all streams that receive it in turn. */
function sharedMetadata(): (message: Message) => Metadata {
  let last: Message | undefined;
  let metadata: Metadata = {};
  return (message) => {
    if (message === last) return metadata;
    last = message;
    return (metadata = makeMetadata(message, false));
  };
}

/**
 * @param retain whether the message was retained before the rule started; as for a client, it is false for messages
 *   that are published now
 */
function makeMetadata(message: Message, retain: boolean): Metadata {
  const { topic, qos, clientId, username, packetIdAt } = message;
  let messageid = '0';
  if (packetIdAt > 0) {
    const { buf, start } = message.frame();
    messageid = String(buf.readUInt16BE(start + packetIdAt));
  }
  const clientid = clientId === '' ? undefined : clientId;
  const metadata = { topic, messageid, qos, retain, clientid, username };
  if (message.layout === 4 || message.propertiesAt === message.payloadAt) return metadata;
  return { ...metadata, properties: propertiesOf(message.properties) };
}

function propertiesOf({ userProperties = [], ...others }: PacketProperties): StreamValueObject {
  const values: [string, StreamValue][] = Object.entries(others).filter(([, value]) => value !== undefined);
  return Object.fromEntries([...values, ...userProperties]);
}
