import { countText, sizeText } from '../../model/format.ts';
import type { OptionRow } from '../../model/options.ts';
import { T } from '../../texts.ts';

const O = T.options;

/** A value of an option with its unit. */
export function valueText({ kind }: Pick<OptionRow, 'kind'>, value: OptionRow['value']): string {
  if (value === '') return O.none;
  if (typeof value === 'boolean') return value ? O.on : O.off;
  if (typeof value !== 'number') return value;
  if (kind === 'size') return sizeText(value);
  if (kind === 'percent') return `${value} %`;
  return Number.isInteger(value) ? countText(value) : `${value}`;
}
