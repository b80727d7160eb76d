// A session with expiry 0 ends when its client id is taken over, with or without clean start: its network connection
// has closed.
//
// Hooks for one client id run side by side. If CONNECTs of one client id queued for their hooks, anyone who knows a
// client id could lock its owner out: N connections without a password would cost the owner N times the duration of
// the hook. So all hooks run at once. Then the client id is claimed, which may wait in a cluster. Looking up, taking
// over and storing the session is one synchronous step after the claim; the last one that is admitted gets the
// session.

import type { AccessControl } from '../../access/access-control.ts';
import { Authentication, admitsAnonymous, isTrusted } from '../../access/authentication.ts';
import { isUtf8, randomBytes } from '../../base/builtins.ts';
import { Cancellation } from '../../base/cancellation.ts';
import { ProtocolError } from '../../base/errors.ts';
import type { Connection } from '../../connection/connection.ts';
import { Pause } from '../../connection/pause.ts';
import { ZoneRates } from '../../connection/rate-limit.ts';
import { type Approval, isApproval, isThenable, type Refusal, readRefusal, type Verdict } from '../../events/hooks.ts';
import { Metric } from '../../events/metrics.ts';
import { encodeAuth, encodeConnack } from '../../packets/encode.ts';
import { ReasonCode } from '../../packets/reason-codes.ts';
import type { AuthPacket, ConnackPacket, ConnectPacket, Properties } from '../../packets/types.ts';
import { type Ban, banText } from '../../records/ban.ts';
import type { Zone } from '../../records/zone.ts';
import { agreementOf } from '../../session/life/agreement.ts';
import { originOf } from '../../session/life/farewell.ts';
import { Takeover } from '../../session/life/takeover.ts';
import { Will, type WillState } from '../../session/life/will.ts';
import type { ConnectCode } from '../../session/ports.ts';
import { resumeAfterHook, type Session } from '../../session/session.ts';
import type { SessionClient } from '../../session/session-client.ts';
import { checkControls } from '../../session/topic-checks.ts';
import { type Ledger, ticketSince } from '../../store/ledger.ts';
import { checkTopicName, faultOfLevel, mountedName } from '../../topics/topic.ts';
import { BRIDGE_PREFIX, isBridgeZone } from '../rights/bridge-access.ts';
import type { Judgement, SourceReview } from '../rights/source-review.ts';
import type { Services } from '../services.ts';
import type { SessionIndex } from '../sessions/session-index.ts';
import type { StoredSessions } from '../sessions/stored-sessions.ts';
import { checkEntry } from './admission-checks.ts';
import { type ClientIdClaims, LOCAL_CLAIMS } from './claims.ts';

/** The characters of client ids that the broker assigns. */
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
/** The Session Expiry Interval of a session that does not expire. */
const NEVER = 0xffff_ffff;

/** The parts of the broker that `Admission` uses. */
interface AdmissionHost {
  readonly pressure: { readonly isShedding: boolean; readonly isSpaceLow: boolean };
  readonly retainer: { readonly isStarted: boolean };
  readonly sessions: SessionIndex;
  readonly ledger: Ledger | undefined;
  /** undefined: there is no store. */
  readonly storedSessions: StoredSessions | undefined;
  readonly wills: { publish(session: Session, will: WillState): void };
  readonly subscribing: { autoSubscribe(session: Session): void };
  readonly access: AccessControl;
  /** Authorizes the subscriptions of a session whose client has other rights than before. */
  readonly review: { judge(session: Session, asks: boolean): void };
  /** Asks sources about the subscriptions of a session whose client returns. */
  readonly sourceReview: SourceReview;
}

const BY_HOOK: Partial<Refusal> = { why: 'the hook preConnect refuses the client' };
const ANONYMOUS: Partial<Refusal> = { why: 'anonymous clients are refused (option allowAnonymous)' };

/** The conditions under which a client is admitted. */
interface Welcome {
  readonly connack: Buffer;
  readonly sessionPresent: boolean;
  /** See `Approval`. */
  readonly expiresAt: number | undefined;
}

/**
 * Admits clients, from CONNECT to CONNACK, and re-authenticates them. Synchronous if the hooks and the claim of the client id are, and if
 * nothing has to be read from the store or committed before the CONNACK.
 *
 * Hooks may decide on several CONNECTs at the same time, also with the same client id. Each client gets its session in one synchronous step
 * after the hooks have approved it and its client id is claimed, so the last one owns the session.
 */
