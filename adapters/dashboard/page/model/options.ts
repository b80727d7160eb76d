// The options of the broker, as the interface lists them.

/** An option with its value and its source. */
export interface OptionRow {
  /** The documented name: `zone.external.max_inflight`. */
  readonly key: string;
  /** The name in camelCase. */
  readonly name: string;
  /** Absent: the broker, or all zones without their own value. */
  readonly zone?: string;
  readonly value: string | number | boolean;
  readonly default: string | number | boolean;
  readonly kind: string;
  readonly choices?: readonly string[];
  readonly source: 'default' | 'option' | 'override';
  readonly origin?: string;
  readonly takes_effect: 'now' | 'next connection' | 'restart';
  readonly about: string;
}

/** The conditions of the page; empty: all. */
export interface OptionConditions {
  /** A part of the name or of the description, in any case. */
  readonly q: string;
  readonly source: string;
  readonly when: string;
  /** Empty: the broker and all zones, with the values of single zones that differ. */
  readonly zone: string;
}

/** The options that meet the conditions, in the order of their names. */
export function optionsIn(
  all: readonly OptionRow[],
  { q, source, when, zone }: OptionConditions
): readonly OptionRow[] {
  const ofAllZones = new Map(all.filter((one) => one.zone === undefined).map((one) => [one.name, one]));
  const isOwn = (one: OptionRow) => {
    const common = one.zone === undefined ? undefined : ofAllZones.get(one.name);
    return common === undefined || one.value !== common.value || one.source !== common.source;
  };
  const part = q.trim().toLowerCase();
  return all.filter(
    (one) =>
      (zone === '' ? isOwn(one) : one.zone === zone) &&
      (source === '' || one.source === source) &&
      (when === '' || one.takes_effect === when) &&
      [one.key, one.name, one.about].some((text) => text.toLowerCase().includes(part))
  );
}

/** The zones of the options. */
export function zonesOf(all: readonly OptionRow[]): readonly string[] {
  return [...new Set(all.flatMap(({ zone }) => zone ?? []))];
}

/** The places in which the command and an app set an option before the start, for a reader to copy. */
export function placesOf(name: string): Readonly<Record<'flag' | 'variable' | 'file' | 'app', string>> {
  const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return {
    flag: `--${snake.replaceAll('_', '-')}`,
    variable: `EMBERMQ_${snake.toUpperCase()}`,
    file: `"${name}": ...`,
    app: `createBroker({ ${name}: ... })`
  };
}
