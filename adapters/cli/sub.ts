import { once } from 'node:events';
import { BrokerError, InvalidInput, type QoS, type ReceivedMessage } from '../../lib/index.ts';
import { type Command, type Shell, tell } from './command.ts';
import { closed, DIAL_FLAGS, dial, interrupted, leave } from './dial.ts';
import { describeFlags, type FlagValues, flag, listFlag, readFlags, timeFlag } from './flags.ts';
import { qosFlag } from './session-flags.ts';

const OWN_FLAGS = {
  topic: listFlag('topic filter; may be given several times', { short: 't', value: 'FILTER' }),
  qos: qosFlag('highest QoS to receive with'),
  keepSession: flag('boolean', false, 'go on with the session of this id, and leave it behind; needs -i', {
    short: 'c'
  }),
  sessionExpiry: flag('duration', Infinity, 'with -c: how long the session is kept (MQTT 5.0)', {
    short: 'x',
    value: 'SECONDS',
    unit: 's',
    max: Infinity
  }),
  count: flag('integer', 0, 'end after so many messages', { short: 'C', value: 'N' }),
  wait: timeFlag(0, 'end after so long, with code 27', { short: 'W' }),
  verbose: flag('boolean', false, 'print the topic before the payload', { short: 'v' }),
  noNewline: flag('boolean', false, 'print nothing between payloads', { short: 'N' }),
  json: flag('boolean', false, 'print each message as a line of JSON, with its properties'),
  noRetained: flag('boolean', false, 'pass over retained messages', { short: 'R' }),
  noLocal: flag('boolean', false, 'No Local (MQTT 5.0)'),
  retainAsPublished: flag('boolean', false, 'Retain As Published (MQTT 5.0)'),
  retainHandling: flag('integer', 0, 'Retain Handling (MQTT 5.0)', { value: '0|1|2', max: 2 })
};

const SUB_FLAGS = { ...OWN_FLAGS, ...DIAL_FLAGS };
type SubFlags = FlagValues<typeof SUB_FLAGS>;

/** Exit code of mosquitto_sub for the same. */
const TIME_IS_UP = 27;

/** `embermq sub`: print what a broker sends. */
export const sub: Command = {
  summary: 'subscribe to a broker and print what comes',
  help: () => `usage: embermq sub -t FILTER [flags]

${describeFlags(OWN_FLAGS)}

connection
${describeFlags(DIAL_FLAGS)}`,
  async run(args, shell) {
    const flags = readFlags(SUB_FLAGS, args).values;
    checkFlags(flags);
    const signal = interrupted(shell);
    const client = await dial(flags, shell, sessionOptions(flags));
    const lost = closed(client);
    const timer = flags.wait > 0 ? AbortSignal.timeout(flags.wait) : undefined;
    const ended = AbortSignal.any([signal, lost, ...(timer === undefined ? [] : [timer])]);
    try {
      const messages = client.messages({ signal: ended });
      const { qos, noLocal, retainAsPublished, retainHandling } = flags;
      const options = { qos: qos as QoS, nl: noLocal, rap: retainAsPublished, rh: retainHandling as 0 | 1 | 2 };
      checkGranted(await client.subscribe([...flags.topic], options), flags.topic, shell);
      await print(messages, flags, shell);
      lost.throwIfAborted(); // then the messages have ended by themselves
      return 0;
    } catch (error) {
      if (error === signal.reason) return 0;
      if (error === timer?.reason) return TIME_IS_UP;
      throw error;
    } finally {
      await leave(client);
    }
  }
};

function checkFlags({
  topic,
  keepSession,
  id,
  mqttVersion,
  noLocal,
  retainAsPublished,
  retainHandling
}: SubFlags): void {
  if (topic.length === 0)
    throw new InvalidInput('OPTION_MISSING', 'topic', 'a filter', undefined, 'sub needs -t FILTER');
  if (keepSession && id === undefined) {
    throw new InvalidInput(
      'OPTION_MISSING',
      'id',
      'a client id',
      undefined,
      '-c needs -i ID: a session is kept under its client id'
    );
  }
  if (mqttVersion !== 5 && (noLocal || retainAsPublished || retainHandling > 0)) {
    throw new InvalidInput(
      'OPTION_INVALID',
      'mqttVersion',
      '5',
      mqttVersion,
      'subscriptions have options only in MQTT 5.0 (-V 5)'
    );
  }
}

function sessionOptions({ keepSession, sessionExpiry, mqttVersion }: SubFlags) {
  if (!keepSession) return { clean: true };
  return mqttVersion === 5 ? { clean: false, sessionExpiry } : { clean: false };
}

function checkGranted(granted: readonly number[], filters: readonly string[], shell: Shell): void {
  const refused = filters.filter((_, at) => granted[at] >= 0x80);
  for (const filter of refused) {
    const code = granted[filters.indexOf(filter)].toString(16);
    tell(shell, `embermq: subscription to "${filter}" was refused with 0x${code}`);
  }
  if (refused.length === filters.length) throw new BrokerError('SUBSCRIBE_REFUSED', 'every subscription was refused');
}

async function print(messages: AsyncIterable<ReceivedMessage>, flags: SubFlags, shell: Shell): Promise<void> {
  let left = flags.count === 0 ? Infinity : flags.count;
  for await (const message of messages) {
    if (flags.noRetained && message.retain) continue;
    // Waiting for room holds up reading, and so in the end the broker, instead of filling this process.
    if (!shell.stdout.write(shown(message, flags))) await once(shell.stdout, 'drain');
    if (--left === 0) return;
  }
}

function shown(message: ReceivedMessage, { json, verbose, noNewline }: SubFlags): Buffer | string {
  if (json) return `${JSON.stringify(asJson(message))}\n`;
  const topic = Buffer.from(verbose ? `${message.topic} ` : '');
  return Buffer.concat([topic, message.payload, Buffer.from(noNewline ? '' : '\n')]);
}

/** A payload that is text as text, any other in base64. */
function asJson({ topic, payload, qos, retain, dup, properties }: ReceivedMessage): object {
  const text = payload.toString('utf8');
  const body = Buffer.from(text).equals(payload) ? { payload: text } : { payloadBase64: payload.toString('base64') };
  const { correlationData, ...rest } = properties;
  const correlation = correlationData === undefined ? {} : { correlationData: correlationData.toString('base64') };
  return { topic, ...body, qos, retain, dup, properties: { ...rest, ...correlation } };
}
