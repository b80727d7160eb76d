// The WebSocket client of the page. It is the client of the package (`embermq/client`) over a WebSocket. It lives as long as the tab, so that a
// person can look at other views meanwhile. User name and password are only in the memory of the page, for attempts to connect again.
import { effect, signal } from '@preact/signals';
import {
  type AuthChallenge,
  Client,
  type ClientOptions,
  type FilterInput,
  type PublishOptions,
  type PublishResult,
  Refused
} from '../../../../../lib/client/index.ts';
import { checkClientOptions } from '../../../../../lib/client/option-check.ts';
import { connectPacket } from '../../../../../lib/client/packets.ts';
import { encode } from '../../../../../lib/packets/encode.ts';
// not `lib/index.ts`: it contains the whole broker
import { reasonName } from '../../../../../lib/packets/reason-codes.ts';
import type { Packet, Properties } from '../../../../../lib/packets/types.ts';
import { checkTopicName } from '../../../../../lib/topics/topic.ts';
import { delayBefore, FieldError, isPassing } from '../../model/mqtt.ts';
import { EMPTY_LOG, type LogRow, type LogState, packetRow, resumedLog, withRows } from '../../model/mqtt-log.ts';
import { T } from '../../texts.ts';
import { urlOf } from '../mount.ts';
import { loadSession, login, session } from '../session.ts';
import { isChallenged } from './challenged.ts';
import { openSocket, SocketStream } from './socket-stream.ts';

const M = T.websocket;

/** The state of the connection. */
export type MqttState =
  | { readonly is: 'closed'; readonly reason?: string; readonly advice?: string }
  | { readonly is: 'connecting' }
  | {
      readonly is: 'open';
      readonly clientId: string;
      readonly isResumed: boolean;
      readonly properties: Properties;
      readonly since: number;
      /** The method of enhanced authentication, if the client uses one. */
      readonly method: string | undefined;
    }
  /** The connection was lost, and is opened again at a time in milliseconds since 1970. */
  | { readonly is: 'waiting'; readonly reason: string; readonly advice?: string; readonly againAt: number }
  /** The session of the console has ended. After the login, the client connects again. */
  | { readonly is: 'loggedOut' };

/** A subscription that the broker has granted. */
export interface Subscription {
  readonly input: FilterInput;
  readonly properties: Properties | undefined;
  /** The number of a colour, from 1 to 5. */
  readonly color: number;
  /** The granted QoS. */
  readonly granted: number;
}

/** The choices of a person for the connection. */
export interface Settings {
  readonly options: ClientOptions;
  /** A connection that is lost is opened again. */
  readonly reconnects: boolean;
}

/** A challenge of the broker during enhanced authentication, which a person answers. */
export interface OpenChallenge {
  readonly properties: Properties;
  /** Send an AUTH with these properties. */
  answer(properties: Properties): void;
}

export const mqttState = signal<MqttState>({ is: 'closed' });
export const subscriptions = signal<readonly Subscription[]>([]);
/** Undefined: the broker waits for no answer. */
export const challenge = signal<OpenChallenge | undefined>(undefined);
effect(() => {
  isChallenged.value = challenge.value !== undefined;
});
export const log = signal<LogState>(EMPTY_LOG);
export const isLogPaused = signal(false);

const COLORS = 5;
/** Rows of the log are shown together after this time. */
const SHOWN_AFTER_MS = 100;

const CLOCK = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout: (run: () => void, delayMs: number) => setTimeout(run, Math.min(delayMs, 2 ** 31 - 1)),
  clearTimeout: (timer: unknown) => clearTimeout(timer as number)
};

/** One wish to be connected, until a person ends it or it ends for good. */
interface Wish {
  readonly settings: Settings;
  readonly aborted: AbortController;
  client: Client | undefined;
  /** The client of the last connection, whose unfinished deliveries the next one completes. */
  before: Client | undefined;
  attempts: number;
  /** The subscriptions of the page are to be made again: the broker has not kept them, or the connection was lost meanwhile. */
  isSubscribing: boolean;
  timer: ReturnType<typeof setTimeout> | undefined;
}

let wish: Wish | undefined;
let colors = 0;
/** The client id of the session that has the subscriptions. */
let subscriber: string | undefined;

let last = 0;
let pending: LogRow[] = [];
let isShowing = false;

function add(row: Omit<LogRow, 'number' | 'at'>): void {
  pending.push({ ...row, number: ++last, at: Date.now() });
  if (pending.length > 1_000) pending = pending.slice(-500); // only the last 500 are kept
  if (isShowing) return;
  isShowing = true;
  setTimeout(() => {
    isShowing = false;
    log.value = withRows(log.peek(), pending.splice(0), isLogPaused.peek());
  }, SHOWN_AFTER_MS);
}

