import { RequestError, request } from '../../app/requests.ts';
import { timeText } from '../../model/format.ts';
import { useLoaded } from '../../parts/loading.ts';
import { Problem } from '../../parts/problem.tsx';
import { T } from '../../texts.ts';

const R = T.rules;
const EVERY_MS = 5_000;

/** The last inputs, outputs and errors of a running rule, as far as the interface has them. */
export function Samples({ id }: { readonly id: string }) {
  const { value, error, reload } = useLoaded(
    `samples ${id}`,
    async (signal, isBackground) => {
      try {
        const { data } = await request('GET', '/x/rules/{id}/samples', { params: { id }, signal, isBackground });
        return data as Readonly<Record<string, readonly unknown[]>>;
      } catch (thrown) {
        if (thrown instanceof RequestError && thrown.status === 404) return {};
        throw thrown;
      }
    },
    { everyMs: EVERY_MS }
  );
  if (error !== undefined) return <Problem error={error} onRetry={reload} />;
  const lists = Object.entries(value ?? {}).filter(([, list]) => Array.isArray(list));
  if (lists.length === 0) return null;
  return (
    <section class="samples" aria-label={R.samples}>
      <h2>{R.samples}</h2>
      <div class="fact-groups">
        {lists.map(([name, list]) => (
          <section key={name}>
            <h3>{name}</h3>
            {list.length === 0 && <p class="aside">{R.noSamples}</p>}
            {list.map((one, index) => {
              const { at, ...rest } = one as { readonly at?: number };
              return (
                <div key={index}>
                  {at !== undefined && <p class="aside number">{timeText(at, { ms: true })}</p>}
                  <pre class="result">{JSON.stringify(rest, null, 2)}</pre>
                </div>
              );
            })}
          </section>
        ))}
      </div>
    </section>
  );
}
