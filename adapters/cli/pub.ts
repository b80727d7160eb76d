import { createInterface } from 'node:readline';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { checkTopicName, InvalidInput, type QoS } from '../../lib/index.ts';
import { type Command, readFileFor, type Shell } from './command.ts';
import { closed, DIAL_FLAGS, dial, INTERRUPTED, interrupted, leave, unlessAborted } from './dial.ts';
import { describeFlags, type FlagValues, flag, readFlags, refuseWords, timeFlag } from './flags.ts';
import { MESSAGE_PROPERTY_FLAGS, messageProperties, qosFlag } from './session-flags.ts';

const OWN_FLAGS = {
  topic: flag('text', undefined as string | undefined, 'topic to publish to', { short: 't', value: 'TOPIC' }),
  message: flag('text', undefined as string | undefined, 'the payload', {
    short: 'm',
    value: 'TEXT',
    max: Number.MAX_SAFE_INTEGER
  }),
  file: flag('text', undefined as string | undefined, 'the payload is what this file holds', {
    short: 'f',
    value: 'FILE'
  }),
  stdinLine: flag('boolean', false, 'publish each line of standard input', { short: 'l' }),
  stdinFile: flag('boolean', false, 'the payload is all of standard input', { short: 's' }),
  nullMessage: flag('boolean', false, 'an empty payload (with -r: forget the retained message)', { short: 'n' }),
  qos: qosFlag('QoS to publish with'),
  retain: flag('boolean', false, 'keep it as the retained message of the topic', { short: 'r' }),
  repeat: flag('integer', 1, 'publish so many times', { value: 'N', min: 1 }),
  repeatDelay: timeFlag(0, 'wait between repetitions')
};

const PUB_FLAGS = { ...OWN_FLAGS, ...MESSAGE_PROPERTY_FLAGS, ...DIAL_FLAGS };
type PubFlags = FlagValues<typeof PUB_FLAGS>;

/** Messages with QoS 1 or 2 that may wait for their acknowledgement while further lines are read. */
const WINDOW = 100;

/** `embermq pub`: publish to any broker. Ends when the broker has taken everything. */
export const pub: Command = {
  summary: 'publish messages to a broker',
  help: () => `usage: embermq pub -t TOPIC (-m TEXT | -f FILE | -l | -s | -n) [flags]

${describeFlags(OWN_FLAGS)}

properties of MQTT 5.0
${describeFlags(MESSAGE_PROPERTY_FLAGS)}

connection
${describeFlags(DIAL_FLAGS)}`,
  async run(args, shell) {
    const { values: flags, words } = readFlags(PUB_FLAGS, args);
    refuseWords(words, 'pub');
    const { topic } = flags;
    if (topic === undefined)
      throw new InvalidInput('OPTION_MISSING', 'topic', 'a topic', undefined, 'pub needs -t TOPIC');
    const fault = checkTopicName(topic);
    if (fault !== undefined) throw new InvalidInput('TOPIC_NAME_INVALID', 'topic', 'a topic name', topic, fault);
    const properties = messageProperties(flags, flags.mqttVersion);
    const source = await payloadSource(flags, shell);
    const client = await dial(flags, shell);
    const signal = interrupted(shell);
    const options = { qos: flags.qos as QoS, retain: flags.retain, properties };
    try {
      const lost = closed(client);
      const payloads = source(AbortSignal.any([signal, lost]));
      await publishAll(payloads, (payload) => client.publish(topic, payload, options));
      lost.throwIfAborted(); // then not everything has been read
      if (flags.qos === 0) await unlessAborted(client.ping(), signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      await leave(client);
    }
    return signal.aborted ? INTERRUPTED : 0;
  }
};

type Payload = Buffer | string;
type Source = (signal: AbortSignal) => AsyncIterable<Payload>;

/** Where payloads come from: exactly one of the flags says it. What can not be read is found out before connecting. */
async function payloadSource(flags: PubFlags, shell: Shell): Promise<Source> {
  const { message, file } = flags;
  const sources: (() => Promise<Source>)[] = [];
  if (message !== undefined) sources.push(async () => repeated(message, flags));
  if (file !== undefined) sources.push(async () => repeated(await readFileFor(shell, file), flags));
  if (flags.nullMessage) sources.push(async () => repeated('', flags));
  if (flags.stdinFile) sources.push(async () => repeated(await buffer(shell.stdin), flags));
  if (flags.stdinLine) sources.push(async () => (signal) => lines(shell, signal));
  if (sources.length === 1) return sources[0]();
  throw new InvalidInput('OPTION_MISSING', 'message', 'one', sources.length, 'pub needs one of -m, -f, -l, -s and -n');
}

function repeated(payload: Payload, { repeat, repeatDelay }: PubFlags): Source {
  return async function* (signal) {
    for (let times = 0; times < repeat; times++) {
      if (times > 0 && repeatDelay > 0) await delay(repeatDelay, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      yield payload;
    }
  };
}

async function* lines(shell: Shell, signal: AbortSignal): AsyncIterable<string> {
  yield* createInterface({ input: shell.stdin, crlfDelay: Infinity, signal });
}

/** Publish one after the other, with a bounded number on the way; the first failure ends it. */
async function publishAll(
  payloads: AsyncIterable<Payload>,
  publish: (payload: Payload) => Promise<unknown>
): Promise<void> {
  const onTheWay = new Set<Promise<void>>();
  const failures: unknown[] = [];
  for await (const payload of payloads) {
    const published: Promise<void> = publish(payload).then(
      () => void onTheWay.delete(published),
      (error) => {
        failures.push(error);
        onTheWay.delete(published);
      }
    );
    onTheWay.add(published);
    if (onTheWay.size >= WINDOW) await Promise.race(onTheWay);
    if (failures.length > 0) break;
  }
  await Promise.all(onTheWay);
  if (failures.length > 0) throw failures[0];
}
