import { streams } from '../../app/streams.ts';
import { shortTimeText, timeText } from '../../model/format.ts';
import { type InputSample, rowsOfInputs } from '../../model/streams.ts';
import { useFresh } from '../../parts/fresh.ts';
import { useLoaded } from '../../parts/loading.ts';
import { Name } from '../../parts/name.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Result } from '../../parts/result.tsx';
import { T } from '../../texts.ts';
import { offered } from './test-run.tsx';

const S = T.streamRules;

interface Sample {
  readonly at: number;
  readonly node?: string;
  readonly cut?: boolean;
  readonly rows?: readonly object[];
  readonly values?: object;
  readonly message?: string;
  readonly reason?: string;
  readonly topic?: string;
}

interface Lists {
  readonly inputs: readonly InputSample[];
  readonly outputs: readonly Sample[];
  readonly rejected: readonly Sample[];
  readonly errors: readonly Sample[];
}

/** The last inputs, outputs, excluded rows and errors of a rule. @param sampledAt the time of the last one: it is loaded again when this changes */
export function Samples({ id, sampledAt }: { readonly id: string; readonly sampledAt: number }) {
  const { value, error, reload, refresh } = useLoaded(
    `samples ${id}`,
    async (signal, isBackground) =>
      (await streams('GET', `/rules/${encodeURIComponent(id)}/samples`, { signal, isBackground })) as Lists
  );
  const { isWaiting, show, listeners } = useFresh(sampledAt, refresh);
  if (error !== undefined) return <Problem error={error} onRetry={reload} />;
  if (value === undefined) return null;
  const rows = rowsOfInputs(value.inputs);
  return (
    <section class="samples" aria-label={T.rules.samples} {...listeners}>
      <div class="sample-head">
        <h2>{T.rules.samples}</h2>
        {isWaiting && (
          <button type="button" class="small" onClick={show}>
            {T.rules.newerSamples}
          </button>
        )}
        {rows.length > 0 && (
          <button
            type="button"
            class="small"
            onClick={() => {
              offered.value = rows;
            }}
          >
            {S.useSamples}
          </button>
        )}
      </div>
      <p class="aside">{S.samplesAbout}</p>
      <div class="fact-groups">
        {(['inputs', 'outputs', 'rejected', 'errors'] as const).map((name) => (
          <section key={name}>
            <h3>{S.sampleLists[name]}</h3>
            {value[name].length === 0 && <p class="aside">{T.rules.noSamples}</p>}
            {(value[name] as readonly Sample[]).toReversed().map((sample, index) => (
              <Shown key={`${sample.at} ${index}`} sample={sample} />
            ))}
          </section>
        ))}
      </div>
    </section>
  );
}

function Shown({ sample: { at, node, cut, rows, values, message, reason, topic } }: { readonly sample: Sample }) {
  return (
    <div>
      <p class="sample-head">
        <span class="aside tabular" title={timeText(at, { ms: true })}>
          {shortTimeText(at, Date.now())} {cut && T.rules.sampleCut}
        </span>
        <span class="aside">
          {reason ?? node}
          {topic !== undefined && (
            <>
              {' '}
              <Name of={topic} max={60} />
            </>
          )}
        </span>
      </p>
      <Result>{message ?? (rows ?? [values]).map((row) => JSON.stringify(row)).join('\n')}</Result>
    </div>
  );
}
