import { BrokerError, EVENT_NAMES, type EventName } from '../../../../lib/index.ts';
import { Fault } from '../../../rest/index.ts';
import { objectOf, oneOf, optional, text } from '../../../rest/kit/index.ts';
import { renamed } from '../../codes.ts';
import { type Operation, operation } from '../../operation.ts';

/** The bytes of a payload in a row. */
const MAX_PAYLOAD_BYTES = 4_096;

const SELECTION = objectOf({
  filter: optional(
    text('Of the events of messages, only those whose topic matches this topic filter. Default: #, without topics in $')
  ),
  where: optional(
    text(
      'Only what satisfies this condition of the SQL of rules, which follows WHERE there: payload.t > 80 AND qos = 1'
    )
  ),
  names: optional(text(`Names of events, separated by commas: ${EVENT_NAMES.join(', ')}. Default: message.publish`)),
  payload: optional(
    oneOf(['none', 'text', 'hex', 'base64'], `The form of payloads, up to ${MAX_PAYLOAD_BYTES} bytes of each`, {
      default: 'text'
    })
  )
});

/** @throws Fault wrongParameter */
function namesIn(text: string | undefined): readonly EventName[] | undefined {
  if (text === undefined) return undefined;
  const names = text.split(',').flatMap((name) => (name.trim() === '' ? [] : [name.trim() as EventName]));
  if (names.length === 0) throw new Fault('wrongParameter', 'the parameter "names" is empty', 'names');
  return names; // the tail validates them
}

const CONDITION_CODES: ReadonlySet<string> = new Set(['SQL_INVALID', 'PACKAGE_MISSING']);

/** The live tail. */
export const TAIL: readonly Operation[] = [
  operation({
    name: 'tail_messages',
    method: 'GET',
    path: '/x/tail',
    ctl: 'tail [FILTER=filter] --where --names --payload',
    descr: 'Stream messages as they are published, or other events, as server-sent events: at most 500 in a second',
    query: SELECTION,
    isStream: true,
    example: { query: { filter: 'sensors/#', where: 'payload > 20', names: 'message.publish,message.dropped' } },
    faultOf: (error) => {
      if (error instanceof BrokerError && CONDITION_CODES.has(error.code))
        return new Fault('wrongParameter', `the parameter "where": ${error.message}`, 'where');
      const named = renamed(error, { where: 'where', names: 'names' });
      return named instanceof Fault ? named : undefined;
    },
    run: ({ streams, hidesPayloads }, { query: { filter, where, names, payload = 'text' } }) =>
      streams.openTail(
        { filter, where, names: namesIn(names), maxPayloadBytes: MAX_PAYLOAD_BYTES, hidesPayloads },
        payload
      )
  })
];