function note(text: string, isBad = false): void {
  add({
    direction: 'note',
    name: '',
    topic: undefined,
    text,
    isBad,
    payload: undefined,
    payloadBytes: 0,
    properties: []
  });
}

function logPacket(direction: 'sent' | 'received', packet: Packet): void {
  add(packetRow(direction, packet, reasonName));
}

/** Hold or show new rows of the log. */
export function pauseLog(isPaused: boolean): void {
  isLogPaused.value = isPaused;
  if (!isPaused) log.value = resumedLog(log.peek());
}

export function clearLog(): void {
  pending = [];
  log.value = EMPTY_LOG;
}

/** Connect with settings. A connection that exists ends first. @throws FieldError, InvalidInput: no attempt could succeed */
export function connect(settings: Settings): void {
  const { will, protocolVersion = 5 } = settings.options;
  checkClientOptions(settings.options);
  const fault = will && checkTopicName(will.topic);
  if (fault !== undefined) throw new FieldError('will.topic', fault);
  encode(connectPacket(settings.options, protocolVersion), protocolVersion);
  end();
  wish = {
    settings,
    aborted: new AbortController(),
    client: undefined,
    before: undefined,
    attempts: 0,
    isSubscribing: false,
    timer: undefined
  };
  void open(wish);
}

async function open(current: Wish): Promise<void> {
  const { settings, aborted } = current;
  mqttState.value = { is: 'connecting' };
  let client: Client;
  try {
    const options = optionsFor(current, settings.options);
    const socket = await openSocket(location.origin.replace(/^http/, 'ws') + urlOf('mqtt'), aborted.signal);
    client = new Client(new SocketStream(socket) as never, options);
    logPacket('sent', connectPacket(options, client.protocolVersion)); // it is sent before there can be a listener
    client.on('packet', ({ direction, packet }) => logPacket(direction, packet));
    client.on('error', ({ message }) => note(message, true));
    client.on('message', () => undefined); // their packets are in the log
    await client.opened();
  } catch (error) {
    if (current === wish) await lost(current, error);
    return;
  }
  if (current !== wish) client.destroy();
  else await use(current, client);
}

/** Use a connection that has been accepted. */
async function use(current: Wish, client: Client): Promise<void> {
  const isFirst = current.before === undefined;
  current.client = client;
  current.attempts = 0;
  follow(current, client);
  const { clientId } = client;
  const { sessionPresent, properties = {} } = client.connack;
  const isResumed = sessionPresent === true;
  const method = current.settings.options.properties?.authenticationMethod;
  mqttState.value = { is: 'open', clientId, isResumed, properties, since: Date.now(), method };
  // a person who connects begins with the subscriptions of the session; after a loss, the page brings its own
  if (isFirst && !(isResumed && clientId === subscriber)) subscriptions.value = [];
  subscriber = clientId;
  if (!isFirst && !isResumed) current.isSubscribing = true;
  if (current.isSubscribing) await subscribeAgain(current, client);
}

/** The options of an attempt. After the first one, the session is resumed if the broker keeps it. */
function optionsFor({ before }: Wish, options: ClientOptions): ClientOptions {
  const shared = { ...options, clock: CLOCK, onAuth: ask };
  const isKept =
    options.protocolVersion === 4 ? options.clean === false : (options.properties?.sessionExpiryInterval ?? 0) > 0;
  if (before === undefined || !isKept) return shared;
  return { ...shared, clean: false, clientId: before.clientId, session: before.session };
}

/** Let a person answer a challenge. The answer of a connection that has ended is ignored. */
function ask({ properties }: AuthChallenge): Promise<Properties> {
  return new Promise((resolve) => {
    challenge.value = {
      properties,
      answer(reply) {
        challenge.value = undefined;
        resolve(reply);
      }
    };
  });
}

/** Authenticate again, and wait until the broker accepts. @throws Error if the connection ends before */
export async function reauthenticate(properties: Properties): Promise<void> {
  await clientNow().reauthenticate(properties);
  note(M.reauthenticated);
}

function follow(current: Wish, client: Client): void {
  client.on('close', ({ error }) => {
    if (current !== wish) return;
    current.client = undefined;
    current.before = client;
    void lost(current, error);
  });
}