export class Admission {
  /** A cluster replaces it. */
  claims: ClientIdClaims = LOCAL_CLAIMS;
  readonly #services: Services;
  readonly #host: AdmissionHost;
  readonly #rates = new ZoneRates();

  constructor(services: Services, host: AdmissionHost) {
    this.#services = services;
    this.#host = host;
  }

  /** Decide on a CONNECT and answer it. @throws ProtocolError if the CONNECT is refused before hooks are asked */
  connect(session: Session, packet: ConnectPacket): void {
    const { metrics, events } = this.#services;
    const { sessions } = this.#host;
    const connection = session.connection as Connection<Session>;
    const { client, lifecycle } = session;
    const { zone } = client.agreement;
    const username = client.transportInfo.username ?? packet.username;
    const agreement = agreementOf(packet, zone);
    const clientId = clientIdOf(zone, username, packet, sessions);
    client.identified(agreement, clientId, username);
    client.expireAfter(client.sessionExpiry, packet.keepalive); // as requested, until `agree`
    lifecycle.send('connect');
    metrics.counts[Metric.clientConnect]++;
    if (events.heard['client.connect']) events.emit('client.connect', { client });
    const versions = client.transportInfo.protocolVersions ?? zone.protocolVersions;
    if (!versions.includes(packet.protocolVersion)) {
      throw new ProtocolError(
        ReasonCode.unsupportedProtocolVersion,
        `MQTT protocol level ${packet.protocolVersion} is not accepted (option protocolVersions)`
      );
    }
    checkControls(zone, packet.clientId, 'client id');
    checkControls(zone, packet.username, 'user name');
    checkControls(zone, packet.will?.topic, 'will topic');
    checkControls(zone, packet.will?.properties?.responseTopic, 'response topic of the will');
    checkClientId(clientId, zone);
    const template = client.transportInfo.mountpoint ?? zone.mountpoint;
    client.identified(agreement, clientId, username, mountpointOf(client, template));
    checkWill(session, packet, this.#isRetainAvailable(client, packet));
    this.#preConnect(session, connection, packet);
  }

  /**
   * Tell whether to announce retained messages. MQTT 3.x cannot announce that the retainer is stopped: its clients may ask for retained
   * messages, which are then not retained.
   */
  #isRetainAvailable({ agreement }: SessionClient, { protocolVersion }: ConnectPacket): boolean {
    return agreement.zone.retainAvailable && (this.#host.retainer.isStarted || protocolVersion < 5);
  }

  #preConnect(session: Session, connection: Connection<Session>, packet: ConnectPacket): void {
    const { client } = session;
    const ban = banOf(this.#host.access, client);
    if (ban !== undefined) this.#refuse(session, bannedBy(ban));
    else if (this.#services.hooks.preConnect.length === 0 || isBridgeZone(client.agreement.zone))
      this.#authenticate(session, connection, packet);
    else this.#askPreConnect(session, connection, packet);
  }

  #askPreConnect(session: Session, connection: Connection<Session>, packet: ConnectPacket): void {
    const { hooks } = this.#services;
    const cancellation = new Cancellation();
    const { client } = session;
    const { transportInfo } = client;
    session.lifecycle.decidedBy(cancellation);
    const request = { packet, transportInfo, client, signal: cancellation.signal };
    const ask = hooks.preConnect;
    const verdict = hooks.first<typeof request, Verdict>('preConnect', ask, request, false, client, cancellation);
    const go = (answer: Verdict | undefined) => {
      if (!isWaiting(session, connection)) return;
      if (answer === undefined || isApproval(answer)) this.#authenticate(session, connection, packet);
      else this.#refuse(session, typeof answer === 'object' ? answer : BY_HOOK);
    };
    if (!isThenable(verdict)) {
      go(verdict);
      return;
    }
    connection.reader.pause(Pause.hook);
    verdict.then((answer) => {
      this.#guard(session, () => go(answer));
      resumeAfterHook(connection);
    });
  }

  #authenticate(session: Session, connection: Connection<Session>, packet: ConnectPacket): void {
    const { hooks, metrics } = this.#services;
    metrics.counts[Metric.clientAuthenticate]++;
    const { client } = session;
    const { agreement } = client;
    const { zone } = agreement;
    const isPlain =
      hooks.authenticate.length === 0 && agreement.authMethod === undefined && admitsAnonymous(zone, hooks);
    const isAdmitted = isPlain || isTrusted(client.transportInfo, zone);
    if (isAdmitted === undefined) this.#refuse(session, ANONYMOUS);
    else if (isAdmitted) {
      if (isPlain && client.username === undefined) metrics.counts[Metric.clientAuthAnonymous]++;
      this.#admit(session, connection, packet, { allow: true, isSuperuser: isBridgeZone(zone) });
    } else this.#askAuthenticate(session, connection, packet);
  }

