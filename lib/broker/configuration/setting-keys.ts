import { InvalidInput } from '../../base/errors.ts';
import { documentedName, type Field, type FieldTable, nearest, optionName, unknownKey } from '../../base/fields.ts';
import { ZONE_OPTIONS } from '../../records/zone.ts';
import { BROKER_OPTIONS } from './options.ts';

/** The place of an option, for one zone if it is an option of zones. */
export interface SettingPlace {
  /** The documented spelling, for example `zone.external.max_inflight`. */
  readonly key: string;
  /** The name in camelCase. */
  readonly name: string;
  /** The zone; `''`: all zones without a value for them alone; undefined: not an option of zones. */
  readonly zone: string | undefined;
  readonly row: Field;
}

/** The place of an option. @param zone see `SettingPlace` */
export function placeOf(name: string, zone: string | undefined): SettingPlace {
  const table: FieldTable = zone === undefined ? BROKER_OPTIONS : ZONE_OPTIONS;
  const row = table[name];
  const key = zone === undefined || zone === '' ? documentedKey(name, row) : `zone.${zone}.${documentedName(name)}`;
  return { key, name, zone, row };
}

/** The documented name of an option, with its group if it has one: `broker.sys_interval`, `max_inflight`. */
function documentedKey(name: string, { aliases = [] }: Field): string {
  return aliases.find((alias) => alias.includes('.')) ?? documentedName(name);
}

/** Every option, for all zones and for each zone. */
export function allPlaces(zones: Iterable<string>): SettingPlace[] {
  const ofZones = ['', ...zones].flatMap((zone) => Object.keys(ZONE_OPTIONS).map((name) => placeOf(name, zone)));
  return [...Object.keys(BROKER_OPTIONS).map((name) => placeOf(name, undefined)), ...ofZones];
}

/**
 * Find an option by any accepted spelling: `zone.external.max_inflight`, `zones.external.maxInflight`, `mqtt.max_packet_size`,
 * `broker.sys_interval`, `sysInterval`.
 * @param zones the names of the zones
 * @throws InvalidInput OPTION_UNKNOWN with the most similar name, ZONE_UNKNOWN
 */
export function findPlace(key: string, zones: Iterable<string>): SettingPlace {
  if (typeof key !== 'string') throw new InvalidInput('OPTION_UNKNOWN', 'key', 'the name of an option', key);
  const [, zone, setting = ''] = /^zones?\.([^.]+)\.(.+)$/.exec(key) ?? [];
  if (zone !== undefined) {
    const known = [...zones];
    if (!known.includes(zone)) throw unknownZone(key, zone, known);
    const name = optionName(ZONE_OPTIONS, setting);
    if (name !== undefined) return placeOf(name, zone);
    throw unknownKey(
      key,
      Object.keys(ZONE_OPTIONS).map((each) => placeOf(each, zone).key),
      ''
    );
  }
  const ofZones = optionName(ZONE_OPTIONS, key.startsWith('mqtt.') ? key.slice(5) : key);
  if (ofZones !== undefined) return placeOf(ofZones, '');
  const ofBroker = optionName(BROKER_OPTIONS, key);
  if (ofBroker !== undefined) return placeOf(ofBroker, undefined);
  throw unknownKey(
    key,
    allPlaces([]).flatMap((place) => [place.key, place.name]),
    ''
  );
}

function unknownZone(key: string, zone: string, known: readonly string[]): InvalidInput {
  const near = nearest(zone, known);
  const hint = near === undefined ? `the zones are ${known.join(', ')}` : `did you mean "${near}"?`;
  return new InvalidInput(
    'ZONE_UNKNOWN',
    'key',
    `one of ${known.join(', ')}`,
    key,
    `${key}: there is no zone "${zone}"; ${hint}`
  );
}
