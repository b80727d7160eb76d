import { useState } from 'preact/hooks';
import { useWatch } from '../app/live.ts';
import { hrefOf } from '../app/place.ts';
import { get } from '../app/requests.ts';
import { session } from '../app/session.ts';
import { countText, durationText, rateText, sizeText } from '../model/format.ts';
import { CopyAs } from '../parts/copy.tsx';
import { Badge, Facts, Head } from '../parts/facts.tsx';
import { useLoaded } from '../parts/loading.ts';
import { Name } from '../parts/name.tsx';
import { Problem } from '../parts/problem.tsx';
import { T } from '../texts.ts';

const N = T.node;
const EVERY_MS = 5_000;

/** The process of the broker, its machine and its store. */
export function Page() {
  const node = session.value?.node ?? '';
  const { value, error, reload } = useLoaded(
    'node',
    (signal, isBackground) =>
      Promise.all([
        get('/nodes/{node}', { params: { node }, signal, isBackground }),
        get('/x/store', { signal, isBackground })
      ]),
    { everyMs: EVERY_MS }
  );
  return (
    <>
      <Head title={T.views.node}>
        <CopyAs request={{ path: '/nodes' }} ctl={['nodes']} />
      </Head>
      {value === undefined && error === undefined && <p class="loading">{T.shell.loading}</p>}
      {value && (
        <div class="fact-groups">
          <ProcessFacts facts={value[0]} />
          <StoreFacts store={value[1]} />
        </div>
      )}
      {error !== undefined && <Problem error={error} onRetry={reload} />}
    </>
  );
}

type Process = Awaited<ReturnType<typeof get<'/nodes/{node}'>>>;
type Store = Awaited<ReturnType<typeof get<'/x/store'>>>;

/** The process as the live stream has it. */
interface Now {
  readonly memory: { readonly rss: number };
  readonly loopDelayMs: number;
}

function ProcessFacts({ facts }: { readonly facts: Process }) {
  const [now, setNow] = useState<Now>();
  useWatch('overview', { kind: 'overview' }, (data) => setNow(data as unknown as Now));
  const isRunning = facts.node_status === 'Running';
  return (
    <section>
      <h2>{N.process}</h2>
      <Facts
        rows={[
          [N.name, <Name key="name" of={facts.node} />],
          [
            N.state,
            <Badge key="state" kind={isRunning ? 'good' : 'bad'}>
              {isRunning ? N.running : N.stopped}
            </Badge>
          ],
          [N.uptime, facts.uptime],
          [N.version, `${T.name} ${facts.version}`],
          [N.runtime, facts.otp_release],
          [N.licence, N.noLicence],
          [N.memory, sizeText(now?.memory.rss), N.memoryAbout],
          [N.heap, N.heapOf(sizeText(facts.memory_used), sizeText(facts.memory_total)), N.heapAbout],
          [T.overview.eventLoop, durationText(now?.loopDelayMs), N.loopAbout],
          [N.load, `${facts.load1}, ${facts.load5}, ${facts.load15}`, N.loadAbout],
          [N.connections, <a href={hrefOf('clients', { conn_state: 'connected' })}>{countText(facts.connections)}</a>],
          [
            N.sessions,
            <a key="sessions" href={hrefOf('clients')}>
              {countText(facts.process_used)}
              {facts.process_available > 0 && ` ${T.client.ofMax(facts.process_available)}`}
            </a>
          ],
          [N.files, facts.max_fds > 0 ? countText(facts.max_fds) : T.client.unlimited, N.filesAbout]
        ]}
      />
    </section>
  );
}

function StoreFacts({ store }: { readonly store: Store }) {
  return (
    <section>
      <h2>{N.store}</h2>
      {!store.has_store ? (
        <p>{N.noStore}</p>
      ) : (
        <>
          {store.failed === true && <p class="warning">{N.storeFailed}</p>}
          <Facts
            rows={[
              [N.kind, store.name ?? ''],
              [N.size, sizeText(store.size_bytes)],
              [N.free, sizeText(store.free_bytes)],
              [N.unwritten, sizeText(store.unwritten_bytes), N.unwrittenAbout],
              [N.commits, `${countText(store.commits)}, ${rateText(store.commits_per_s)}`]
            ]}
          />
        </>
      )}
    </section>
  );
}