  #askAuthenticate(session: Session, connection: Connection<Session>, packet: ConnectPacket): void {
    const { lifecycle } = session;
    const exchange = new Authentication(session, this.#services.hooks, this.#host.access, packet.password, false, {
      challenge: (data) => {
        if (!isWaiting(session, connection)) return;
        sendAuth(session, connection, ReasonCode.continueAuthentication, exchange.method, data);
      },
      approved: (approval) => {
        if (!isWaiting(session, connection)) return;
        this.#admit(session, connection, packet, approval);
      },
      refused: (refusal, code) => {
        if (isWaiting(session, connection)) this.#refuse(session, refusal, code);
      },
      waiting: (isHookAtWork) => {
        if (isHookAtWork) session.connection?.reader.pause(Pause.hook);
        else resumeAfterHook(connection);
      }
    });
    lifecycle.decidedBy(exchange);
    exchange.begin(packet.properties?.authenticationData);
  }

  /** Close the connections whose CONNECT has not been accepted, because memory is short. Clients that return to a stored session are exempt. */
  closeUnadmitted(connections: Iterable<Connection<Session>>): void {
    const text = 'the broker is short of memory (option memoryHighWatermark)';
    for (const { session, isClosed } of connections) {
      if (isClosed || session.state !== 'idle' || this.#host.sessions.isReturning(session.client)) continue;
      session.fail(new ProtocolError(ReasonCode.serverBusy, text));
    }
  }

  #guard(session: Session, run: () => void): void {
    try {
      run();
    } catch (error) {
      if (error instanceof ProtocolError) session.fail(error);
      else session.failInternally(error, 'connecting');
    }
  }

  /** @param refusal the code of the record; default: by the reason code */
  #refuse(session: Session, given: Partial<Refusal>, refusal?: ConnectCode): void {
    session.lifecycle.close('not_authorized', { ...readRefusal(given, ReasonCode.notAuthorized), refusal });
  }

  /** Identify a client that the hooks have approved, agree on its session, and claim its client id. */
  #admit(session: Session, connection: Connection<Session>, packet: ConnectPacket, approval: Approval): void {
    const { client, lifecycle } = session;
    lifecycle.decidedBy(undefined); // the hooks have answered
    if (approval.username !== undefined) rename(client, approval.username);
    const ban = approval.username === undefined ? undefined : banOf(this.#host.access, client);
    if (ban !== undefined) {
      this.#refuse(session, bannedBy(ban));
      return;
    }
    entitle(this.#host.access, client, approval);
    agree(session, packet);
    const claim = this.claims.claim(client.clientId);
    if (claim === undefined) this.#enter(session, connection, packet, approval);
    else this.#enterAfter(claim, session, connection, packet, approval);
  }

  #enterAfter(
    claim: Promise<void>,
    session: Session,
    connection: Connection<Session>,
    packet: ConnectPacket,
    approval: Approval
  ): void {
    const proceed = (refusal?: { readonly error: unknown }) => {
      if (!isWaiting(session, connection)) return;
      if (refusal !== undefined) throw refusal.error;
      this.#enter(session, connection, packet, approval);
    };
    connection.reader.pause(Pause.hook);
    claim
      .then(
        () => this.#guard(session, proceed),
        (error: unknown) => this.#guard(session, () => proceed({ error }))
      )
      .finally(() => resumeAfterHook(connection));
  }

  /**
   * Start or resume the session of a client whose client id belongs to this node: one synchronous step, after the sources have decided
   * about the subscriptions of a session that is resumed.
   */
  #enter(
    session: Session,
    connection: Connection<Session>,
    packet: ConnectPacket,
    approval: Approval,
    judged?: Judgement
  ): void {
    const services = this.#services;
    const host = this.#host;
    const { client } = session;
    services.time.read(); // queued messages may have expired while a hook decided, or while the session was read
    const stored = host.sessions.get(client.clientId);
    if (stored?.state === 'connected' && connection.hasPeerEnded) {
      connection.lost('closed'); // it closed while a hook decided, and must not take over from the live connection
      return;
    }
    checkEntry(services.settings, host, session, stored);
    const { ledger } = host;
    const resumes = stored !== undefined && !packet.clean && stored.client.isPersistent;
    // before the decisions take effect: this throws if the client cannot be informed that it has the session
    const facts = { sessionPresent: resumes, isRetainAvailable: this.#isRetainAvailable(client, packet) };
    const connack = connackFor(client, packet, approval, facts);
    if (resumes) {
      const waits = () => isWaiting(session, connection);
      const judgement = judged?.session === stored ? judged : host.sourceReview.judge(stored, client, waits);
      if (!isThenable(judgement) && judgement?.isUndecided) {
        session.lifecycle.close('source_failed');
        return;
      }
      const later = isThenable(judgement) ? judgement : stored.log?.load()?.then(() => judgement);
      if (later !== undefined) {
        this.#after(later, connection, (known) => {
          if (isWaiting(session, connection)) this.#enter(session, connection, packet, approval, known);
        });
        return;
      }
      (judgement as Judgement | undefined)?.apply();
      if (!isWaiting(session, connection)) return; // a listener ended it
      if (host.sessions.get(client.clientId) !== stored) {
        this.#enter(session, connection, packet, approval); // a listener ended the session
        return;
      }
    }
    const promises = ledger === undefined ? 0 : ledger.promises;
    const welcome = { connack, sessionPresent: resumes, expiresAt: approval.expiresAt };
    const owner = resumes ? stored : session;
    let superseded: WillState | undefined;
    if (resumes) superseded = this.#resume(stored, session, connection);
    else this.#begin(session, stored);
    if (ledger === undefined || ticketSince(ledger, promises) === 0) {
      this.#serve(owner, connection, welcome, superseded);
      return;
    }
    // The same commit removes the will of the previous connection from the store and must contain the effects of its publication.
    if (superseded !== undefined) host.wills.publish(owner, superseded);
    if (isServed(owner, connection)) this.#serveCommitted(ledger, owner, connection, welcome);
  }

  #serveCommitted(ledger: Ledger, owner: Session, connection: Connection<Session>, welcome: Welcome): void {
    const serve = () => this.#serve(owner, connection, welcome, undefined);
    this.#after(ledger.committed(ledger.ticket), connection, serve, !welcome.sessionPresent);
  }

  /** Send CONNACK, and all that the client is to receive after it. @param superseded the will of the connection that was taken over */
  #serve(owner: Session, connection: Connection<Session>, welcome: Welcome, superseded: WillState | undefined): void {
    const host = this.#host;
    if (isServed(owner, connection)) {
      connection.reader.limitRates(this.#rates.of(owner.client.agreement.zone));
      this.#welcome(owner, connection, welcome);
      this.#waitForHooks(owner, connection);
    }
    if (superseded !== undefined) host.wills.publish(owner, superseded);
    if (!isServed(owner, connection)) return;
    host.subscribing.autoSubscribe(owner);
    owner.outlet.pump();
  }

  /**
   * Continue after a commit, the answers of sources or a read from the store. Until then, the connection is not read.
   * @param isNew the session is new. If the commit fails, it ends, so that the client does not find a session that was never acknowledged
   */
  #after<T>(awaited: Promise<T>, connection: Connection<Session>, run: (value: T) => void, isNew = false): void {
    connection.reader.pause(Pause.hook);
    awaited
      .then(
        (value) => this.#guard(connection.session, () => run(value)),
        (error: unknown) => {
          if ((error as Error & { code?: string }).code !== 'STORE_FAILED')
            this.#services.announcer.failed(error, 'reading a session from the store', connection.session.client);
          const { lifecycle, state } = connection.session;
          if (isNew && state === 'disconnected') lifecycle.end('discarded', 'store_failed');
          else lifecycle.close('store_failed', { end: isNew });
        }
      )
      .finally(() => resumeAfterHook(connection));
  }

  /** Start a new session. @param stored the previous session of the client id, which ends [MQTT-3.1.2-4] */
  #begin(session: Session, stored: Session | undefined): void {
    const services = this.#services;
    const host = this.#host;
    const { metrics, events } = services;
    if (stored !== undefined) {
      metrics.counts[Metric.sessionDiscarded]++;
      if (events.heard['session.discarded']) events.emit('session.discarded', { client: stored.client });
      if (stored.state === 'connected') {
        const why = `another connection with Clean Start, ${originOf(session.client)}`;
        services.reasons.add('taken_over', { clientId: stored.client.clientId, detail: why });
        stored.lifecycle.close('discarded', { end: true, why });
      } else stored.lifecycle.end('discarded', 'discarded');
    }
    host.sessions.add(session, services.clock.now());
    host.storedSessions?.begun(session);
    session.lifecycle.send('accepted');
    metrics.counts[Metric.sessionCreated]++;
    if (events.heard['session.created']) events.emit('session.created', { client: session.client });
  }

  /** Resume a stored session. @returns the will of the connection that was taken over */
  #resume(stored: Session, session: Session, connection: Connection<Session>): WillState | undefined {
    const { metrics, events } = this.#services;
    const { client, lifecycle } = stored;
    const takeover = new Takeover(stored, session);
    lifecycle.takenOverBy(takeover);
    if (stored.state === 'connected') {
      metrics.counts[Metric.sessionTakeovered]++;
      if (events.heard['session.takenover']) events.emit('session.takenover', { client });
    }
    const superseded = takeover.begin();
    session.lifecycle.send('handedOver');
    metrics.counts[Metric.sessionResumed]++;
    stored.log?.changed();
    this.#host.review.judge(stored, false);
    takeover.end();
    if (!connection.isClosed && events.heard['session.resumed']) events.emit('session.resumed', { client });
    return superseded;
  }

  /** Wait for a hook that still decides on a message of the previous connection, so that later messages do not overtake it [MQTT-4.6.0-5]. */
  #waitForHooks({ outlet }: Session, connection: Connection<Session>): void {
    const deciding = outlet.inflight?.deciding;
    if (deciding === undefined || connection.isClosed) return;
    connection.reader.pause(Pause.hook);
    deciding.then(() => resumeAfterHook(connection));
  }

  /** Send the CONNACK first, then the messages in flight, then all others [MQTT-3.2.0-1]. */
  #welcome(session: Session, connection: Connection<Session>, { connack, sessionPresent, expiresAt }: Welcome): void {
    const { metrics, events } = this.#services;
    const { client } = session;
    metrics.counts[Metric.clientConnack]++;
    if (events.heard['client.connack']) events.emit('client.connack', { client, reasonCode: 0, why: undefined });
    if (session.connection !== connection || connection.isClosed) return; // a listener ended it
    connection.writer.send(connack, Metric.packetsConnackSent);
    session.lifecycle.connackSent(expiresAt);
    metrics.counts[Metric.clientConnected]++;
    if (sessionPresent) session.outlet.inflight?.resend();
    this.#host.sessions.connected(session, sessionPresent);
  }

  /** Handle an AUTH packet of a connected client [MQTT-4.12.1-1]. */
  reauthenticate(session: Session, packet: AuthPacket): void {
    const { client, lifecycle } = session;
    const { authMethod } = client.agreement;
    const connection = session.connection as Connection<Session>;
    if (authMethod === undefined)
      throw new ProtocolError(ReasonCode.protocolError, 'AUTH: the CONNECT had no authentication method'); // [MQTT-4.12.0-7]
    if (packet.properties?.authenticationMethod !== authMethod) {
      throw new ProtocolError(ReasonCode.protocolError, 'AUTH: the authentication method differs from that of CONNECT');
    }
    const data = packet.properties.authenticationData;
    const current = lifecycle.decision as Authentication | undefined;
    if (packet.reasonCode === ReasonCode.continueAuthentication) {
      if (current === undefined || current.isWaiting)
        throw new ProtocolError(ReasonCode.protocolError, 'AUTH: there is no challenge to answer');
      current.receive(data);
      return;
    }
    if (current !== undefined)
      throw new ProtocolError(ReasonCode.protocolError, 'AUTH: a re-authentication is in progress');
    const isCurrent = () => lifecycle.decision === exchange && session.connection === connection;
    const exchange = new Authentication(session, this.#services.hooks, this.#host.access, undefined, true, {
      challenge: (challenge) => {
        if (isCurrent()) sendAuth(session, connection, ReasonCode.continueAuthentication, authMethod, challenge);
      },
      approved: (approval) => {
        if (!isCurrent()) return;
        lifecycle.decidedBy(undefined);
        entitle(this.#host.access, client, { isSuperuser: client.isSuperuser, clientData: client.data, ...approval });
        connection.reader.knownTopics?.forgetVerdicts();
        session.timers.authenticated(approval.expiresAt);
        sendAuth(session, connection, ReasonCode.success, authMethod, approval.data);
        this.#host.sourceReview.askAgain(client.clientId);
        this.#host.review.judge(session, true);
      },
      refused: (refusal) => {
        if (isCurrent()) lifecycle.close('reauthentication_failed', refusal); // [MQTT-4.12.1-2]
      },
      waiting: () => {} // other packets are processed during re-authentication [MQTT-4.12.1-1]
    });
    lifecycle.decidedBy(exchange);
    exchange.begin(data);
  }
}

