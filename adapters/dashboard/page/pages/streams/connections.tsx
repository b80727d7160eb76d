import { streams } from '../../app/streams.ts';
import type { TypeRow } from '../../model/streams.ts';
import { Action } from '../../parts/confirm.tsx';
import { type Copied, CopyAs } from '../../parts/copy.tsx';
import { Badge, Pairs } from '../../parts/facts.tsx';
import { useLoaded } from '../../parts/loading.ts';
import { Name } from '../../parts/name.tsx';
import type { Properties } from '../../parts/properties.tsx';
import { Table } from '../../parts/table.tsx';
import { T } from '../../texts.ts';
import { type Entry, EntryButton } from './entry.tsx';

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

const PATH = '/connections';

function pathOf(id: string): string {
  return `${PATH}/${encodeURIComponent(id)}`;
}

function newBody({ name, type, properties }: Entry) {
  return { id: name, typ: type, props: properties };
}

/** The commands that make a connection. */
function addedBy(entry: Entry): Copied {
  const body = newBody(entry);
  const ctl = ['stream', 'add-connection', '-'];
  return { of: 'streams', request: { method: 'POST', path: PATH, body }, ctl, input: JSON.stringify(body) };
}

/** The commands that change a connection. */
function changedBy({ name, properties }: Entry): Copied {
  const body = { props: properties };
  const ctl = ['stream', 'change-connection', '--', name, '-'];
  return { of: 'streams', request: { method: 'PUT', path: pathOf(name), body }, ctl, input: JSON.stringify(body) };
}

/** The connections to other servers, with their state. */
export function Connections() {
  const types = useLoaded('types', async (signal) => {
    const found = (await streams('GET', '/metadata/sources', { signal })) as readonly TypeRow[];
    return found.map(({ name }) => name);
  });
  const { value, error, reload } = useLoaded(
    'connections',
    async (signal, isBackground) => (await streams('GET', PATH, { signal, isBackground })) as readonly Connection[],
    { everyMs: EVERY_MS }
  );
  return (
    <section class="stack">
      <div class="sample-head">
        <p class="aside">{S.connectionsAbout}</p>
        <EntryButton
          label={S.addConnection}
          entry={undefined}
          types={types.value ?? []}
          save={(entry) => streams('POST', PATH, { body: newBody(entry) })}
          copied={addedBy}
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
            cell: ({ props }) => <Pairs of={props} />
          },
          {
            head: '',
            cell: (connection) => <RowActions connection={connection} onDone={reload} />
          }
        ]}
      />
    </section>
  );
}

function RowActions({
  connection: { id, typ, props },
  onDone
}: {
  readonly connection: Connection;
  readonly onDone: () => void;
}) {
  return (
    <span class="section-actions">
      <EntryButton
        label={T.rules.change}
        entry={{ name: id, type: typ, properties: props }}
        types={[]}
        save={({ properties }) => streams('PUT', pathOf(id), { body: { props: properties } })}
        copied={changedBy}
        onDone={onDone}
      />
      <Action
        label={T.rules.remove}
        title={S.removeConnection}
        of={id}
        text={S.removeSectionText}
        kind="small"
        isDangerous
        done={S.connectionRemoved}
        run={() => streams('DELETE', pathOf(id))}
        onDone={onDone}
      >
        <CopyAs
          of="streams"
          request={{ method: 'DELETE', path: pathOf(id) }}
          ctl={['stream', 'drop-connection', '--', id]}
        />
      </Action>
    </span>
  );
}
