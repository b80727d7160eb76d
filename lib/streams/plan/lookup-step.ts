import type { BoundJoin, BoundSelect } from '../expressions/bound.ts';
import { makeLookup } from '../operators/lookup.ts';
import type { PlanSettings } from './plan.ts';
import { conjunctionOf, type Step } from './steps.ts';

/** The operator that joins rows with those of a lookup table. */
export function lookupStep({ kind, source, on }: BoundJoin, select: BoundSelect, settings: PlanSettings): Step {
  const { options, bounds } = settings;
  const keyed = on.filter(({ equality }) => equality?.column !== undefined);
  const others = on.filter((part) => !keyed.includes(part));
  const keys = keyed.map(({ equality }) => equality?.column as string);
  return {
    about: `${kind.toUpperCase()} JOIN of a lookup table by ${keys.join(', ')}`,
    make: (setup) => {
      const { tools } = setup;
      const lookup = setup.lookups.get(source);
      if (lookup === undefined) throw new TypeError('lookup tables are opened before their rule');
      const { cache, cacheTtl, cacheMissingKey } = lookup.properties;
      return makeLookup({
        kind: kind === 'left' ? 'left' : 'inner',
        source,
        sources: select.sources.length,
        keys,
        values: keyed.map(({ equality }) => (equality as NonNullable<typeof equality>).left.make(tools)),
        ...(others.length > 0 && { on: conjunctionOf(others, tools) }),
        lookup: lookup.open,
        ...(cache === true && {
          cache: { ttlMs: cacheTtl as number, keepsMissing: cacheMissingKey === true }
        }),
        mostPending: Math.max(1, options.bufferLength),
        mostRows: bounds.joinRows,
        frame: tools.frame
      })(setup);
    }
  };
}