function isWaiting(session: Session, connection: Connection<Session>): boolean {
  return session.state === 'idle' && session.connection === connection && !connection.isClosed;
}

function banOf({ banned }: AccessControl, client: SessionClient): Ban | undefined {
  return client.agreement.zone.enableBan ? banned.find(client) : undefined;
}

function bannedBy(ban: Ban): Partial<Refusal> {
  return { reasonCode: ReasonCode.banned, why: banText(ban) };
}

/** Give a client the user name that the hooks have set. @throws ProtocolError if it cannot be the client id */
function rename(client: SessionClient, username: string): void {
  const { agreement } = client;
  const { zone } = agreement;
  const clientId = usesUsername(zone, username) ? username : client.clientId;
  client.identified(agreement, clientId, username, client.mountpoint);
  checkClientId(clientId, zone);
  const template = client.transportInfo.mountpoint ?? zone.mountpoint;
  client.identified(agreement, clientId, username, mountpointOf(client, template));
}

/** Give a client the rights that its authentication has returned. @throws InvalidInput for rules that are not valid */
function entitle(
  access: AccessControl,
  client: SessionClient,
  { isSuperuser, rules, clientData }: Omit<Approval, 'allow'>
): void {
  const own = rules && access.rules.rulesFor(rules);
  client.entitled(isSuperuser === true, own, clientData); // truthy values such as 'false' grant no rights
}