/** The connection was lost or not made: it is opened again, unless that would fail in the same way. */
async function lost(current: Wish, error: unknown): Promise<void> {
  const reason = error instanceof Error ? error.message : M.closedByBroker;
  note(reason, true);
  challenge.value = undefined;
  const isAnswered = await loadSession(); // whether the session has ended, and whether upgrade requests arrive
  if (current !== wish) return;
  if (login.value.is === 'none' || login.value.is === 'lost') {
    note(M.loggedOut, true);
    mqttState.value = { is: 'loggedOut' };
    return;
  }
  const advice = isAnswered ? adviceFor(current) : undefined;
  const code = error instanceof Refused ? error.reasonCode : undefined;
  if (!current.settings.reconnects || !isPassing(code) || advice !== undefined) {
    wish = undefined;
    mqttState.value = { is: 'closed', reason, ...(advice !== undefined && { advice }) };
    return;
  }
  const delay = delayBefore(++current.attempts);
  mqttState.value = { is: 'waiting', reason, againAt: Date.now() + delay };
  current.timer = setTimeout(() => void open(current), delay);
}

/** Advice if the broker has never received an upgrade request from here. */
function adviceFor({ before }: Wish): string | undefined {
  const facts = session.value;
  if (before !== undefined || facts === undefined || login.value.is !== 'open') return undefined;
  return facts.upgrades === 'missing' || facts.upgrades === 'untried' ? M.noUpgrades : undefined;
}

effect(() => {
  if (login.value.is === 'open' && mqttState.peek().is === 'loggedOut' && wish !== undefined) {
    if (wish.settings.reconnects) void open(wish);
    else {
      wish = undefined;
      mqttState.value = { is: 'closed', reason: M.loggedOut };
    }
  }
});

/** Do not wait for the next attempt. */
export function connectNow(): void {
  if (wish === undefined) return;
  clearTimeout(wish.timer);
  void open(wish);
}

/** Disconnect, with DISCONNECT. @throws Error if the packet cannot be sent */
export async function disconnect(reasonCode: number, properties: Properties | undefined): Promise<void> {
  const current = wish;
  wish = undefined; // so that the end of the connection is not reported as a loss
  challenge.value = undefined;
  try {
    await current?.client?.disconnect({ reasonCode, ...(properties && { properties }) });
  } catch (error) {
    wish ??= current; // the packet could not be sent, so the connection stays
    throw error;
  }
  note(M.disconnected);
  mqttState.value = { is: 'closed' };
}

/** End attempts to connect, or close the connection without DISCONNECT, so that the broker publishes the will. */
export function end(): void {
  const current = wish;
  wish = undefined;
  if (current === undefined) return;
  challenge.value = undefined;
  clearTimeout(current.timer);
  current.aborted.abort(new Error(M.cancelled));
  current.client?.destroy();
  note(current.client === undefined ? M.cancelled : M.dropped);
  mqttState.value = { is: 'closed' };
}

function clientNow(): Client {
  const client = wish?.client;
  if (client === undefined) throw new Error(M.notConnected);
  return client;
}

/** Subscribe to a topic filter. @throws Error if the broker refuses */
export async function subscribe(input: FilterInput, properties: Properties | undefined): Promise<void> {
  const [granted] = await clientNow().subscribe([input], { ...(properties && { properties }) });
  const known = subscriptions.value.find((one) => one.input.topic === input.topic);
  if (granted >= 0x80) throw new Error(M.refused(input.topic, reasonName(granted)));
  const made = { input, properties, granted, color: known?.color ?? (colors++ % COLORS) + 1 };
  subscriptions.value = [...subscriptions.value.filter((one) => one !== known), made];
}

/** Unsubscribe from a topic filter. */
export async function unsubscribe(filter: string, properties: Properties | undefined): Promise<void> {
  await clientNow().unsubscribe(filter, { ...(properties && { properties }) });
  subscriptions.value = subscriptions.value.filter(({ input }) => input.topic !== filter);
}

/** The broker has kept no session, so the subscriptions of the page are made again. The next connection continues if this one is lost. */
async function subscribeAgain(current: Wish, client: Client): Promise<void> {
  for (const one of subscriptions.value) {
    if (!subscriptions.value.includes(one)) continue; // a person has ended it meanwhile
    let granted = 0x80;
    try {
      [granted] = await client.subscribe([one.input], { ...(one.properties && { properties: one.properties }) });
    } catch (error) {
      if (!client.isConnected) return;
      note(M.refused(one.input.topic, (error as Error).message), true);
    }
    subscriptions.value = subscriptions.value.flatMap((other) =>
      other !== one ? [other] : granted < 0x80 ? [{ ...one, granted }] : []
    );
  }
  current.isSubscribing = false;
}

/** Publish a message. @returns the acknowledgement in words @throws Error if the broker refuses */
export async function publish(topic: string, payload: Uint8Array, options: PublishOptions): Promise<string> {
  const { reasonCode }: PublishResult = await clientNow().publish(topic, payload, options);
  if (options.qos === 0 || options.qos === undefined) return M.sent;
  return reasonCode === 0 ? M.acknowledged : M.acknowledgedWith(reasonName(reasonCode));
}
