import { choice, hrefOf } from '../app/place.ts';
import { get } from '../app/requests.ts';
import { countText, rateText } from '../model/format.ts';
import { CopyAs } from '../parts/copy.tsx';
import { Head, Tabs } from '../parts/facts.tsx';
import { useLoaded } from '../parts/loading.ts';
import { Name } from '../parts/name.tsx';
import { Table } from '../parts/table.tsx';
import { T } from '../texts.ts';
import { Resources } from './rule/resources.tsx';
import { type RuleRow, RuleState } from './rule/row.tsx';

const R = T.rules;
const EVERY_MS = 5_000;

/** The rules over events of the broker, and the resources that their actions use. */
export function Page() {
  const tab = choice('tab') === 'resources' ? 'resources' : 'rules';
  return (
    <>
      <Head title={T.views.rules}>
        <CopyAs request={{ path: `/${tab}` }} ctl={[tab, 'list']} />
        {tab === 'rules' && (
          <a class="button primary-link" href={hrefOf('rule')}>
            {R.create}
          </a>
        )}
      </Head>
      <Tabs
        label={R.parts}
        shown={tab}
        tabs={[
          ['rules', T.views.rules],
          ['resources', R.resources]
        ]}
      />
      {tab === 'rules' ? <Rules /> : <Resources />}
    </>
  );
}

function Rules() {
  const { value, error, isLoading, reload } = useLoaded<readonly RuleRow[]>(
    'rules',
    (signal, isBackground) =>
      get('/rules', { query: { enable_paging: false }, signal, isBackground }) as Promise<RuleRow[]>,
    { everyMs: EVERY_MS }
  );
  return (
    <Table
      caption={T.views.rules}
      rows={value}
      error={error}
      onRetry={reload}
      isLoading={isLoading && value === undefined}
      keyOf={({ id }) => id}
      empty={R.none}
      columns={[
        {
          head: R.rule,
          cell: ({ id, description }) => (
            <>
              <a href={hrefOf('rule', { id })}>
                <Name of={id} />
              </a>
              {description !== '' && (
                <div class="row-about">
                  <Name of={description} max={80} />
                </div>
              )}
            </>
          )
        },
        { head: R.state, cell: (row) => <RuleState rule={row} /> },
        { head: R.statement, isWide: true, isMinor: true, cell: ({ rawsql }) => <code>{rawsql.slice(0, 200)}</code> },
        { head: R.actions, cell: ({ actions }) => actions.map(({ name }) => name).join(', ') },
        { head: R.matched, isNumber: true, cell: ({ metrics: [metrics] }) => countText(metrics?.matched) },
        { head: R.speed, isNumber: true, isMinor: true, cell: ({ metrics: [metrics] }) => rateText(metrics?.speed) },
        { head: R.passed, isNumber: true, cell: ({ metrics: [metrics] }) => countText(metrics?.passed) },
        { head: R.exceptions, isNumber: true, cell: ({ metrics: [metrics] }) => countText(metrics?.exception) },
        {
          head: R.failures,
          isNumber: true,
          isMinor: true,
          cell: ({ actions }) =>
            countText(actions.reduce((sum, { metrics: [metrics] }) => sum + (metrics?.failed ?? 0), 0))
        }
      ]}
    />
  );
}
