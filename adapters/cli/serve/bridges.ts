import { type Broker, InvalidInput, StateError } from '../../../lib/index.ts';
import type { BridgeOptions } from '../../bridge/index.ts';
import type { Shell } from '../command.ts';
import { filledOptions } from '../config-values.ts';

/** A bridge in the settings. */
export interface ConfiguredBridge {
  /** The place of its settings, for messages: `FILE: bridges[0]`. */
  readonly place: string;
  readonly options: Readonly<Record<string, unknown>>;
}

/**
 * The bridges of the list `bridges` of the config file.
 * @throws InvalidInput OPTION_INVALID, whose message names the place
 */
export async function configuredBridges(
  list: unknown,
  config: string | undefined,
  shell: Shell
): Promise<ConfiguredBridge[]> {
  const field = `${config}: bridges`;
  if (list === undefined) return [];
  if (!Array.isArray(list)) throw new InvalidInput('OPTION_INVALID', field, 'a list of bridges', list);
  const bridges: ConfiguredBridge[] = [];
  for (const [at, entry] of list.entries()) {
    const place = `${field}[${at}]`;
    if (typeof entry !== 'object' || entry === null || Array.isArray(entry))
      throw new InvalidInput('OPTION_INVALID', place, 'an object with "url"', entry);
    bridges.push({ place, options: (await filledOptions(entry, place, shell)).filled });
  }
  return bridges;
}

/**
 * Start the bridges. They connect when the broker has started.
 * @throws InvalidInput OPTION_INVALID, whose message names the place
 */
export async function beginBridges(broker: Broker, bridges: readonly ConfiguredBridge[]): Promise<void> {
  if (bridges.length === 0) return;
  const { bridge } = await import('../../bridge/index.ts');
  for (const { place, options } of bridges) {
    try {
      bridge(broker, options as unknown as BridgeOptions);
    } catch (error) {
      if (error instanceof StateError)
        throw new InvalidInput(
          'OPTION_INVALID',
          `${place}.name`,
          'a name that no other bridge has',
          options.name ?? 'default'
        );
      if (!(error instanceof InvalidInput)) throw error;
      const { code, expected, got, message } = error;
      const at = error.field.replace(/^bridge\./, '');
      throw new InvalidInput(code, `${place}.${at}`, expected, got, `${place}: ${message.replace(/^bridge\./, '')}`);
    }
  }
}
