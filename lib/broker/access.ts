import { InvalidInput } from '../base/errors.ts';
import type { Connections } from './connections.ts';

/** The parts of the broker that `Access` uses. */
interface AccessHost {
  readonly connections: Connections;
}

/** What clients may do: `broker.access`. */
export class Access {
  readonly #host: AccessHost;

  /** @internal */
  constructor(host: AccessHost) {
    this.#host = host;
  }

  /**
   * Forget which topics clients may publish to, because the app's own policy has changed. The authorizePublish hooks registered with
   * `cache: 'route'` are asked again. Messages that the broker has already read are not affected.
   * @param clientId the client that the change concerns; default: all clients
   * @throws InvalidInput CLIENT_ID_INVALID if `clientId` is not a string
   */
  invalidate(clientId?: string): void {
    if (clientId !== undefined && typeof clientId !== 'string')
      throw new InvalidInput('CLIENT_ID_INVALID', 'clientId', 'a string', clientId);
    for (const connection of this.#host.connections.all)
      if (clientId === undefined || connection.session.client.clientId === clientId) connection.reader.forgetVerdicts();
  }
}
