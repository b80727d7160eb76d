// Reading the settings finds most errors; serve finds the others when it creates the broker, its listeners, webhooks,
// bridges and HTTP interfaces. So the doctor creates them too. Nothing is started, so nothing is opened or written.

import { readdir } from 'node:fs/promises';
import { BrokerError } from '../../../lib/index.ts';
import { listen, type Transport } from '../../net/index.ts';
import type { Shell } from '../command.ts';
import { beginBridges } from '../serve/bridges.ts';
import { prepare, servedHttp } from '../serve/serve.ts';
import type { ServeSettings } from '../serve/settings.ts';
import { beginWebhooks } from '../serve/webhooks.ts';
import type { ConfigurationProblem } from './configuration.ts';

/** The errors with which `serve` would end after it has read its settings. */
export interface Construction {
  readonly problems: readonly ConfigurationProblem[];
  /** Listeners whose certificates, keys or ciphers cannot be used, with the error. */
  readonly unusable: ReadonlyMap<Transport, string>;
}

/** Create what `serve` creates before it opens anything. */
export async function construct(settings: ServeSettings, shell: Shell): Promise<Construction> {
  const problems: ConfigurationProblem[] = [];
  const unusable = new Map<Transport, string>();
  const attempt = async (
    create: () => unknown,
    fail = ({ code, message: text }: BrokerError) => {
      problems.push({ code, text });
    }
  ) => {
    try {
      await create();
    } catch (error) {
      if (!(error instanceof BrokerError)) throw error;
      fail(error);
    }
  };
  await attempt(async () => {
    const { broker } = await prepare(await inUsableFolder(settings), shell);
    await attempt(() => servedHttp(broker, settings, { plugins: undefined }));
    for (const { transport } of settings.listeners)
      await attempt(async () => {
        const listening = listen(broker, transport);
        if (transport.tls !== undefined)
          await attempt(
            () => listening.reload(),
            ({ message }) => {
              unusable.set(transport, message);
            }
          );
      });
    for (const webhook of settings.webhooks) await attempt(() => beginWebhooks(broker, [webhook]));
    for (const bridge of settings.bridges) await attempt(() => beginBridges(broker, [bridge]));
  });
  return { problems, unusable };
}

/** The settings, without their data folder if it cannot be read: a check of the folder reports that. */
async function inUsableFolder(settings: ServeSettings): Promise<ServeSettings> {
  const { memory, dataDir } = settings.own;
  const isUsable =
    memory ||
    (await readdir(dataDir).then(
      () => true,
      ({ code }: NodeJS.ErrnoException) => code === 'ENOENT'
    ));
  return isUsable ? settings : { ...settings, own: { ...settings.own, memory: true } };
}
