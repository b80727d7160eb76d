// Sources are generators, so that messages are read as they are sent: a pipe may never end. `--json` reads whole messages
// instead of payloads; their errors name the line.

import { createInterface } from 'node:readline';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { isPlainObject } from '../../lib/adapter.ts';
import { BrokerError, type Client, checkTopicName, InvalidInput, type QoS } from '../../lib/index.ts';
import { type Command, readFileFor, type Shell } from './command.ts';
import { closed, DIAL_FLAGS, dial, INTERRUPTED, interrupted, leave, unlessAborted } from './dial.ts';
import { describeFlags, type FlagValues, flag, readFlags, refuseWords, timeFlag } from './flags.ts';
import { type MessageDefaults, messageFrom, type PlacedMessage } from './json-messages.ts';
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
  json: flag(
    'boolean',
    false,
    'each line of standard input (or of -m, -f) is a message as JSON, as sub --json prints it; -t, -q and -r are defaults'
  ),
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
  completed: () => ({ flags: PUB_FLAGS }),
  help: () => `usage: embermq pub -t TOPIC (-m TEXT | -f FILE | -l | -s | -n) [flags]
       embermq pub --json [-m JSON | -f FILE | -s] [flags]

${describeFlags(OWN_FLAGS)}

properties of MQTT 5.0
${describeFlags(MESSAGE_PROPERTY_FLAGS)}

connection
${describeFlags(DIAL_FLAGS)}`,
  async run(args, shell) {
    const { values: flags, words } = readFlags(PUB_FLAGS, args);
    refuseWords(words, 'pub');
    const source = await messageSource(flags, shell);
    const client = await dial(flags, shell);
    const signal = interrupted(shell);
    try {
      const lost = closed(client);
      await publishAll(source(AbortSignal.any([signal, lost])), (message) => publishFrom(client, message));
      lost.throwIfAborted(); // the source ends early if the connection is lost
      if (flags.qos === 0 || flags.json) await unlessAborted(client.ping(), signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      await leave(client);
    }
    return signal.aborted ? INTERRUPTED : 0;
  }
};

type Source<T> = (signal: AbortSignal) => AsyncIterable<T>;

/**
 * The messages, from the source that the flags name. Files are read before connecting, so that their errors are reported first.
 * @throws InvalidInput OPTION_MISSING, TOPIC_NAME_INVALID, OPTION_INVALID, MESSAGE_INVALID
 */
async function messageSource(flags: PubFlags, shell: Shell): Promise<Source<PlacedMessage>> {
  const { topic } = flags;
  const fault = topic === undefined ? undefined : checkTopicName(topic);
  if (fault !== undefined) throw new InvalidInput('TOPIC_NAME_INVALID', 'topic', 'a topic name', topic, fault);
  const properties = messageProperties(flags, flags.mqttVersion);
  const common = { qos: flags.qos as QoS, retain: flags.retain, properties };
  if (flags.json) return jsonSource(flags, { ...common, topic }, shell);
  if (topic === undefined)
    throw new InvalidInput('OPTION_MISSING', 'topic', 'a topic', undefined, 'pub needs -t TOPIC');
  const payloads = await payloadSource(flags, shell);
  return async function* (signal) {
    for await (const payload of payloads(signal)) yield { ...common, topic, payload };
  };
}

/** The source of messages as JSON: standard input, unless flags name another one. */
async function jsonSource(flags: PubFlags, defaults: MessageDefaults, shell: Shell): Promise<Source<PlacedMessage>> {
  if (flags.nullMessage)
    throw new InvalidInput('FLAG_INVALID', '-n', 'no -n', undefined, '--json and -n: use {"payload":""} instead');
  const read = (text: string, place: string) => {
    const message = messageFrom(text, place, defaults);
    if (message.properties === undefined || flags.mqttVersion === 5) return message;
    const wrong = `${place}: message properties need MQTT 5.0 (-V 5)`;
    throw new InvalidInput('OPTION_INVALID', 'mqttVersion', '5', flags.mqttVersion, wrong);
  };
  const { message, file, stdinFile } = flags;
  if (message === undefined && file === undefined && !stdinFile)
    return async function* (signal) {
      let number = 0;
      for await (const line of lines(shell, signal)) {
        number++;
        if (line.trim() !== '') yield read(line, `line ${number}`);
      }
    };
  const text = String(await firstOf(await payloadSource({ ...flags, repeat: 1 }, shell)));
  const found = messagesIn(text, file === undefined ? (message === undefined ? '' : '-m') : file, read);
  return async function* (signal) {
    for await (const all of repeated(found, flags)(signal)) yield* all;
  };
}

/** The messages of a text: one, or one on each line. */
function messagesIn(text: string, name: string, read: (text: string, place: string) => PlacedMessage): PlacedMessage[] {
  if (isObject(text)) return [read(text, name === '' ? 'standard input' : name)];
  const place = (at: number) => `${name === '' ? '' : `${name}, `}line ${at + 1}`;
  return text.split(/\r?\n/).flatMap((line, at) => (line.trim() === '' ? [] : [read(line, place(at))]));
}

function isObject(text: string): boolean {
  try {
    return isPlainObject(JSON.parse(text));
  } catch {
    return false;
  }
}

async function firstOf<T>(source: Source<T>): Promise<T | undefined> {
  for await (const one of source(new AbortController().signal)) return one;
  return undefined;
}

/** Publish a message. @throws the error of the publish, which begins with the line of the message */
async function publishFrom(client: Client, { place, ...message }: PlacedMessage): Promise<void> {
  try {
    await client.publish(message);
  } catch (error) {
    if (place !== undefined && error instanceof BrokerError && error.code !== 'CONNECTION_CLOSED')
      error.message = `${place}: ${error.message}`;
    throw error;
  }
}

type Payload = Buffer | string;

/**
 * The source of the payloads, given by exactly one flag. Files are read before connecting, so that read errors are
 * reported first.
 */
async function payloadSource(flags: PubFlags, shell: Shell): Promise<Source<Payload>> {
  const { message, file } = flags;
  const sources: (() => Promise<Source<Payload>>)[] = [];
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

function repeated<T>(one: T, { repeat, repeatDelay }: PubFlags): Source<T> {
  return async function* (signal) {
    for (let times = 0; times < repeat; times++) {
      if (times > 0 && repeatDelay > 0) await delay(repeatDelay, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      yield one;
    }
  };
}

async function* lines(shell: Shell, signal: AbortSignal): AsyncIterable<string> {
  yield* createInterface({ input: shell.stdin, crlfDelay: Infinity, signal });
}

/** Publish all messages in order, with at most `WINDOW` of them in flight. @throws the first error, which ends publishing */
async function publishAll<T>(messages: AsyncIterable<T>, publish: (message: T) => Promise<unknown>): Promise<void> {
  const inFlight = new Set<Promise<void>>();
  const failures: unknown[] = [];
  try {
    for await (const message of messages) {
      const published: Promise<void> = publish(message).then(
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
  } catch (error) {
    failures.push(error); // of the source, after the messages that it has given
  }
  await Promise.all(inFlight);
  if (failures.length > 0) throw failures[0];
}
