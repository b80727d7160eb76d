import { BrokerError, type Client, type ClientOptions, type Clock, connectClient } from '../../../lib/index.ts';
import { dial } from '../../outgoing/index.ts';
import type { MqttSourceSettings } from './settings.ts';

/** Time limit for connecting, including the acknowledgement of the subscription. */
const CONNECT_MS = 10_000;

/**
 * Connect to the server of a source.
 * @param begin further steps within the same time limit, such as subscribing
 * @throws BrokerError SOURCE_DOWN after 10 seconds; the reason of the controller; Refused CONNECT_REFUSED; errors of
 * `begin`
 */
export async function connectTo(
  settings: MqttSourceSettings,
  options: ClientOptions & { readonly clock: Clock },
  controller: AbortController,
  begin: (client: Client) => Promise<unknown>
): Promise<void> {
  const { dial: where } = settings;
  const { clock } = options;
  const { signal } = controller;
  const late = new BrokerError('SOURCE_DOWN', `no connection to ${where.url.host} within ${CONNECT_MS} ms`);
  const timer = clock.setTimeout(() => controller.abort(late), CONNECT_MS);
  let client: Client | undefined;
  try {
    const stream = await dial(where, signal);
    client = await connectClient(stream, { ...settings.client, ...options, signal });
    await begin(client);
  } catch (error) {
    client?.destroy();
    throw signal.aborted ? signal.reason : error;
  } finally {
    clock.clearTimeout(timer);
  }
}
