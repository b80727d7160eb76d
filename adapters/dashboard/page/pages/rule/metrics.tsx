import { countText, rateText } from '../../model/format.ts';
import { Facts } from '../../parts/facts.tsx';
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
              [R.exceptions, countText(metrics.exception), R.exceptionsAbout],
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
            { head: R.waits, isNumber: true, cell: ({ metrics: [one] }) => countText(one?.waiting ?? 0) }
          ]}
        />
      </section>
    </div>
  );
}
