import { type Broker, InvalidInput, StateError } from '../../../lib/index.ts';
import type { WebhookOptions } from '../../webhook/index.ts';
import type { Shell } from '../command.ts';
import { filledOptions } from '../config-values.ts';

/** A webhook in the settings. */
export interface ConfiguredWebhook {
  /** The place of its settings, for messages: `FILE: webhooks[0]`. */
  readonly place: string;
  readonly options: Readonly<Record<string, unknown>>;
}

/** The settings of webhooks. */
interface WebhookSettings {
  /** The value of `--webhook-url`. */
  readonly url: string | undefined;
  /** The list `webhooks` of the config file. */
  readonly list: unknown;
  /** The documented settings `web.hook...` of the config file. */
  readonly documented: Readonly<Record<string, unknown>> | undefined;
  readonly config: string | undefined;
}

/**
 * The webhooks of the settings: the one from `--webhook-url` and the documented settings, then those in the list.
 * @throws InvalidInput OPTION_INVALID, OPTION_MISSING, whose message names the place
 */
export async function configuredWebhooks(settings: WebhookSettings, shell: Shell): Promise<ConfiguredWebhook[]> {
  const { url, list = [], documented, config } = settings;
  const field = `${config}: webhooks`;
  if (!Array.isArray(list)) throw new InvalidInput('OPTION_INVALID', field, 'a list of webhooks', list);
  const webhooks: ConfiguredWebhook[] = [];
  if (url !== undefined || documented !== undefined) {
    const place = documented === undefined ? '--webhook-url' : `${config}: web.hook`;
    const options = { ...documented, ...(url === undefined ? {} : { url }) };
    if (url === undefined && !('web.hook.api.url' in options))
      throw new InvalidInput(
        'OPTION_MISSING',
        'webhookUrl',
        'a URL',
        undefined,
        `${place}: these settings have no effect without web.hook.api.url or --webhook-url`
      );
    if (url !== undefined) delete (options as Record<string, unknown>)['web.hook.api.url'];
    webhooks.push({ place, options });
  }
  for (const [at, entry] of list.entries()) {
    const place = `${field}[${at}]`;
    if (typeof entry !== 'object' || entry === null || Array.isArray(entry))
      throw new InvalidInput('OPTION_INVALID', place, 'an object with "url"', entry);
    webhooks.push({ place, options: (await filledOptions(entry, place, shell)).filled });
  }
  return webhooks;
}

/**
 * Start the webhooks.
 * @throws InvalidInput OPTION_INVALID, whose message names the place
 */
export async function beginWebhooks(broker: Broker, webhooks: readonly ConfiguredWebhook[]): Promise<void> {
  if (webhooks.length === 0) return;
  const { webhook } = await import('../../webhook/index.ts');
  for (const { place, options } of webhooks) {
    try {
      webhook(broker, options as WebhookOptions);
    } catch (error) {
      if (error instanceof StateError)
        throw new InvalidInput(
          'OPTION_INVALID',
          `${place}.name`,
          'a name that no other webhook has',
          options.name ?? 'default'
        );
      if (!(error instanceof InvalidInput)) throw error;
      const { code, expected, got, message } = error;
      const at = error.field.replace(/^webhook\./, '');
      throw new InvalidInput(code, `${place}.${at}`, expected, got, `${place}: ${message.replace(/^webhook\./, '')}`);
    }
  }
}
