import { hrefOf } from '../app/place.ts';
import { get, request } from '../app/requests.ts';
import { isAdministrator, session } from '../app/session.ts';
import type { ViewName } from '../model/places.ts';
import { Action } from '../parts/confirm.tsx';
import { CopyAs } from '../parts/copy.tsx';
import { Badge, Head } from '../parts/facts.tsx';
import { useLoaded } from '../parts/loading.ts';
import { Name } from '../parts/name.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { T } from '../texts.ts';

const F = T.features;
/** The interface of this page, which cannot be switched off by its own request. */
const INTERFACE = 'management';

interface Part {
  readonly name: string;
  readonly description: string;
  readonly active: boolean;
  readonly type: string;
}
type Stats = Readonly<Record<string, number>>;

/** The dependents of a feature: a text with a number of the stats, and the view that lists it. */
const DEPENDENTS: Readonly<Record<string, readonly [stat: string, text: (count: number) => string, view: ViewName]>> = {
  retainer: ['retained.count', F.retained, 'topics'],
  rules: ['rules.count', F.rules, 'rules']
};

/** The parts of the broker that can be switched on and off, with what depends on them. */
export function Page() {
  const node = session.value?.node ?? '';
  const { value, error, reload } = useLoaded('features', async (signal) => {
    const [parts, stats] = await Promise.all([
      get('/nodes/{node}/plugins', { params: { node }, signal }),
      get('/nodes/{node}/stats', { params: { node }, signal })
    ]);
    return { parts: parts as readonly Part[], stats: stats as Stats };
  });
  const ofType = (type: string) => value?.parts.filter((part) => part.type === type);
  const columns = columnsOf(value?.stats ?? {}, reload);
  return (
    <>
      <Head title={T.views.features}>
        <CopyAs request={{ path: `/nodes/${encodeURIComponent(node)}/plugins` }} ctl={['plugins', 'list']} />
      </Head>
      <p class="aside">{F.about}</p>
      <Table
        caption={T.views.features}
        columns={columns}
        rows={ofType('feature')}
        error={error}
        onRetry={reload}
        keyOf={({ name }) => name}
        empty=""
      />
      {value && (
        <>
          <h2>{F.sources}</h2>
          <p class="aside">{F.sourcesAbout}</p>
          <Table
            caption={F.sources}
            columns={columns}
            rows={ofType('auth')}
            keyOf={({ name }) => name}
            empty={F.noSources}
          />
        </>
      )}
    </>
  );
}

function columnsOf(stats: Stats, reload: () => void): readonly Column<Part>[] {
  return [
    {
      head: F.feature,
      isWide: true,
      cell: ({ name, description }) => (
        <>
          <b>
            <Name of={(F.names as Readonly<Record<string, string>>)[name] ?? name} />
          </b>
          <p class="row-about">{description}</p>
        </>
      )
    },
    {
      head: F.state,
      cell: ({ active }) => <Badge kind={active ? 'good' : 'quiet'}>{active ? F.on : F.off}</Badge>
    },
    {
      head: F.whileOff,
      isMinor: true,
      isWide: true,
      cell: ({ name }) => {
        const row = DEPENDENTS[name];
        const count = row && stats[row[0]];
        return (
          <div class="row-about">
            <p>{whenOff(name)}</p>
            {count !== undefined && <a href={hrefOf(row[2])}>{row[1](count)}</a>}
          </div>
        );
      }
    },
    { head: '', cell: (part) => <Switch part={part} onDone={reload} /> }
  ];
}

function whenOff(name: string): string {
  return (F.whenOff as Readonly<Record<string, string>>)[name] ?? F.sourceOff;
}

/** Buttons that switch a part on or off. */
function Switch({ part: { name, active, type }, onDone }: { readonly part: Part; readonly onDone: () => void }) {
  const node = session.value?.node ?? '';
  if (name === INTERFACE)
    return (
      <div class="head-actions row-actions">
        <button type="button" class="small" disabled title={isAdministrator.value ? F.serves : T.errors.forbidden}>
          {F.switchOff}
        </button>
      </div>
    );
  const shown = (F.names as Readonly<Record<string, string>>)[name] ?? name;
  const action = (verb: 'load' | 'unload' | 'reload', label: string, text: string, done: string) => (
    <Action
      label={label}
      title={`${label}: ${shown}`}
      kind="small"
      isDangerous={verb === 'unload'}
      text={text}
      done={done}
      run={() => request('PUT', `/nodes/{node}/plugins/{plugin}/${verb}`, { params: { node, plugin: name } })}
      onDone={onDone}
    >
      <CopyAs
        request={{
          method: 'PUT',
          path: `/nodes/${encodeURIComponent(node)}/plugins/${encodeURIComponent(name)}/${verb}`
        }}
        ctl={['plugins', verb, name]}
      />
    </Action>
  );
  return (
    <div class="head-actions row-actions">
      {active && type === 'auth' && name !== 'records' && action('reload', F.reload, F.reloadText, F.reloaded(shown))}
      {active
        ? action('unload', F.switchOff, `${F.effect(whenOff(name))} ${F.stays}`, F.switchedOff(shown))
        : action('load', F.switchOn, F.stays, F.switchedOn(shown))}
    </div>
  );
}