/** Tell whether the connection still belongs to the session. Otherwise a listener of the app has ended it. */
function isServed(owner: Session, connection: Connection<Session>): boolean {
  return owner.connection === connection && !connection.isClosed;
}

function sendAuth(
  session: Session,
  connection: Connection<Session>,
  reasonCode: number,
  authenticationMethod: string,
  authenticationData: Buffer | undefined
): void {
  const packet = encodeAuth({ cmd: 'auth', reasonCode, properties: { authenticationMethod, authenticationData } });
  const { maxFrame } = session.client.agreement;
  if (packet.length <= maxFrame) connection.writer.send(packet, Metric.packetsAuthSent);
  else {
    const why = `the AUTH takes ${packet.length} bytes, but the client accepts at most ${maxFrame} (Maximum Packet Size)`;
    session.fail(new ProtocolError(ReasonCode.packetTooLarge, why)); // [MQTT-3.1.2-24]
  }
}

/** The client id of a session: the user name (option useUsernameAsClientid), that of the CONNECT, or a new one if it is empty [MQTT-3.1.3-6]. */
function clientIdOf(zone: Zone, username: string | undefined, packet: ConnectPacket, sessions: SessionIndex): string {
  if (usesUsername(zone, username)) return username;
  if (packet.clientId !== '') return packet.clientId;
  // MQTT 3.1.1 requires Clean Session with an empty client id; MQTT 3.1 does not allow an empty one.
  if (packet.protocolVersion === 3 || (packet.protocolVersion === 4 && !packet.clean)) return '';
  let name: string;
  do name = `auto-${newName()}`.slice(0, zone.maxClientidLen);
  while (sessions.get(name) !== undefined); // [MQTT-3.2.2-16]
  return name;
}

