import { asError, StateError } from '../base/errors.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import type { AuthPacket } from '../packets/types.ts';
import type { ClientConnection } from './connection.ts';
import type { AuthAnswer, ClientOptions } from './options.ts';
import type { Pending } from './pending.ts';

/** Enhanced authentication of a client, while it connects and later (MQTT 5.0, section 4.12). */
export class ClientAuthentication {
  readonly #connection: ClientConnection;
  readonly #onAuth: ClientOptions['onAuth'];
  readonly #method: string | undefined;
  #pending: Pending<void> | undefined;

  constructor(connection: ClientConnection, { onAuth, properties }: ClientOptions) {
    this.#connection = connection;
    this.#onAuth = onAuth;
    this.#method = properties?.authenticationMethod;
  }

  /** True if a re-authentication is in progress. */
  get isAwaited(): boolean {
    return this.#pending !== undefined;
  }

  /** Start a re-authentication. @throws StateError REAUTHENTICATION_UNDER_WAY */
  repeat(answer: AuthAnswer, pending: Pending<void>): void {
    if (this.#pending !== undefined) {
      throw new StateError(
        'REAUTHENTICATION_UNDER_WAY',
        'a re-authentication is already in progress; wait until it has ended'
      );
    }
    this.#pending = pending;
    this.#send(ReasonCode.reAuthenticate, answer);
  }

  /** Process an AUTH: the end of a re-authentication, or a challenge. */
  receive({ reasonCode, properties = {} }: AuthPacket): void {
    if (reasonCode === ReasonCode.success) {
      this.#pending?.resolve();
      this.#pending = undefined;
      return;
    }
    const { authenticationMethod: method, authenticationData: data } = properties;
    const answer = async () => this.#onAuth?.({ reasonCode, method, data, properties });
    answer()
      .then((reply) => this.#connection.isClosed || this.#send(ReasonCode.continueAuthentication, reply))
      .catch((error) => this.#connection.destroy(asError(error)));
  }

  /** Reject a re-authentication, because the connection is closed. */
  close(): void {
    this.#pending?.reject(this.#connection.closedError());
  }

  #send(reasonCode: number, answer: AuthAnswer): void {
    const isData = answer instanceof Uint8Array || typeof answer !== 'object';
    const given = isData ? { authenticationData: answer as Buffer | undefined } : answer;
    this.#connection.send({ cmd: 'auth', reasonCode, properties: { ...given, authenticationMethod: this.#method } });
  }
}
