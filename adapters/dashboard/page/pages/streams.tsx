import { choice, hrefOf } from '../app/place.ts';
import { streams } from '../app/streams.ts';
import { Action } from '../parts/confirm.tsx';
import { Badge, Head, Tabs } from '../parts/facts.tsx';
import { useLoaded } from '../parts/loading.ts';
import { Name } from '../parts/name.tsx';
import { Table } from '../parts/table.tsx';
import { T } from '../texts.ts';

const S = T.streamRules;
const EVERY_MS = 5_000;

/** The rules over streams, the streams and the tables. */
export function Page() {
  const tab = choice('tab') || 'rules';
  return (
    <>
      <Head title={T.views.streams}>
        {tab === 'rules' && (
          <a class="button primary-link" href={hrefOf('stream')}>
            {T.rules.create}
          </a>
        )}
      </Head>
      <Tabs
        label={S.parts}
        shown={tab}
        tabs={[
          ['rules', T.views.rules],
          ['streams', S.streams],
          ['tables', S.tables]
        ]}
      />
      {tab === 'rules' ? <Rules /> : <Definitions key={tab} kind={tab === 'tables' ? 'tables' : 'streams'} />}
    </>
  );
}

interface RuleRow {
  readonly id: string;
  readonly name?: string;
  readonly status: string;
}

function Rules() {
  const { value, error, reload } = useLoaded(
    'stream rules',
    async (signal, isBackground) => (await streams('GET', '/rules', { signal, isBackground })) as readonly RuleRow[],
    { everyMs: EVERY_MS }
  );
  return (
    <Table
      caption={T.views.rules}
      rows={value}
      error={error}
      onRetry={reload}
      keyOf={({ id }) => id}
      empty={S.noRules}
      columns={[
        {
          head: T.rules.rule,
          isWide: true,
          cell: ({ id }) => (
            <a href={hrefOf('stream', { id })}>
              <Name of={id} />
            </a>
          )
        },
        {
          head: T.rules.state,
          cell: ({ status }) => <Badge kind={/^running/i.test(status) ? 'good' : 'quiet'}>{status}</Badge>
        }
      ]}
    />
  );
}

function Definitions({ kind }: { readonly kind: 'streams' | 'tables' }) {
  const { value, error, reload } = useLoaded(kind, async (signal) => {
    const names = (await streams('GET', `/${kind}`, { signal })) as readonly string[];
    return Promise.all(
      names
        .slice(0, 200)
        .map(
          async (name) =>
            (await streams('GET', `/${kind}/${encodeURIComponent(name)}`, { signal })) as { Name: string; sql: string }
        )
    );
  });
  return (
    <>
      <div class="section-actions">
        <Action
          label={kind === 'tables' ? S.newTable : S.newStream}
          submit={T.access.add}
          fields={[{ name: 'sql', label: T.rules.statement, type: 'lines', isRequired: true }]}
          initial={{ sql: kind === 'tables' ? S.tableExample : S.streamExample }}
          done={S.added}
          run={({ sql = '' }) => streams('POST', `/${kind}`, { body: { sql } })}
          onDone={reload}
        />
      </div>
      <Table
        caption={kind === 'tables' ? S.tables : S.streams}
        rows={value}
        error={error}
        onRetry={reload}
        keyOf={({ Name: name }) => name}
        empty={kind === 'tables' ? S.noTables : S.noStreams}
        columns={[
          { head: T.access.name, cell: ({ Name: name }) => <Name of={name} /> },
          { head: T.rules.statement, isWide: true, cell: ({ sql }) => <code>{sql}</code> },
          {
            head: '',
            cell: ({ Name: name }) => (
              <Action
                label={T.rules.remove}
                text={S.removeText}
                kind="small"
                isDangerous
                done={S.removed}
                run={() => streams('DELETE', `/${kind}/${encodeURIComponent(name)}`)}
                onDone={reload}
              />
            )
          }
        ]}
      />
    </>
  );
}
