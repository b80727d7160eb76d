import { choice, hrefOf } from '../../app/place.ts';
import { streams } from '../../app/streams.ts';
import type { TypeDetails, TypeRow } from '../../model/streams.ts';
import { useLoaded } from '../../parts/loading.ts';
import { Problem } from '../../parts/problem.tsx';
import { Table } from '../../parts/table.tsx';
import { T } from '../../texts.ts';

const S = T.streamRules;

/** The types of sources or of sinks, and the properties of the one that is chosen. */
export function Types({ of }: { readonly of: 'sources' | 'sinks' }) {
  const chosen = choice('type');
  const { value, error, reload } = useLoaded(
    of,
    async (signal) => (await streams('GET', `/metadata/${of}`, { signal })) as readonly TypeRow[]
  );
  return (
    <Table
      caption={of === 'sources' ? S.sources : S.sinks}
      rows={value}
      error={error}
      onRetry={reload}
      keyOf={({ name }) => name}
      empty={S.noTypes}
      below={({ name }) => name === chosen && <TypeProperties of={of} name={name} />}
      columns={[
        {
          head: S.type,
          cell: ({ name }) => (
            <a
              href={hrefOf('streams', { tab: of, type: name === chosen ? undefined : name })}
              aria-expanded={name === chosen}
            >
              {name}
            </a>
          )
        },
        { head: S.about, isWide: true, cell: ({ about }) => about.description.en_US }
      ]}
    />
  );
}

function TypeProperties({ of, name }: { readonly of: string; readonly name: string }) {
  const { value, error, reload } = useLoaded(
    `${of} ${name}`,
    async (signal) => (await streams('GET', `/metadata/${of}/${encodeURIComponent(name)}`, { signal })) as TypeDetails
  );
  if (error !== undefined) return <Problem error={error} onRetry={reload} />;
  if (value?.properties.length === 0) return <p class="aside">{S.noProperties}</p>;
  return (
    <Table
      caption={S.properties}
      rows={value?.properties}
      keyOf={(property) => property.name}
      empty={S.noProperties}
      columns={[
        {
          head: S.property,
          cell: (property) => (
            <>
              <code>{property.name}</code> {!property.optional && <span class="aside">{T.form.required}</span>}
            </>
          )
        },
        { head: S.kind, isMinor: true, cell: (property) => property.type },
        {
          head: S.default,
          isMinor: true,
          cell: (property) => property.default !== undefined && <code>{JSON.stringify(property.default)}</code>
        },
        {
          head: S.about,
          isWide: true,
          cell: ({ hint, values }) => (
            <>
              {hint.en_US}
              {values && <span class="aside"> {values.map((value) => `${value}`).join(', ')}</span>}
            </>
          )
        }
      ]}
    />
  );
}