function usesUsername({ useUsernameAsClientid }: Zone, username: string | undefined): username is string {
  return useUsernameAsClientid && username !== undefined && username !== '';
}

/** @throws ProtocolError 0x85 */
function checkClientId(clientId: string, zone: Zone): void {
  const { maxClientidLen } = zone;
  if (clientId.startsWith(BRIDGE_PREFIX) && !isBridgeZone(zone)) {
    const text = `client ids that begin with "${BRIDGE_PREFIX}" belong to the bridges of the broker`;
    throw new ProtocolError(ReasonCode.clientIdentifierNotValid, text);
  }
  if (clientId === '') throw new ProtocolError(ReasonCode.clientIdentifierNotValid, 'the client id must not be empty');
  if (Buffer.byteLength(clientId) <= maxClientidLen) return;
  const why = `the client id is longer than ${maxClientidLen} bytes (option maxClientidLen)`;
  throw new ProtocolError(ReasonCode.clientIdentifierNotValid, why);
}

function newName(): string {
  let name = '';
  for (const byte of randomBytes(22)) name += LETTERS[byte % LETTERS.length];
  return name;
}

/**
 * The mount point with client id and user name inserted. A name that is not one level is refused, because its topics would be those of other
 * clients: with `t/%u`, the user "a/b" would have topics of the user "a". "undefined" stands for a client without a user name.
 */
