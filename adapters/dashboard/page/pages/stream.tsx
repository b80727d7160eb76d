import { choice, choose, forgetDrafts, go, hrefOf } from '../app/place.ts';
import { streams } from '../app/streams.ts';
import { Action } from '../parts/confirm.tsx';
import { CopyAs } from '../parts/copy.tsx';
import { useChangesOfOthers } from '../parts/editor/draft.ts';
import { Head } from '../parts/facts.tsx';
import { useLoaded } from '../parts/loading.ts';
import { Name } from '../parts/name.tsx';
import { Problem } from '../parts/problem.tsx';
import { T } from '../texts.ts';
import { Draft, type StreamRule } from './stream/draft.tsx';
import { Flow, Nodes, useLiveRule } from './stream/flow.tsx';
import { Samples } from './stream/samples.tsx';
import { RuleState } from './streams/rule-state.tsx';

const S = T.streamRules;

/** A rule over streams: its statement with a test, its sinks, its topology with rates, counters and samples. Without an id, a new one. */
export function Page() {
  const id = choice('id');
  return <Rule key={id} id={id} />;
}

function Rule({ id }: { readonly id: string }) {
  const path = `/rules/${encodeURIComponent(id)}`;
  const { value, error, isLoading, reload, refresh } = useLoaded(`stream rule ${id}`, async (signal, isBackground) => {
    if (id !== '') return (await streams('GET', path, { signal, isBackground })) as StreamRule;
    if (choice('over') === '') await chooseStream(signal);
    return undefined;
  });
  const live = useLiveRule(value === undefined ? '' : id);
  useChangesOfOthers(live.definition, refresh);
  return (
    <>
      <p class="crumbs">
        <a href={hrefOf('streams')}>{T.views.streams}</a>
      </p>
      <Head
        title={
          id === '' ? (
            T.rules.create
          ) : (
            <>
              <Name of={id} /> {value && live.code !== undefined && <RuleState code={live.code} />}
            </>
          )
        }
      >
        {value && live.state !== 'gone' && <Commands id={id} isRunning={live.state === 'connected'} />}
      </Head>
      {value && live.state === 'disconnected' && <p class="aside">{live.text}</p>}
      {value && live.state === 'gone' && <p class="warning">{T.rules.gone}</p>}
      {error !== undefined && <Problem error={error} onRetry={reload} />}
      {id === '' && !isLoading && error === undefined && choice('over') === '' && (
        <p class="aside">
          {S.needsStream} <a href={hrefOf('definition')}>{S.newStream}</a>
        </p>
      )}
      {(id === '' ? !isLoading : value) && <Draft rule={value} onSaved={reload} />}
      {value && <Flow path={path} live={live} />}
      {value && <Nodes live={live} />}
      {value && <Samples id={id} sampledAt={live.sampledAt} />}
    </>
  );
}

/** Begin a new rule with a stream that exists. */
async function chooseStream(signal: AbortSignal): Promise<void> {
  const [over] = (await streams('GET', '/streams', { signal })) as readonly string[];
  if (!signal.aborted) choose({ over });
}

function Commands({ id, isRunning }: { readonly id: string; readonly isRunning: boolean }) {
  const path = `/rules/${encodeURIComponent(id)}`;
  const command = (name: 'start' | 'stop' | 'restart', label: string, text: string) => (
    <Action
      key={name}
      name={name}
      label={label}
      of={id}
      text={text}
      done={S.done}
      run={() => streams('POST', `${path}/${name}`, { body: {} })}
    >
      <CopyAs of="streams" request={{ method: 'POST', path: `${path}/${name}` }} ctl={['stream', name, '--', id]} />
    </Action>
  );
  return (
    <>
      {isRunning && command('restart', S.restart, S.restartText)}
      {isRunning ? command('stop', S.stop, S.stopText) : command('start', S.start, S.startText)}
      <Action
        label={T.rules.remove}
        title={T.rules.removeTitle}
        of={id}
        text={S.removeRuleText}
        isDangerous
        done={T.rules.removed}
        run={async () => {
          await streams('DELETE', path);
          forgetDrafts();
          go('streams', {}, true);
        }}
      >
        <CopyAs of="streams" request={{ method: 'DELETE', path }} ctl={['stream', 'remove', '--', id]} />
      </Action>
    </>
  );
}
