import type { ListenerHandle } from '../../lib/adapter.ts';
import type { Broker, Setting } from '../../lib/index.ts';
import { Fault } from '../rest/index.ts';

/** Values with which the options below admit no client. */
const OFF: readonly unknown[] = [false, 'false', 'off', '0'];
/** Options of zones with which anyone may connect. */
const ADMITTING: readonly string[] = ['allowAnonymous', 'bypassAuthPlugins'];

/**
 * Refuse changes that would let anyone connect from other machines; the start of `embermq serve` refuses the same
 * settings. The options of the broker may allow this, but a request may not.
 * @param changes options and their new values; unknown keys are left to the change itself
 * @throws Fault wrongParameter
 */
export function checkExposure(broker: Broker, changes: Iterable<readonly [key: unknown, value: unknown]>): void {
  for (const [key, value] of changes) {
    const setting = settingOf(broker, key);
    if (setting === undefined || !ADMITTING.includes(setting.name) || OFF.includes(value)) continue;
    const listener = broker.listeners().find((one) => isOpenedBy(setting, broker, one));
    if (listener === undefined) continue;
    const { host, zone } = listener.exposure as NonNullable<ListenerHandle['exposure']>;
    throw new Fault(
      'wrongParameter',
      `${setting.key}: other machines can reach ${host} (listener ${listener.name}, zone ${zone}), so anyone could connect: bind a loopback address, ` +
        'or allow it where the broker is started (--allow-anonymous, or allowAnonymous: true in the config file or app)',
      'value'
    );
  }
}

function settingOf({ configuration }: Broker, key: unknown): Setting | undefined {
  try {
    return typeof key === 'string' ? configuration.get(key) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * True if a change of an option opens a listener to other machines although the options of the broker keep it closed.
 */
function isOpenedBy({ zone }: Setting, broker: Broker, { exposure, isOpen = true }: ListenerHandle): boolean {
  if (exposure === undefined || !isOpen || (zone !== '' && zone !== exposure.zone)) return false;
  return !isOpenByOption(broker, exposure.zone);
}

/** True if the options of the broker, without values set at run time, admit anonymous clients in a zone. */
function isOpenByOption(broker: Broker, zone: string): boolean {
  const name = 'allowAnonymous';
  const { value, source } = settingOf(broker, `zone.${zone}.${name}`) ?? {};
  if (source !== 'override') return source === 'option' && value === true;
  const overrides = broker.configuration.overrides().filter((one) => one.name === name);
  const own = overrides.find((one) => one.zone === zone) ?? overrides.find((one) => one.zone === '');
  return own?.replacedSource === 'option' && own.replaces === true;
}
