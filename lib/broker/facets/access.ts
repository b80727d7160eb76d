import type { SourceState } from '../../access/access-control.ts';
import type { AclRecords } from '../../access/acl-records.ts';
import type { BannedClients } from '../../access/banned.ts';
import type { CredentialRecords } from '../../access/credential-records.ts';
import type { AuthSource } from '../../access/source.ts';
import { InvalidInput } from '../../base/errors.ts';
import type { VerdictRecord } from '../../connection/verdicts.ts';
import type { Engine } from '../engine.ts';
import type { AccessAnswer, AccessQuestion } from '../rights/access-explainer.ts';

/**
 * Decides which clients may connect and what they may do: `broker.access`.
 *
 * The records and rules here exist in every broker and are empty at first. They are persisted with the state of the broker.
 */
export class Access<Data = unknown> {
  readonly #engine: Engine;

  /** @internal */
  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Client ids with passwords. */
  get clientIds(): CredentialRecords {
    return this.#engine.access.clientIds;
  }

  /** User names with passwords. */
  get usernames(): CredentialRecords {
    return this.#engine.access.usernames;
  }

  /** User names with passwords that can be superusers (`auth_user` of the management interface). */
  get logins(): CredentialRecords {
    return this.#engine.access.logins;
  }

  /** Access rules. */
  get acl(): AclRecords {
    return this.#engine.access.acl;
  }

  /** The clients that may not connect. */
  get banned(): BannedClients {
    return this.#engine.access.banned;
  }

  /** The names of the sources, in the order in which they are asked. */
  get sources(): readonly string[] {
    return this.#engine.access.sources;
  }

  /** The records of the broker (`records`), and the sources in the order in which they are asked, with whether each is started. */
  list(): SourceState[] {
    return this.#engine.access.list();
  }

  /**
   * Stop a source: it is closed, and not asked until `start`. Connected clients stay connected. The state is persisted by the name of the
   * source.
   *
   * A stopped source still counts as one that decides. So unknown clients are refused, as if the source did not know them, unless
   * `allowAnonymous` is true; and operations that no other rule allows are refused, unless `aclNomatch` is `allow`. The rules that the
   * source has given to the broker do not apply while it is stopped, including those that deny.
   * @param name `records`: the client ids, user names and logins with passwords of the broker
   * @returns false if it is stopped already; otherwise true, when this is persisted and effective
   * @throws NotFound SOURCE_UNKNOWN with a suggestion; what `close` of the source throws; StateError BROKER_NOT_STARTED (with a store),
   * BrokerError STORE_FAILED: nothing has changed
   */
  stop(name: string): Promise<boolean> {
    return this.#engine.access.switch(name, false);
  }

  /**
   * Start a source that was stopped. It is asked after the others from then on.
   * @returns false if it is started already; otherwise true, when this is persisted and effective
   * @throws as `stop`; what `open` of the source throws: it stays stopped
   */
  start(name: string): Promise<boolean> {
    return this.#engine.access.switch(name, true);
  }

  /**
   * Add a source of authentication or of access rules, which is asked after the others.
   * @throws InvalidInput SOURCE_INVALID, SOURCE_NAME_IN_USE; if the broker is started, what `open` of the source throws
   */
  create(source: AuthSource<Data>): Promise<void> {
    return this.#engine.access.add(source as AuthSource);
  }

  /** @deprecated Use `create`. */
  add(source: AuthSource<Data>): Promise<void> {
    return this.create(source);
  }

  /** Remove a source. Connected clients stay connected. @throws NotFound SOURCE_UNKNOWN; what `close` of the source throws */
  delete(name: string): Promise<void> {
    return this.#engine.access.remove(name);
  }

  /** @deprecated Use `delete`. */
  remove(name: string): Promise<void> {
    return this.delete(name);
  }

  /**
   * Load a source again: it reads its files, and is asked after the others from then on.
   * @throws NotFound SOURCE_UNKNOWN; what `reload` of the source throws; then the previous content stays in use
   */
  reload(name: string): Promise<void> {
    return this.#engine.access.reload(name);
  }

  /**
   * Tell whether a client may publish to a topic name or subscribe to a topic filter, and what decides about it. Nothing is cached or
   * counted. `publish` hooks, which see the message itself, are not asked; a client without a session is checked without a mount point, and
   * without the results of its authentication, except the superuser flag of its records.
   * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, TOPIC_NAME_INVALID, TOPIC_FILTER_INVALID
   */
  explain(question: AccessQuestion): Promise<AccessAnswer> {
    return this.#engine.explainer.explain(question);
  }

  /**
   * The decisions about topics that the connection of a client has cached: its ACL cache.
   * @returns an empty list if the client is not connected
   */
  cache(clientId: string): VerdictRecord[] {
    return this.#engine.explainer.kept(clientId);
  }

  /**
   * Empty the ACL caches: discard the decisions about the rights of clients, because the policy of the app has changed. The
   * authorizePublish hooks registered with `cache: 'route'` are asked again, and sources are asked again about the subscriptions that they
   * have allowed. Messages that the broker has already read are not affected.
   * @param clientId the client that the change concerns; default: all clients
   * @throws InvalidInput CLIENT_ID_INVALID if `clientId` is not a string
   */
  invalidate(clientId?: string): void {
    if (clientId !== undefined && typeof clientId !== 'string')
      throw new InvalidInput('CLIENT_ID_INVALID', 'clientId', 'a string', clientId);
    this.#engine.answersChanged(clientId);
  }
}
