import { stateIn } from '../../../../../lib/streams/rule-states.ts';
import { hrefOf } from '../../app/place.ts';
import { streams } from '../../app/streams.ts';
import { countText } from '../../model/format.ts';
import { type Metrics, totalsOf } from '../../model/streams.ts';
import { useLoaded } from '../../parts/loading.ts';
import { Name } from '../../parts/name.tsx';
import { Table } from '../../parts/table.tsx';
import { T } from '../../texts.ts';
import { RuleState } from './rule-state.tsx';

const S = T.streamRules;
const EVERY_MS = 5_000;
/** With more rules, their counters would be megabytes in each interval. */
const MAX_COUNTED = 100;

interface RuleRow {
  readonly id: string;
  readonly name?: string;
  readonly status: string;
  readonly tags?: readonly string[];
}

/** The rules, with their states and counters. */
export function Rules() {
  const { value, error, reload } = useLoaded(
    'stream rules',
    async (signal, isBackground) => {
      const rules = (await streams('GET', '/rules', { signal, isBackground })) as readonly RuleRow[];
      const metrics =
        rules.length > MAX_COUNTED
          ? {}
          : ((await streams('GET', '/rules/status/all', { signal, isBackground })) as Readonly<
              Record<string, Metrics>
            >);
      return rules.map((rule) => ({ ...rule, totals: metrics[rule.id] && totalsOf(metrics[rule.id]) }));
    },
    { everyMs: EVERY_MS }
  );
  return (
    <Table
      caption={T.views.rules}
      rows={value}
      error={error}
      onRetry={reload}
      keyOf={({ id }) => id}
      empty={
        <>
          {S.noRules} <a href={hrefOf('definition')}>{S.newStream}</a>
        </>
      }
      columns={[
        {
          head: T.rules.rule,
          isWide: true,
          cell: ({ id, name, tags = [] }) => (
            <>
              <a href={hrefOf('stream', { id })}>
                <Name of={id} />
              </a>
              {name && (
                <div class="row-about">
                  <Name of={name} max={80} />
                </div>
              )}
              {tags.length > 0 && (
                <div class="row-about">
                  <Name of={tags.join(', ')} max={80} />
                </div>
              )}
            </>
          )
        },
        { head: T.rules.state, cell: ({ status }) => <RuleStatus status={status} /> },
        { head: S.rowsIn, isNumber: true, isMinor: true, cell: ({ totals }) => totals && countText(totals.inputs) },
        { head: S.rowsOut, isNumber: true, cell: ({ totals }) => totals && countText(totals.outputs) },
        { head: T.rules.exceptions, isNumber: true, cell: ({ totals }) => totals && countText(totals.exceptions) }
      ]}
    />
  );
}

function RuleStatus({ status }: { readonly status: string }) {
  const { code, reason } = stateIn(status);
  return (
    <>
      <RuleState code={code} />
      {code === 'failed' && <span class="aside"> {reason}</span>}
    </>
  );
}
