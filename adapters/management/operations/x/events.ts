import { EVENT_NAMES, EVENTS, type EventName } from '../../../../lib/index.ts';
import { Fault } from '../../../rest/index.ts';
import { objectOf, oneOf, optional, text } from '../../../rest/kit/index.ts';
import { type Operation, operation } from '../../operation.ts';
import { MAX_PAYLOAD_BYTES } from '../../streams/event-fields.ts';

/** The events without `names` and `topic`: those that are rare compared with messages. */
const DEFAULT_NAMES = EVENT_NAMES.filter((name) => !name.startsWith('message.') && name !== 'client.ping');
/** The events without `names` but with `topic`. */
const NAMES_OF_TOPIC = EVENT_NAMES.filter((name) => name !== 'client.ping');

const SELECTION = objectOf({
  names: optional(
    text(
      `Names of events, separated by commas: ${EVENT_NAMES.join(', ')}. Default: all except client.ping, and those of messages only if there is a topic`
    )
  ),
  topic: optional(text('Of the events of messages, only those whose topic matches this topic filter')),
  clientid: optional(text('Only events about this client, or about messages that it has published')),
  payload: optional(
    oneOf(['none', 'text', 'hex', 'base64'], `The form of payloads, up to ${MAX_PAYLOAD_BYTES} bytes of each`, {
      default: 'none'
    })
  )
});

/** @throws Fault wrongParameter; notPermitted for events that show values of messages, if these are hidden */
function namesIn(text: string | undefined, hasTopic: boolean, hidesPayloads: boolean): readonly EventName[] {
  const isShown = (name: EventName) => !hidesPayloads || !EVENT_NAMES.includes(name) || !EVENTS[name].showsValues;
  if (text === undefined) return (hasTopic ? NAMES_OF_TOPIC : DEFAULT_NAMES).filter(isShown);
  const names = [...new Set(text.split(',').map((name) => name.trim()))].filter((name) => name !== '');
  if (names.length === 0) throw new Fault('wrongParameter', 'the parameter "names" is empty', 'names');
  const hidden = (names as EventName[]).find((name) => !isShown(name));
  if (hidden !== undefined)
    throw new Fault('notPermitted', `viewers may not see values of messages here (option viewerPayloads): ${hidden}`);
  return names as EventName[]; // broker.on validates them
}

/** The stream of broker events. */
export const EVENT_STREAM: readonly Operation[] = [
  operation({
    name: 'stream_events',
    method: 'GET',
    path: '/x/events',
    ctl: 'events [NAMES=names] --client=clientid --topic --payload',
    descr: 'Stream events of the broker as server-sent events',
    query: SELECTION,
    isStream: true,
    example: { query: { names: 'client.connected,message.dropped', topic: 'sensors/#' } },
    run: ({ streams, hidesPayloads }, { query: { names, topic, clientid: clientId, payload = 'none' } }) =>
      streams.open({
        names: namesIn(names, topic !== undefined, hidesPayloads),
        topic,
        clientId,
        payload: hidesPayloads ? 'hidden' : payload
      })
  })
];
