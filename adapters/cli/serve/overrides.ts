import { optionName, settingText, ZONE_OPTIONS } from '../../../lib/adapter.ts';
import type { Broker } from '../../../lib/index.ts';
import { log, type Shell } from '../command.ts';
import type { Layer } from '../layers.ts';
import { zoneOf } from './exposure.ts';
import type { PlannedListener } from './settings.ts';

/**
 * Returns the place where an option of the broker is given: `--max-inflight`, `EMBERMQ_MAX_INFLIGHT`,
 * `embermq.json: max_inflight`. Also used for `managementApi` (`optionSource`).
 * @param name the name in camelCase
 * @param zone undefined: for the broker or for all zones
 */
export type OptionPlace = (name: string, zone?: string) => string | undefined;

/**
 * Create an `OptionPlace`.
 * @param layers the sources of options; later ones override earlier ones
 */
export function optionPlaceIn(layers: readonly Layer[]): OptionPlace {
  const last = (name: string) => layers.findLast(({ given }) => given[name] !== undefined);
  return (name, zone) => {
    const layer = zone === undefined ? undefined : last('zones');
    const zones = layer?.given.zones as Readonly<Record<string, object | undefined>> | undefined;
    const key = Object.keys(zones?.[zone ?? ''] ?? {}).find((one) => optionName(ZONE_OPTIONS, one) === name);
    if (layer !== undefined && key !== undefined) return `${layer.spelled('zones')}.${zone}.${key}`;
    return last(name)?.spelled(name);
  };
}

/**
 * Warn if anyone can connect from other machines because of an option that was set over REST. Unlike such an option of
 * the command, this does not prevent the start: it was set on purpose, and only a running broker can reset it.
 */
export function warnOfOverrides({ configuration }: Broker, listeners: readonly PlannedListener[], shell: Shell): void {
  const told = new Set<string>();
  for (const { transport, http } of listeners) {
    const host = transport.exposedHost;
    if (http !== undefined || host === undefined) continue;
    const zone = zoneOf(transport);
    const allowed = configuration.get(`zone.${zone}.allow_anonymous`);
    if (allowed.value === true && allowed.source === 'option') continue; // explicitly allowed
    for (const name of ['allowAnonymous', 'bypassAuthPlugins']) {
      const { key, value, source } = configuration.get(`zone.${zone}.${name}`);
      const overrides = configuration.overrides().filter((one) => one.name === name);
      const override = overrides.find((one) => one.key === key) ?? overrides.find((one) => one.zone === '');
      if (value !== true || source !== 'override' || override === undefined || told.has(override.key)) continue;
      if (override.replacedSource === 'option' && override.replaces === true) continue;
      told.add(override.key);
      const remedy = `embermq ctl config reset ${override.key}`;
      log(
        shell,
        `warning: ANYONE CAN CONNECT from other machines at ${host}: ${override.key} = true was set over REST; ${remedy}`
      );
    }
  }
}

/**
 * Write a line for each option that was set over REST, and for each source that was stopped: they override flags,
 * environment and file.
 */
export function reportOverrides({ configuration, access }: Broker, shell: Shell, placeOf: OptionPlace): void {
  for (const { key, name, zone, value, replaces, replacedSource } of configuration.overrides()) {
    const { kind, unit } = configuration.get(key);
    const text = (one: unknown) => settingText({ value: one, kind, unit }) || 'none';
    const place = replacedSource === 'option' ? placeOf(name, zone || undefined) : undefined;
    const replaced = `${place ?? 'the default'} ${text(replaces)}`;
    log(shell, `${key} = ${text(value)}, set over REST, overrides ${replaced}; embermq ctl config reset ${key}`);
  }
  for (const { name, isStarted } of access.list())
    if (!isStarted)
      log(shell, `the source ${name} is stopped, which was done over REST; it is not asked until it is loaded again`);
}