function mountpointOf({ clientId, username }: SessionClient, template: string | undefined): string {
  if (template === undefined) return '';
  return template.replace(/%[cu]/g, (placeholder, at: number) => {
    const isClientId = placeholder === '%c';
    const name = isClientId ? clientId : (username ?? 'undefined');
    const fault = isClientId || username !== 'undefined' ? faultOfLevel(name, at === 0) : 'is reserved';
    if (fault === undefined) return name;
    throw new ProtocolError(
      isClientId ? ReasonCode.clientIdentifierNotValid : ReasonCode.badUserNameOrPassword,
      `the ${isClientId ? 'client id' : 'user name'} ${fault}, and is inserted into the mount point (option mountpoint)`
    );
  });
}

function checkWill(session: Session, packet: ConnectPacket, isRetainAvailable: boolean): void {
  const { will } = packet;
  if (will === undefined) return;
  const { zone } = session.client.agreement;
  if (will.qos > zone.maxQosAllowed)
    throw new ProtocolError(ReasonCode.qosNotSupported, `will QoS ${will.qos} is not supported (option maxQosAllowed)`); // [MQTT-3.2.2-12]
  if (will.retain && !isRetainAvailable)
    throw new ProtocolError(
      ReasonCode.retainNotSupported,
      'retained wills are not supported (option retainAvailable, feature retainer)'
    ); // [MQTT-3.2.2-13]
  const fault = checkTopicName(will.topic, { maxLevels: zone.maxTopicLevels });
  if (fault !== undefined) throw new ProtocolError(ReasonCode.topicNameInvalid, `will: ${fault}`);
  if (zone.payloadFormatCheck && will.properties?.payloadFormatIndicator === 1 && !isUtf8(will.payload))
    throw new ProtocolError(
      ReasonCode.payloadFormatInvalid,
      'the will payload is declared as UTF-8 but is not valid UTF-8'
    );
}

/** Set the keep alive, the session expiry interval and the will of a session from the CONNECT and the limits of the zone. */
function agree(session: Session, packet: ConnectPacket): void {
  const { client, lifecycle } = session;
  const { zone } = client.agreement;
  const { properties = {}, will, protocolVersion } = packet;
  const keepalive = protocolVersion === 5 ? keepaliveOf(zone, packet.keepalive) : packet.keepalive; // [MQTT-3.2.2-22]
  if (protocolVersion === 5) {
    const asked = properties.sessionExpiryInterval ?? 0;
    client.expireAfter(Math.min(asked === NEVER ? Infinity : asked, zone.maxSessionExpiryInterval), keepalive);
  } else client.expireAfter(packet.clean ? 0 : zone.sessionExpiryInterval, keepalive);
  lifecycle.agreeOnWill(undefined);
  if (will === undefined) return;
  const { willDelayInterval = 0, ...rest } = will.properties ?? {};
  const { maxMessageExpiryInterval: longest } = zone;
  if (longest !== Infinity) rest.messageExpiryInterval = Math.min(rest.messageExpiryInterval ?? longest, longest);
  const topic = mountedName(session.ports.rewrites.apply(will.topic, 'publish'), client.mountpoint);
  if (topic === undefined)
    throw new ProtocolError(ReasonCode.topicNameInvalid, 'the will topic is too long for its mount point');
  const message = { topic, payload: will.payload, qos: will.qos, retain: will.retain, properties: rest };
  lifecycle.agreeOnWill(new Will({ message, delayMs: willDelayInterval * 1000 }));
}

