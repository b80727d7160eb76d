// A lost connection is replaced, with growing delays, unless the broker has refused the client permanently
// (`TEMPORARY`). While standard output is full, nothing is read from the broker, so that messages wait there and not
// in this process. Flags and exit codes follow mosquitto_sub where both have them.

import { once } from 'node:events';
import {
  BrokerError,
  type Client,
  checkTopicFilter,
  InvalidInput,
  type QoS,
  ReasonCode,
  type ReceivedMessage,
  Refused,
  reasonName
} from '../../lib/index.ts';
import { type Command, log, type Shell } from './command.ts';
import { closed, DIAL_FLAGS, dial, interrupted, leave, unlessAborted } from './dial.ts';
import { describeFlags, type FlagValues, flag, listFlag, readFlags, refuseWords, timeFlag } from './flags.ts';
import { messageObject } from './json-messages.ts';
import { qosFlag } from './session-flags.ts';

const OWN_FLAGS = {
  topic: listFlag('topic filter; may be given several times', { short: 't', value: 'FILTER' }),
  qos: qosFlag('maximum QoS of the messages received'),
  keepSession: flag('boolean', false, 'resume the session of this client id, and keep it afterwards; needs -i', {
    short: 'c'
  }),
  sessionExpiry: flag('duration', Infinity, 'with -c: session expiry (MQTT 5.0)', {
    short: 'x',
    value: 'SECONDS',
    unit: 's',
    max: Infinity
  }),
  count: flag('integer', 0, 'end after this number of messages; 0: no limit', { short: 'C', value: 'N' }),
  wait: timeFlag(0, 'end after this time, with exit code 27', { short: 'W' }),
  verbose: flag('boolean', false, 'print the topic before the payload', { short: 'v' }),
  noNewline: flag('boolean', false, 'do not print a line break after each payload', { short: 'N' }),
  json: flag('boolean', false, 'print each message as a line of JSON, with its properties, which pub --json reads'),
  noRetained: flag('boolean', false, 'do not print retained messages', { short: 'R' }),
  noLocal: flag('boolean', false, 'No Local (MQTT 5.0)'),
  retainAsPublished: flag('boolean', false, 'Retain As Published (MQTT 5.0)'),
  retainHandling: flag('integer', 0, 'Retain Handling (MQTT 5.0)', { value: '0|1|2', max: 2 })
};

/** All flags of the command. */
export const SUB_FLAGS = { ...OWN_FLAGS, ...DIAL_FLAGS };
type SubFlags = FlagValues<typeof SUB_FLAGS>;

/** The exit code when the time of `--wait` has elapsed, as for mosquitto_sub. */
const TIME_ELAPSED = 27;

const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 30_000;

/** Reason codes after which another attempt may succeed. */
const TEMPORARY: ReadonlySet<number> = new Set([
  ReasonCode.success,
  ReasonCode.unspecifiedError,
  ReasonCode.implementationSpecificError,
  ReasonCode.serverUnavailable,
  ReasonCode.serverBusy,
  ReasonCode.serverShuttingDown,
  ReasonCode.keepAliveTimeout,
  ReasonCode.messageRateTooHigh,
  ReasonCode.quotaExceeded,
  ReasonCode.connectionRateExceeded
]);

/** `embermq sub`: print the messages that a broker sends. If the connection is lost, connect again. */
export const sub: Command = {
  summary: 'subscribe to topics and print the messages',
  hasHostFlag: true,
  completed: () => ({ flags: SUB_FLAGS }),
  help: () => `usage: embermq sub -t FILTER [flags]

If the connection is lost, sub reconnects after 1, 2, 4 and up to 30 seconds, unless the broker has refused the client permanently.

${describeFlags(OWN_FLAGS)}

connection
${describeFlags(DIAL_FLAGS)}`,
  async run(args, shell) {
    const { values: flags, words } = readFlags(SUB_FLAGS, args);
    refuseWords(words, 'sub');
    checkFlags(flags);
    const signal = interrupted(shell);
    let timer: AbortSignal | undefined;
    let client: Client | undefined;
    try {
      client = await dial(flags, shell, sessionOptions(flags), signal);
      if (flags.wait > 0) timer = AbortSignal.timeout(flags.wait);
      const ended = timer === undefined ? signal : AbortSignal.any([signal, timer]);
      const reception = new Reception(flags, shell, ended);
      for (;;) {
        try {
          await reception.receive(client);
          return 0;
        } catch (error) {
          client = await redial(client, error, flags, shell, ended);
        }
      }
    } catch (error) {
      if (signal.aborted) return 0;
      if (timer?.aborted) return TIME_ELAPSED;
      throw error;
    } finally {
      if (client !== undefined) await leave(client);
    }
  }
};

