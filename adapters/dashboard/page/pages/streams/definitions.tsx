import { hrefOf } from '../../app/place.ts';
import { streams } from '../../app/streams.ts';
import type { Definition } from '../../model/streams.ts';
import { useLoaded } from '../../parts/loading.ts';
import { Name } from '../../parts/name.tsx';
import { Table } from '../../parts/table.tsx';
import { T } from '../../texts.ts';

const S = T.streamRules;
/** Each definition is a request. */
const MAX_SHOWN = 200;

/** The streams, or the tables, with their statements. */
export function Definitions({ kind }: { readonly kind: 'stream' | 'table' }) {
  const { value, error, reload } = useLoaded(kind, async (signal) => {
    const names = (await streams('GET', `/${kind}s`, { signal })) as readonly string[];
    const found = await Promise.all(
      names.slice(0, MAX_SHOWN).map((name) =>
        // it may have been deleted meanwhile
        streams('GET', `/${kind}s/${encodeURIComponent(name)}`, { signal }).catch(() => undefined)
      )
    );
    return { rows: found.filter((one) => one !== undefined) as Definition[], count: names.length };
  });
  return (
    <>
      <Table
        caption={kind === 'table' ? S.tables : S.streams}
        rows={value?.rows}
        error={error}
        onRetry={reload}
        keyOf={({ Name: name }) => name}
        empty={kind === 'table' ? S.noTables : S.noStreams}
        columns={[
          {
            head: T.access.name,
            cell: ({ Name: name }) => (
              <a href={hrefOf('definition', { kind: kind === 'table' ? kind : undefined, name })}>
                <Name of={name} />
              </a>
            )
          },
          {
            head: S.type,
            isMinor: true,
            cell: ({ Options }) => `${Options.TYPE || (kind === 'table' ? 'file' : 'mqtt')}`
          },
          {
            head: S.dataSource,
            cell: ({ Options }) => <Name of={`${Options.DATASOURCE ?? ''}`} max={60} />
          },
          { head: T.rules.statement, isWide: true, isMinor: true, cell: ({ sql }) => <code>{sql.slice(0, 300)}</code> }
        ]}
      />
      {value !== undefined && value.count > MAX_SHOWN && <p class="aside">{S.firstOnes(MAX_SHOWN, value.count)}</p>}
    </>
  );
}
