// A value has three layers: default, option of `createBroker`, override. Only overrides change, in a table of the
// store. Settings and zones are always computed again from all layers (`#use`), so a failed commit is undone by
// computing them from the table as it is then. Parts of the broker read `settings` when they need a value, or are
// informed by `apply`. A zone that has changed becomes a new object for later connections; options that take effect
// at once are also assigned in the earlier objects, which connected clients keep.
//
// The overrides of the store are applied before the rest of its content is read, because they change its limits. An
// override that is not valid is reported and ignored, so that no stored value keeps the broker from starting.

import { InvalidInput, StateError } from '../../base/errors.ts';
import { type Field, type FieldType, readValue } from '../../base/fields.ts';
import type { Zone } from '../../records/zone.ts';
import type { TableEntry } from '../../store/table-record.ts';
import { checkWatermarks, settingsOf, zoneDefaults, zonesOf } from './option-reading.ts';
import { type BrokerSettings, type OptionLayer, type Settings, WATERMARKS } from './options.ts';
import { allPlaces, findPlace, placeOf, type SettingPlace } from './setting-keys.ts';
import type { Table } from './tables.ts';

/** The table that keeps the overrides. */
export const CONFIGURATION_TABLE = '$configuration';

/** One option with its current value, as `broker.configuration.list` returns it. */
export interface Setting {
  /** The documented spelling of its name: `broker.sys_interval`, `zone.external.max_inflight`. */
  readonly key: string;
  /** The name in camelCase, as the options of `createBroker` have it. */
  readonly name: string;
  /** The zone; `''`: the value for all zones without one for them alone; undefined: not an option of zones. */
  readonly zone: string | undefined;
  /** The current value: numbers in `unit`. undefined: it has no value. */
  readonly value: unknown;
  /** The value without options and overrides. */
  readonly default: unknown;
  /** The type of the option. */
  readonly kind: Exclude<FieldType, 'string'> | 'text';
  /** The unit of a number, such as `ms` or `bytes`; undefined if it has none. */
  readonly unit: Field['unit'];
  /** The permitted values of the type `choice`; undefined for other types. */
  readonly choices: readonly string[] | undefined;
  /** Description of the option. */
  readonly about: string;
  /** The source of the value: an option of `createBroker`, or an override, which was set at run time. */
  readonly source: 'default' | 'option' | 'override';
  /** Time at which a change takes effect. `restart`: it can only be changed by the options of `createBroker`, not at run time. */
  readonly takesEffect: 'now' | 'next connection' | 'restart';
}

/** A value that was set at run time. It takes precedence over the options. */
export interface Override extends Pick<Setting, 'key' | 'name' | 'zone' | 'value'> {
  /** The value that `reset` would restore. */
  readonly replaces: unknown;
  /** The source of that value. */
  readonly replacedSource: 'default' | 'option';
  /** Time at which it was set, in wall-clock milliseconds. */
  readonly setAt: number;
}

/** An override in the table. */
interface StoredOverride {
  /** The value as `set` accepts it; null: no value. */
  readonly value: unknown;
  readonly setAt: number;
}

/** The part of the broker that `Configuration` uses. */
interface ConfigurationHost {
  readonly settings: Settings;
  readonly table: () => Table<unknown>;
  now(): number;
  /** Apply a changed option of the broker. Its value in the settings has changed. */
  apply(name: string): void;
  /** Called when options of zones have changed. */
  zonesChanged(): void;
  /** Called when an option was changed, or its override removed, to notify listeners. */
  changed(key: string): void;
  failed(error: unknown, during: string): void;
}

/** The overrides by key, as a layer and for people. */
interface Overrides {
  readonly layer: OptionLayer;
  readonly entries: readonly { readonly place: SettingPlace; readonly value: unknown; readonly setAt: number }[];
}

/** The places of the values of a new setting, in order of precedence. */
interface SettingPlaces {
  readonly source: Setting['source'];
  readonly value: unknown;
}

/**
 * The options of the broker, and changing them at run time: `broker.configuration`.
 *
 * A value that is set here is an override: it takes precedence over the option of `createBroker` with the same key, and is persisted with
 * the state of the broker, so that it applies again after the next start, until `reset` removes it. Options of zones take effect for
 * connections that are accepted from then on; connected clients keep what was agreed when they connected.
 */
