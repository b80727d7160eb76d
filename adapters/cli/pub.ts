import { createInterface } from 'node:readline';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { checkTopicName, InvalidInput, type QoS } from '../../lib/index.ts';
import { type Command, readFileFor, type Shell } from './command.ts';
import { closed, DIAL_FLAGS, dial, INTERRUPTED, interrupted, leave, unlessAborted } from './dial.ts';
import { describeFlags, type FlagValues, flag, readFlags, refuseWords, timeFlag } from './flags.ts';
import { MESSAGE_PROPERTY_FLAGS, messageProperties, qosFlag } from './session-flags.ts';

const OWN_FLAGS = {
  topic: flag('string', undefined as string | undefined, 'topic to publish to', { short: 't', value: 'TOPIC' }),
  message: flag('string', undefined as string | undefined, 'payload of the message', {
    short: 'm',
    value: 'TEXT',
    max: Number.MAX_SAFE_INTEGER
  }),
  file: flag('string', undefined as string | undefined, 'publish the contents of this file', {
    short: 'f',
    value: 'FILE'
  }),
  stdinLine: flag('boolean', false, 'publish each line of standard input', { short: 'l' }),
  stdinFile: flag('boolean', false, 'publish all of standard input as one message', { short: 's' }),
  nullMessage: flag('boolean', false, 'publish an empty payload (with -r: delete the retained message)', {
    short: 'n'
  }),
  qos: qosFlag('QoS to publish with'),
  retain: flag('boolean', false, 'publish as the retained message of the topic', { short: 'r' }),
  repeat: flag('integer', 1, 'how many times to publish', { value: 'N', min: 1 }),
  repeatDelay: timeFlag(0, 'time between repetitions')
};

/** All flags of the command. */
export const PUB_FLAGS = { ...OWN_FLAGS, ...MESSAGE_PROPERTY_FLAGS, ...DIAL_FLAGS };
type PubFlags = FlagValues<typeof PUB_FLAGS>;

/** Maximum number of unacknowledged QoS 1 and 2 messages while further input is read. */
const WINDOW = 100;

/** `embermq pub`: publish messages to any broker. It ends when the broker has received everything. */
export const pub: Command = {
  summary: 'publish messages to a broker',
  hasHostFlag: true,
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
      lost.throwIfAborted(); // the source ends early if the connection is lost
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
type PayloadReader = (signal: AbortSignal) => AsyncIterable<Payload>;

/**
 * The source of the payloads, given by exactly one flag. Files are read before connecting, so that read errors are
 * reported first.
 */
async function payloadSource(flags: PubFlags, shell: Shell): Promise<PayloadReader> {
  const { message, file } = flags;
  const sources: (() => Promise<PayloadReader>)[] = [];
  if (message !== undefined) sources.push(async () => repeated(message, flags));
  if (file !== undefined) sources.push(async () => repeated(await readFileFor(shell, file), flags));
  if (flags.nullMessage) sources.push(async () => repeated('', flags));
  if (flags.stdinFile) sources.push(async () => repeated(await buffer(shell.stdin), flags));
  if (flags.stdinLine) sources.push(async () => (signal) => lines(shell, signal));
  if (sources.length === 1) return sources[0]();
  throw new InvalidInput(
    'OPTION_MISSING',
    'message',
    'one',
    sources.length,
    'pub needs exactly one of -m, -f, -l, -s and -n'
  );
}

function repeated(payload: Payload, { repeat, repeatDelay }: PubFlags): PayloadReader {
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

/** Publish all payloads in order, with at most `WINDOW` of them in flight. @throws the first error, which ends publishing */
async function publishAll(
  payloads: AsyncIterable<Payload>,
  publish: (payload: Payload) => Promise<unknown>
): Promise<void> {
  const inFlight = new Set<Promise<void>>();
  const failures: unknown[] = [];
  for await (const payload of payloads) {
    const published: Promise<void> = publish(payload).then(
      () => void inFlight.delete(published),
      (error) => {
        failures.push(error);
        inFlight.delete(published);
      }
    );
    inFlight.add(published);
    if (inFlight.size >= WINDOW) await Promise.race(inFlight);
    if (failures.length > 0) break;
  }
  await Promise.all(inFlight);
  if (failures.length > 0) throw failures[0];
}
