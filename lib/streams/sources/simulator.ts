import { InvalidInput } from '../../base/errors.ts';
import type { OpenSource, SourceSetup, SourceType } from '../types.ts';
import type { StreamValueObject } from '../values/values.ts';

/** Rows of a list, one after the other. */
export const SIMULATOR: SourceType = {
  name: 'simulator',
  about: 'Rows of a list, one in each interval, for experiments.',
  properties: {
    data: { type: 'array', about: 'The rows, as objects.', required: true },
    interval: { type: 'duration', about: 'Time between two rows.', default: 1000, min: 1, unit: 'ms' },
    loop: { type: 'boolean', about: 'Start again after the last row.', default: true }
  },
  open
};

function open(setup: SourceSetup): OpenSource {
  const { clock, properties, stream } = setup;
  const { data, interval, loop } = properties as { data: readonly unknown[]; interval: number; loop: boolean };
  const rows = data.map((row, at) => checkRow(row, `simulator of ${stream}: data[${at}]`));
  if (rows.length === 0)
    throw new InvalidInput('PROPERTY_INVALID', `simulator of ${stream}: data`, 'at least one object', data);
  let at = 0;
  let timer: unknown;
  const next = () => {
    timer = clock.setTimeout(next, interval);
    setup.row(rows[at++]);
    if (at < rows.length) return;
    at = 0;
    if (loop) return;
    clock.clearTimeout(timer);
    setup.end();
  };
  timer = clock.setTimeout(next, interval);
  setup.connected();
  return { close: () => clock.clearTimeout(timer) };
}

function checkRow(row: unknown, field: string): StreamValueObject {
  if (typeof row === 'object' && row !== null && !Array.isArray(row)) return row as StreamValueObject;
  throw new InvalidInput('PROPERTY_INVALID', field, 'an object', row);
}