export class Configuration {
  readonly #host: ConfigurationHost;
  /** Earlier values of zones, which connected clients may still have. */
  #earlier: WeakRef<Zone>[] = [];
  #overrides: Overrides;

  /** @internal */
  constructor(host: ConfigurationHost) {
    this.#host = host;
    this.#overrides = this.#read([]);
  }

  /** All options with their current values: those of the broker, then those of zones, for all zones and for each one. */
  list(): Setting[] {
    return allPlaces(this.#zoneNames()).map((place) => this.#settingOf(place));
  }

  /** One option. @param key any accepted spelling @throws InvalidInput OPTION_UNKNOWN with the most similar name, ZONE_UNKNOWN */
  get(key: string): Setting {
    return this.#settingOf(findPlace(key, this.#zoneNames()));
  }

  /** The values that were set at run time, by key. */
  overrides(): Override[] {
    return this.#overrides.entries.map(({ place, value, setAt }) => {
      const { source, value: replaces } = this.#sourceOf(place, NO_OVERRIDES);
      const { key, name, zone } = place;
      return { key, name, zone, value, replaces, replacedSource: source as 'default' | 'option', setAt };
    });
  }

  /** The overrides as `set` accepts them: for `exportConfiguration`. @internal */
  exported(): { readonly key: string; readonly value: unknown }[] {
    return this.#overrides.entries.map(({ place, value }) => ({ key: place.key, value: storedValue(value) }));
  }

  /** Check a value without changing anything. @throws as `set` throws InvalidInput and OPTION_FIXED @internal */
  check(key: string, value: unknown): void {
    const { row } = this.#changeable(key);
    if (value === undefined) throw new InvalidInput('OPTION_INVALID', key, 'a value, or null for none', value);
    readChange(row, value, key);
  }

  /**
   * Change an option. Resolves when the change is persisted and in effect.
   * @param key any accepted spelling
   * @param value as `createBroker` takes it; null: no value, for an option that has none by default
   * @throws InvalidInput OPTION_UNKNOWN with the most similar name, ZONE_UNKNOWN, OPTION_INVALID; StateError OPTION_FIXED if the option cannot
   *   be changed at run time; StateError BROKER_NOT_STARTED (with a store), BrokerError STORE_FAILED: nothing has changed
   */
  async set(key: string, value: unknown): Promise<void> {
    await this.setAll([[key, value ?? null]]);
  }

  /** Change several options: all of them, or none. A value of undefined removes the override. @throws as `set` */
  async setAll(changes: Iterable<readonly [key: string, value: unknown]>): Promise<void> {
    const read = new Map<string, unknown>();
    for (const [key, given] of changes) {
      const place = this.#changeable(key);
      read.set(place.key, given === undefined ? undefined : storedValue(readChange(place.row, given, key)));
    }
    const table = this.#host.table();
    const setAt = this.#host.now();
    this.#checkTogether(new Map([...read].map(([key, value]) => [key, { value, setAt }])));
    const write = ([key, value]: [string, unknown]) =>
      value === undefined ? table.delete(key) : table.set(key, { value, setAt });
    await this.#changed([...read].map(write));
    for (const key of read.keys()) this.#host.changed(key);
  }

  /**
   * Remove an override, so that the value of the options applies again.
   * @returns whether there was one
   * @throws InvalidInput OPTION_UNKNOWN with the most similar name, ZONE_UNKNOWN; OPTION_INVALID if the value is not compatible with an
   * override of another option; StateError BROKER_NOT_STARTED (with a store), BrokerError STORE_FAILED
   */
  async reset(key: string): Promise<boolean> {
    const table = this.#host.table();
    // an override that this version does not know is removed by its exact key
    const stored = table.has(key) ? key : findPlace(key, this.#zoneNames()).key;
    if (!table.has(stored)) return false;
    this.#checkTogether(new Map([[stored, { value: undefined, setAt: 0 }]]));
    await this.#changed([table.delete(stored)]);
    this.#host.changed(stored);
    return true;
  }

  /**
   * Check changes together with the other options. Values that come only from the options of `createBroker` are not checked, so that they
   * can always be restored.
   * @param changes by key; a value of undefined removes the override
   */
  #checkTogether(changes: ReadonlyMap<string, StoredOverride>): void {
    const wanted = new Map<string, unknown>(this.#host.table());
    for (const [key, entry] of changes) {
      if (entry.value === undefined) wanted.delete(key);
      else wanted.set(key, entry);
    }
    const { layer } = this.#read(wanted);
    const all = merged(this.#host.settings.given, layer);
    const keyOf = (name: string) => placeOf(name, undefined).key;
    for (const pair of WATERMARKS) {
      const name = pair.find((each) => changes.has(keyOf(each)));
      const isSet = pair.some((each) => Object.hasOwn(layer.broker, each));
      if (name !== undefined && isSet) checkWatermarks(pair, all, name, keyOf);
    }
  }

  /** Apply the overrides of the store, before the state of the broker is restored. @internal */
  restored(entries: readonly TableEntry[]): void {
    const own = entries.filter(({ table }) => table === CONFIGURATION_TABLE);
    const report = (key: string, error: unknown) =>
      this.#host.failed(error, `using the value of ${key} that was set at run time`);
    if (own.length > 0)
      this.#use(
        this.#read(
          own.map(({ key, value }) => [key, value]),
          report
        )
      );
  }

  /** Wait for changes of the table, and apply its content: also if a commit has failed, which undoes its changes. */
  async #changed(changes: readonly Promise<unknown>[]): Promise<void> {
    try {
      await Promise.all(changes);
    } finally {
      this.#use(this.#read(this.#host.table()));
    }
  }

  #zoneNames(): Iterable<string> {
    return this.#host.settings.given.zones.keys();
  }

  /** @throws as `set` */
  #changeable(key: string): SettingPlace {
    const place = findPlace(key, this.#zoneNames());
    if (takesEffect(place) !== 'restart') return place;
    const why = place.row.whyFixed === undefined ? '' : `, because ${place.row.whyFixed}`;
    const text = `${place.key} takes effect only when the broker is created${why}; set it in the options of the broker (${place.name})`;
    throw new StateError('OPTION_FIXED', text);
  }

  /** Read overrides. Those that are not valid, or no longer valid, are ignored. @param invalid called with each of them */
  #read(
    stored: Iterable<readonly [key: string, value: unknown]>,
    invalid: (key: string, error: unknown) => void = () => undefined
  ): Overrides {
    const broker: Record<string, unknown> = {};
    const everywhere: Record<string, unknown> = {};
    const zones = new Map<string, Record<string, unknown>>();
    const entries: Overrides['entries'][number][] = [];
    for (const [key, entry] of stored) {
      try {
        const place = this.#changeable(key);
        const { value: given, setAt } = entry as StoredOverride;
        const value = readSetting(place.row, given, key);
        entries.push({ place, value, setAt });
        const { name, zone } = place;
        if (zone === undefined) broker[name] = value;
        else if (zone === '') everywhere[name] = value;
        else zones.set(zone, { ...zones.get(zone), [name]: value });
      } catch (error) {
        invalid(key, error);
      }
    }
    entries.sort((a, b) => (a.place.key < b.place.key ? -1 : 1));
    return { layer: { broker, everywhere, zones }, entries };
  }

  /** Apply overrides. */
  #use(overrides: Overrides): void {
    this.#overrides = overrides;
    const { settings } = this.#host;
    const layer = merged(settings.given, overrides.layer);
    const present = settings as unknown as Record<string, unknown>;
    const changed = Object.entries(settingsOf(layer)).filter(([name, value]) => !isSame(value, present[name]));
    for (const [name, value] of changed) present[name] = value;
    for (const [name] of changed) this.#host.apply(name);
    this.#useZones(zonesOf(layer));
  }

  #useZones(wanted: ReadonlyMap<string, Zone>): void {
    const zones = this.#host.settings.zones as Map<string, Zone>;
    let isChange = false;
    for (const [name, zone] of wanted) {
      const present = zones.get(name) as Zone;
      const changed = Object.keys(zone).filter((each) => !isSame(fieldOf(zone, each), fieldOf(present, each)));
      if (changed.length === 0) continue;
      isChange = true;
      this.#patch(name, zone, changed);
      if (changed.every((each) => takesEffect(placeOf(each, name)) === 'now')) continue;
      zones.set(name, zone);
      this.#earlier.push(new WeakRef(present));
    }
    if (isChange) this.#host.zonesChanged();
  }

  /** Change the options that take effect at once in the values that connected clients have. */
  #patch(name: string, zone: Zone, changed: readonly string[]): void {
    const atOnce = changed.filter((each) => takesEffect(placeOf(each, name)) === 'now');
    this.#earlier = this.#earlier.filter((ref) => ref.deref() !== undefined);
    for (const one of [this.#host.settings.zones.get(name), ...this.#earlier.map((ref) => ref.deref())])
      if (one?.name === name) for (const each of atOnce) (one as Record<string, unknown>)[each] = fieldOf(zone, each);
  }

  #settingOf(place: SettingPlace): Setting {
    const { key, name, zone, row } = place;
    const { source, value } = this.#sourceOf(place, this.#overrides.layer);
    const { type, unit, about } = row;
    const kind = type === 'string' ? 'text' : type;
    const choices = type === 'choice' ? row.choices?.map(String) : undefined;
    const byDefault = this.#sourceOf(place, NO_OVERRIDES, NO_OVERRIDES).value;
    const when = takesEffect(place);
    return { key, name, zone, value, default: byDefault, kind, unit, choices, about, source, takesEffect: when };
  }

  /** The value of an option and its source. */
  #sourceOf({ name, zone }: SettingPlace, overrides: OptionLayer, given = this.#host.settings.given): SettingPlaces {
    for (const part of ['zones', 'everywhere', 'broker'] as const)
      for (const [source, layer] of [
        ['override', overrides],
        ['option', given]
      ] as const) {
        const values = part === 'zones' ? layer.zones.get(zone ?? '') : layer[part];
        const isPlace = (part === 'broker') === (zone === undefined);
        if (isPlace && values !== undefined && Object.hasOwn(values, name)) return { source, value: values[name] };
      }
    if (zone === undefined) {
      const layer = merged(given, overrides);
      return { source: 'default', value: settingsOf(layer)[name as keyof BrokerSettings] };
    }
    return { source: 'default', value: zoneDefaults(zone)[name] };
  }
}