/** The state kept across connections: the number of messages left to print, and whether the subscriptions were made. */
class Reception {
  readonly #flags: SubFlags;
  readonly #shell: Shell;
  readonly #ended: AbortSignal;
  #left: number;
  #isSubscribed = false;

  constructor(flags: SubFlags, shell: Shell, ended: AbortSignal) {
    this.#flags = flags;
    this.#shell = shell;
    this.#ended = ended;
    this.#left = flags.count === 0 ? Infinity : flags.count;
  }

  /**
   * Subscribe, and print messages until `--count` is reached.
   * @throws BrokerError SUBSCRIBE_REFUSED, CONNECTION_CLOSED; the reason of the signal
   */
  async receive(client: Client): Promise<void> {
    const lost = closed(client);
    const messages = client.messages({ signal: this.#ended });
    try {
      if (!this.#isSubscribed || !client.connack.sessionPresent) await this.#subscribe(client);
      this.#isSubscribed = true;
      await this.#print(messages);
    } catch (error) {
      lost.throwIfAborted(); // this error is more specific
      throw error;
    }
    if (this.#left > 0) lost.throwIfAborted();
  }

  async #subscribe(client: Client): Promise<void> {
    const { topic, qos, noLocal, retainAsPublished, retainHandling } = this.#flags;
    const options = { qos: qos as QoS, noLocal, retainAsPublished, retainHandling: retainHandling as 0 | 1 | 2 };
    checkGranted(await unlessAborted(client.subscribe([...topic], options), this.#ended), topic, this.#shell);
  }

  async #print(messages: AsyncIterable<ReceivedMessage>): Promise<void> {
    const { stdout } = this.#shell;
    for await (const message of messages) {
      if (this.#flags.noRetained && message.retain) continue;
      // while standard output is full, nothing is read from the broker, so that messages do not accumulate in this
      // process
      if (!stdout.write(formatMessage(message, this.#flags))) await once(stdout, 'drain', { signal: this.#ended });
      if (--this.#left === 0) return;
    }
  }
}

/**
 * Connect again after the connection was lost, with increasing delays between the attempts.
 * @throws the error of the connection or of an attempt, if another attempt would not succeed; the reason of the signal
 */
async function redial(
  { session }: Client,
  lost: unknown,
  flags: SubFlags,
  shell: Shell,
  ended: AbortSignal
): Promise<Client> {
  let why = lost;
  for (let delayMs = FIRST_RETRY_MS; ; delayMs = Math.min(2 * delayMs, LAST_RETRY_MS)) {
    ended.throwIfAborted();
    if (!isTemporary(why)) throw why;
    log(shell, `embermq: ${(why as Error).message}; trying again in ${delayMs / 1000} s`);
    await shell.delay(delayMs, ended);
    try {
      const client = await dial(flags, shell, { ...sessionOptions(flags), session }, ended);
      log(shell, 'embermq: connected again');
      return client;
    } catch (error) {
      why = error;
    }
  }
}

function isTemporary(error: unknown): boolean {
  if (!(error instanceof BrokerError)) return false;
  const refusal = error instanceof Refused ? error : error.cause;
  if (refusal instanceof Refused) return TEMPORARY.has(refusal.reasonCode);
  return ['CONNECTION_CLOSED', 'BROKER_UNREACHABLE', 'CONNECT_TIMEOUT', 'NOT_CONNECTED'].includes(error.code);
}

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
  for (const filter of topic) {
    const fault = checkTopicFilter(filter);
    if (fault !== undefined) throw new InvalidInput('TOPIC_FILTER_INVALID', 'topic', 'a topic filter', filter, fault);
  }
  if (keepSession && id === undefined) {
    throw new InvalidInput(
      'OPTION_MISSING',
      'id',
      'a client id',
      undefined,
      '-c needs -i ID, because a session belongs to a client id'
    );
  }
  if (mqttVersion !== 5 && (noLocal || retainAsPublished || retainHandling > 0)) {
    throw new InvalidInput(
      'OPTION_INVALID',
      'mqttVersion',
      '5',
      mqttVersion,
      '--no-local, --retain-as-published and --retain-handling need MQTT 5.0 (-V 5)'
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
    const code = granted[filters.indexOf(filter)];
    log(shell, `embermq: subscription to "${filter}" was refused: ${reasonName(code)}`);
  }
  if (refused.length === filters.length) throw new BrokerError('SUBSCRIBE_REFUSED', 'every subscription was refused');
}

function formatMessage(message: ReceivedMessage, { json, verbose, noNewline }: SubFlags): Buffer | string {
  if (json) return `${JSON.stringify(messageObject(message))}\n`;
  const topic = Buffer.from(verbose ? `${message.topic} ` : '');
  return Buffer.concat([topic, message.payload, Buffer.from(noNewline ? '' : '\n')]);
}
