import { streams } from '../../app/streams.ts';
import type { TypeRow } from '../../model/streams.ts';
import { Action } from '../../parts/confirm.tsx';
import { Badge } from '../../parts/facts.tsx';
import { useLoaded } from '../../parts/loading.ts';
import { Name } from '../../parts/name.tsx';
import type { Properties } from '../../parts/properties.tsx';
import { Table } from '../../parts/table.tsx';
import { T } from '../../texts.ts';
import { EntryButton } from './entry.tsx';

const S = T.streamRules;
const EVERY_MS = 5_000;

interface Connection {
  readonly id: string;
  readonly typ: string;
  readonly props: Properties;
  readonly status: 'connected' | 'connecting' | 'disconnected';
  readonly err: string;
}

const KINDS = { connected: 'good', connecting: 'warn', disconnected: 'quiet' } as const;

/** The connections to other servers, with their state. */
export function Connections() {
  const types = useLoaded('types', async (signal) => {
    const found = (await streams('GET', '/metadata/sources', { signal })) as readonly TypeRow[];
    return found.map(({ name }) => name);
  });
  const { value, error, reload } = useLoaded(
    'connections',
    async (signal, isBackground) =>
      (await streams('GET', '/connections', { signal, isBackground })) as readonly Connection[],
    { everyMs: EVERY_MS }
  );
  const pathOf = (id: string) => `/connections/${encodeURIComponent(id)}`;
  return (
    <section class="stack">
      <div class="sample-head">
        <p class="aside">{S.connectionsAbout}</p>
        <EntryButton
          label={S.addConnection}
          entry={undefined}
          types={types.value ?? []}
          save={({ name, type, properties }) =>
            streams('POST', '/connections', { body: { id: name, typ: type, props: properties } })
          }
          onDone={reload}
        />
      </div>
      <Table
        caption={S.connections}
        rows={value}
        error={error}
        onRetry={reload}
        keyOf={({ id }) => id}
        empty={S.noConnections}
        columns={[
          { head: T.rules.id, cell: ({ id }) => <Name of={id} /> },
          { head: S.type, cell: ({ typ }) => typ },
          {
            head: T.rules.state,
            cell: ({ status, err }) => (
              <>
                <Badge kind={err === '' ? KINDS[status] : 'bad'}>{S.connectionStates[status]}</Badge>
                {err !== '' && <span class="aside"> {err}</span>}
              </>
            )
          },
          {
            head: S.properties,
            isWide: true,
            isMinor: true,
            cell: ({ props }) => <Name of={JSON.stringify(props)} max={160} />
          },
          {
            head: '',
            cell: ({ id, typ, props }) => (
              <span class="section-actions">
                <EntryButton
                  label={T.rules.change}
                  entry={{ name: id, type: typ, properties: props }}
                  types={[]}
                  save={({ properties }) => streams('PUT', pathOf(id), { body: { props: properties } })}
                  onDone={reload}
                />
                <Action
                  label={T.rules.remove}
                  title={S.removeConnection}
                  text={S.removeSectionText}
                  kind="small"
                  isDangerous
                  done={S.connectionRemoved}
                  run={() => streams('DELETE', pathOf(id))}
                  onDone={reload}
                />
              </span>
            )
          }
        ]}
      />
    </section>
  );
}