const NO_OVERRIDES: OptionLayer = { broker: {}, everywhere: {}, zones: new Map() };

function takesEffect({ row, zone }: SettingPlace): Setting['takesEffect'] {
  return row.change ?? (zone === undefined ? 'restart' : 'next connection');
}

/** The options of one layer, overridden by those of another one. */
function merged(under: OptionLayer, over: OptionLayer): OptionLayer {
  const zones = [...under.zones].map(([name, values]) => [name, { ...values, ...over.zones.get(name) }] as const);
  return {
    broker: { ...under.broker, ...over.broker },
    everywhere: { ...under.everywhere, ...over.everywhere },
    zones: new Map(zones)
  };
}

/** @throws InvalidInput OPTION_INVALID */
function readSetting(row: Field, given: unknown, key: string): unknown {
  if (given !== null) return readValue(row, given, key);
  if (row.default === undefined) return undefined;
  throw new InvalidInput('OPTION_INVALID', key, 'a value, because the option has one by default', given);
}

/** Read a value that is set at run time: a typing error must not lock clients out. @throws InvalidInput OPTION_INVALID */
function readChange(row: Field, given: unknown, key: string): unknown {
  const value = readSetting(row, given, key);
  const { leastChange } = row;
  if (leastChange === undefined || value === 0 || (value as number) >= leastChange.min) return value;
  const orZero = (row.min ?? 0) === 0 ? ', or 0' : '';
  const expected = `a size of at least ${leastChange.min} ${row.unit}, because ${leastChange.why}${orZero}`;
  throw new InvalidInput('OPTION_INVALID', key, expected, given);
}

/** A value in a form that JSON can represent and `readSetting` accepts. */
function storedValue(value: unknown): unknown {
  if (value === undefined) return null;
  if (value === Infinity) return 'infinity';
  return value instanceof Map ? Object.fromEntries(value) : value;
}

function fieldOf(zone: Zone, name: string): unknown {
  return zone[name as keyof Zone];
}

function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  const isObject = typeof one === 'object' && typeof other === 'object';
  return isObject && JSON.stringify(storedValue(one)) === JSON.stringify(storedValue(other));
}