/** The keep alive of an MQTT 5.0 client. If it differs from the requested one, it is sent as Server Keep Alive [MQTT-3.1.2-21]. */
function keepaliveOf({ serverKeepalive, maxKeepalive }: Zone, asked: number): number {
  const keepalive = serverKeepalive > 0 ? serverKeepalive : asked;
  const isTooLong = maxKeepalive > 0 && (keepalive === 0 || keepalive > maxKeepalive);
  return isTooLong ? maxKeepalive : keepalive;
}

/** The bytes of a successful CONNACK. Informative properties are omitted if they do not fit into the packet size [MQTT-3.2.2-19, -20]. */
function connackFor(
  client: SessionClient,
  packet: ConnectPacket,
  approval: Approval,
  { sessionPresent, isRetainAvailable }: { readonly sessionPresent: boolean; readonly isRetainAvailable: boolean }
): Buffer {
  const { protocolVersion, maxFrame } = client.agreement;
  const connack: ConnackPacket = { cmd: 'connack', sessionPresent, reasonCode: ReasonCode.success };
  if (protocolVersion !== 5) return encodeConnack(connack, protocolVersion);
  connack.properties = connackProperties(client, packet, approval);
  if (!isRetainAvailable) connack.properties.retainAvailable = 0;
  const whole = encodeConnack(connack, 5);
  if (whole.length <= maxFrame) return whole;
  connack.properties = { ...connack.properties, userProperties: undefined, responseInformation: undefined };
  const bare = encodeConnack(connack, 5);
  if (bare.length <= maxFrame) return bare;
  const why = `the CONNACK takes ${bare.length} bytes, but the client accepts at most ${maxFrame} (Maximum Packet Size)`;
  throw new ProtocolError(ReasonCode.packetTooLarge, why); // [MQTT-3.1.2-24]
}

function connackProperties(client: SessionClient, packet: ConnectPacket, approval: Approval): Properties {
  const { agreement } = client;
  const { zone } = agreement;
  const { properties: asked = {} } = packet;
  const expiry = client.sessionExpiry === Infinity ? NEVER : client.sessionExpiry;
  const properties: Properties = {};
  if (expiry !== (asked.sessionExpiryInterval ?? 0)) properties.sessionExpiryInterval = expiry;
  if (zone.receiveMaximum < 65_535) properties.receiveMaximum = zone.receiveMaximum;
  if (zone.maxQosAllowed < 2) properties.maximumQoS = zone.maxQosAllowed as 0 | 1; // [MQTT-3.2.2-9]
  properties.maximumPacketSize = zone.maxPacketSize;
  if (packet.clientId !== client.clientId && packet.clientId === '')
    properties.assignedClientIdentifier = client.clientId; // [MQTT-3.1.3-7]
  if (zone.maxTopicAlias > 0) properties.topicAliasMaximum = zone.maxTopicAlias;
  if (!zone.wildcardSubscription) properties.wildcardSubscriptionAvailable = 0;
  if (!zone.subscriptionIdentifiers) properties.subscriptionIdentifiersAvailable = 0;
  if (!zone.sharedSubscription) properties.sharedSubscriptionAvailable = 0;
  if (client.keepalive !== packet.keepalive) properties.serverKeepAlive = client.keepalive; // [MQTT-3.1.2-21]
  if (asked.requestResponseInformation === 1 && zone.responseInformation !== undefined) {
    properties.responseInformation = zone.responseInformation.replace(/%[cu]/g, (name) =>
      name === '%c' ? client.clientId : (client.username ?? '')
    );
  }
  if (agreement.authMethod !== undefined) {
    properties.authenticationMethod = agreement.authMethod; // [MQTT-4.12.0-5]
    if (approval.data !== undefined) properties.authenticationData = approval.data;
  }
  if (approval.userProperties !== undefined) properties.userProperties = approval.userProperties;
  return properties;
}
