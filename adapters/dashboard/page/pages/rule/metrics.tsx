import { hrefOf } from '../../app/place.ts';
import { countText, rateText } from '../../model/format.ts';
import { failingAction } from '../../model/rules.ts';
import { Facts } from '../../parts/facts.tsx';
import { Name } from '../../parts/name.tsx';
import { Table } from '../../parts/table.tsx';
import { T } from '../../texts.ts';
import type { RuleRow } from './row.tsx';

const R = T.rules;

/** The counters of a rule and of its actions. */
export function Metrics({
  rule: {
    metrics: [metrics],
    actions
  }
}: {
  readonly rule: RuleRow;
}) {
  return (
    <div class="fact-groups">
      <section>
        <h2>{R.metrics}</h2>
        {metrics && (
          <Facts
            rows={[
              [R.matched, countText(metrics.matched), R.matchedAbout],
              [R.passed, countText(metrics.passed), R.passedAbout],
              [R.noResult, countText(metrics.no_result), R.noResultAbout],
              [R.statementErrors, countText(metrics.exception), R.statementErrorsAbout],
              [R.speed, `${rateText(metrics.speed)} · ${R.highest(rateText(metrics.speed_max))}`]
            ]}
          />
        )}
      </section>
      <section>
        <h2>{R.actions}</h2>
        <Table
          caption={R.actions}
          rows={actions}
          keyOf={({ id }) => id}
          empty={R.noActions}
          columns={[
            { head: R.action, cell: ({ name }) => name },
            { head: R.taken, isNumber: true, cell: ({ metrics: [one] }) => countText(one?.taken) },
            { head: R.successes, isNumber: true, cell: ({ metrics: [one] }) => countText(one?.success) },
            { head: R.failures, isNumber: true, cell: ({ metrics: [one] }) => countText(one?.failed) },
            { head: R.waits, isNumber: true, cell: (action) => <Waiting action={action} /> }
          ]}
          below={(action) => failingAction([action]) && <LastError action={action} />}
        />
      </section>
    </div>
  );
}

/** Number of outputs in the queue of an action. Marked while its deliveries fail. */
function Waiting({ action: { metrics, last_error } }: { readonly action: RuleRow['actions'][number] }) {
  const waiting = metrics[0]?.waiting ?? 0;
  return <span class={waiting > 0 && last_error !== undefined ? 'warned' : ''}>{countText(waiting)}</span>;
}

/** The reason why an action, or one of its fallbacks, failed last. */
function LastError({ action }: { readonly action: RuleRow['actions'][number] }) {
  const failing = failingAction([action]);
  if (failing?.last_error === undefined) return null;
  const isRetrying = (failing.metrics[0]?.waiting ?? 0) > 0;
  return (
    <p class="warning">
      {isRetrying ? R.retrying : R.lastError}: {failing !== action && `${failing.name}: `}
      <Name of={failing.last_error} max={400} />
      {'$resource' in failing.params && (
        <>
          {' '}
          <a href={hrefOf('rules', { tab: 'resources' })}>{R.showResources}</a>
        </>
      )}
    </p>
  );
}
