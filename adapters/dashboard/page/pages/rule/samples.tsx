import type { DataOf } from '../../../../management/client/index.ts';
import { get } from '../../app/requests.ts';
import { shortTimeText, timeText } from '../../model/format.ts';
import { useFresh } from '../../parts/fresh.ts';
import { useLoaded } from '../../parts/loading.ts';
import { Problem } from '../../parts/problem.tsx';
import { Result } from '../../parts/result.tsx';
import { T } from '../../texts.ts';
import { offered } from './test-run.tsx';

const R = T.rules;
type Lists = DataOf<'hosted', 'GET', '/x/rules/{id}/samples'>;

/** The last inputs, outputs, excluded events and errors of a rule. @param sampledAt the time of the last one: they are loaded again when this changes */
export function Samples({ id, sampledAt }: { readonly id: string; readonly sampledAt: number }) {
  const { value, error, reload, refresh } = useLoaded<Lists>(`samples ${id}`, (signal, isBackground) =>
    get('/x/rules/{id}/samples', { params: { id }, signal, isBackground })
  );
  const { isWaiting, show, listeners } = useFresh(sampledAt, refresh);
  if (error !== undefined) return <Problem error={error} onRetry={reload} />;
  if (value === undefined) return null;
  return (
    <section class="samples" aria-label={R.samples} {...listeners}>
      <div class="sample-head">
        <h2>{R.samples}</h2>
        {isWaiting && (
          <button type="button" class="small" onClick={show}>
            {R.newerSamples}
          </button>
        )}
      </div>
      <p class="aside">{R.samplesAbout}</p>
      <div class="fact-groups">
        {(['inputs', 'outputs', 'rejected', 'errors'] as const).map((name) => (
          <section key={name}>
            <h3>{R.sampleLists[name]}</h3>
            {value[name].length === 0 && <p class="aside">{R.noSamples}</p>}
            {value[name].toReversed().map(({ at, cut, ...rest }, index) => (
              <Sample key={`${at} ${index}`} at={at} isCut={cut} value={rest} isWhole={name === 'inputs' && !cut} />
            ))}
          </section>
        ))}
      </div>
    </section>
  );
}

function Sample({
  at,
  isCut,
  value,
  isWhole
}: {
  readonly at: number;
  readonly isCut: boolean;
  readonly value: object;
  /** The sample has all columns of the event, so the test can use it. */
  readonly isWhole: boolean;
}) {
  const { columns, output, code, message } = value as Shown;
  return (
    <div>
      <p class="sample-head">
        <span class="aside tabular" title={timeText(at, { ms: true })}>
          {shortTimeText(at, Date.now())} {isCut && R.sampleCut}
        </span>
        {columns !== undefined && isWhole && (
          <button
            type="button"
            class="small"
            onClick={() => {
              offered.value = JSON.stringify(columns, null, 2);
            }}
          >
            {R.useSample}
          </button>
        )}
      </p>
      {message !== undefined && (
        <p class="problem-message" title={code}>
          {message}
        </p>
      )}
      <Result>{JSON.stringify(output ?? (columns && inOrder(columns)) ?? value, null, 2)}</Result>
    </div>
  );
}

/** The members of samples of each kind. */
interface Shown {
  readonly columns?: Readonly<Record<string, unknown>>;
  readonly output?: unknown;
  readonly code?: string;
  readonly message?: string;
}

/** The columns of an event, those of its message first. */
function inOrder({ topic, payload, clientid, ...others }: Readonly<Record<string, unknown>>): object {
  return { topic, payload, clientid, ...others };
}
